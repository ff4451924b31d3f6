//! Counters that are spent from together, with all that deciding on them needs.

use smallvec::SmallVec;
use tollkeeper_core::{Admission, Algorithm, Cost, Millis, Outcome, State};

use super::lines::Lines;
use crate::WarmError;
use crate::cells::{CellAsk, Returned};
use crate::decider::Decider;
use crate::sharing::{self, Compared, Joint, Shared};

#[derive(Debug, Default)]
pub(super) struct Lot {
    lines: Lines,
    returned: Vec<Returned>,
    /// What the fleet lent for it. Boxed: a node alone has none.
    shared: Option<Box<Shared>>,
    compared: Vec<Compared>,
    reserve: Reserve,
}

/// How firmly the fleet is asked for units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reserve {
    /// Nothing but these limits can refuse: a single one may be spent as soon as it is granted.
    #[default]
    Spend,
    /// Something else may still refuse: units are set aside.
    Aside,
    /// Nothing is going to be spent: what there is is only read, and told as it will be so much later.
    Nothing { ahead_ms: u64 },
}

// === impl Decider ===

impl Decider {
    /// Brings near what deciding on these needs.
    pub(super) async fn bring(
        &self,
        tenant_id: &str,
        lines: Lines,
        reserve: Reserve,
        now: Millis,
    ) -> Result<Lot, WarmError> {
        let (mut shared, mut compared) = (None, Vec::new());
        if let Some(fleet) = self.fleet() {
            let mut routed = lines.routed();
            sharing::carry(fleet, self.cells(), tenant_id, &routed, now).await;
            if matches!(reserve, Reserve::Nothing { .. }) {
                routed.iter_mut().for_each(|one| one.cell.cost = Cost::PEEK);
            } else {
                compared = sharing::compared(fleet, tenant_id, &routed, now);
            }
            let bundled = reserve != Reserve::Spend;
            // Boxed: a node alone never waits for it, and would carry its room all the same.
            let gathering = Box::pin(sharing::gather(fleet, tenant_id, &routed, bundled));
            shared = gathering.await.map(Box::new);
        }
        let is_shared = |place| shared.as_ref().is_some_and(|shared| shared.covers(place));
        let ours = lines.all.iter().enumerate().filter(|(place, _)| !is_shared(*place));
        let returned = self.overflow().fetch(ours.map(|(_, line)| line.ask.key)).await?;
        if let Some(fleet) = self.fleet().filter(|_| returned.is_empty()) {
            sharing::inherit(fleet, self.cells(), tenant_id, &lines.routed(), now);
        }
        Ok(Lot { lines, returned, shared, compared, reserve })
    }

    /// Spends from all of them, on one more condition if there is one, or from none.
    pub(super) fn settle_lot(
        &self,
        lot: Lot,
        now: Millis,
        condition: Option<impl FnOnce() -> bool>,
    ) -> (Lines, Joint) {
        let Lot { lines, returned, shared, compared, reserve } = lot;
        // Filled where it stays: what is collected is moved there.
        let mut asks: SmallVec<[CellAsk; 8]> = SmallVec::new();
        asks.extend(lines.all.iter().map(|line| line.ask));
        let looked: SmallVec<[usize; 4]> = match &shared {
            Some(shared) if matches!(reserve, Reserve::Nothing { .. }) => {
                (0..asks.len()).filter(|place| shared.covers(*place)).collect()
            }
            _ => SmallVec::new(),
        };
        looked.iter().for_each(|place| asks[*place].cost = Cost::PEEK);
        let mut joint = self.settle_shared(shared, &asks, returned, now, condition);
        if let (Reserve::Nothing { ahead_ms: ahead_ms @ 1.. }, false) = (reserve, looked.is_empty())
        {
            joint.at = joint.at + ahead_ms;
            for place in &looked {
                let outcome = &mut joint.settled.outcomes[*place];
                *outcome = self.foreseen(&asks[*place], *outcome, joint.at);
            }
        }
        for place in looked {
            let outcome = &mut joint.settled.outcomes[place];
            *outcome = as_asked(*outcome, lines.asked_until(place));
            joint.settled.had_room &= outcome.admitted();
        }
        if let Some(fleet) = self.fleet() {
            for one in compared {
                one.run(fleet, self.cells(), &joint.settled, now);
            }
        }
        (lines, joint)
    }

    /// What a look at a shared limit will be at a later moment of the origin's clock, if nobody asks until then.
    fn foreseen(&self, ask: &CellAsk, looked: Outcome, at: Millis) -> Outcome {
        let known = self.fleet().and_then(|fleet| fleet.table().foresee(ask.key, &ask.limit, at));
        known.unwrap_or_else(|| {
            // Nothing is kept of a cell that the table has no room for; when it is whole again is known all the same.
            let whole = match ask.limit.algorithm {
                Algorithm::SlidingWindow(width) => looked.reset + width.millis(),
                _ => looked.reset,
            };
            let fresh = || State::fresh(&ask.limit).probe(&ask.limit, Cost::PEEK, at);
            if at >= whole { fresh() } else { looked }
        })
    }
}

/// What a look at a shared limit means for a cost. When it would fit is only known as its reset, which may be later.
fn as_asked(looked: Outcome, cost: Cost) -> Outcome {
    let admission = match cost.get() {
        cost if cost <= looked.remaining => looked.admission,
        cost if cost > looked.limit => Admission::Never,
        _ => Admission::NotUntil(looked.reset),
    };
    Outcome { admission, ..looked }
}
