//! Counters that are spent from together, with all that deciding on them needs.

use smallvec::SmallVec;
use tollkeeper_core::Millis;

use super::lines::{Line, Lines};
use crate::WarmError;
use crate::cells::{CellAsk, Returned};
use crate::decider::Decider;
use crate::sharing::{self, Compared, Joint, Routed, Shared};

#[derive(Debug, Default)]
pub(super) struct Lot {
    lines: Lines,
    returned: Vec<Returned>,
    /// What the fleet lent for it. Boxed: a node alone has none.
    shared: Option<Box<Shared>>,
    compared: Vec<Compared>,
}

// === impl Decider ===

impl Decider {
    /// Brings near what deciding on these needs. `bundled` where something else than limits may still refuse.
    pub(super) async fn bring(
        &self,
        tenant_id: &str,
        lines: Lines,
        bundled: bool,
        now: Millis,
    ) -> Result<Lot, WarmError> {
        let (mut shared, mut compared) = (None, Vec::new());
        if let Some(fleet) = self.fleet() {
            let routed: SmallVec<[Routed<'_>; 4]> = lines.iter().map(Line::routed).collect();
            sharing::carry(fleet, self.cells(), tenant_id, &routed, now).await;
            shared = sharing::gather(fleet, tenant_id, &routed, bundled).await.map(Box::new);
            compared = sharing::compared(fleet, tenant_id, &routed);
        }
        let is_shared = |place| shared.as_ref().is_some_and(|shared| shared.covers(place));
        let ours = lines.iter().enumerate().filter(|(place, _)| !is_shared(*place));
        let returned = self.overflow().fetch(ours.map(|(_, line)| line.ask.key)).await?;
        if let Some(fleet) = self.fleet().filter(|_| returned.is_empty()) {
            let routed: SmallVec<[Routed<'_>; 4]> = lines.iter().map(Line::routed).collect();
            sharing::inherit(fleet, self.cells(), tenant_id, &routed, now);
        }
        Ok(Lot { lines, returned, shared, compared })
    }

    /// Spends from all of them, on one more condition, or from none.
    pub(super) fn settle_lot(
        &self,
        lot: Lot,
        now: Millis,
        condition: impl FnOnce() -> bool,
    ) -> (Lines, Joint) {
        let Lot { lines, returned, shared, compared } = lot;
        let asks: SmallVec<[CellAsk; 4]> = lines.iter().map(|line| line.ask).collect();
        let joint = self.settle_shared(shared, &asks, returned, now, condition);
        if let Some(fleet) = self.fleet() {
            for one in compared {
                one.run(fleet, &joint.settled.outcomes);
            }
        }
        (lines, joint)
    }
}
