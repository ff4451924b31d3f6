//! Asks of cells that the table has no room for: they go straight to the origin, and nothing is kept of them.

use std::sync::Arc;

use tollkeeper_core::{Admission, Cost, Millis, Outcome, State, Take, Taken};

use super::LeaseTable;
use crate::lease::cell::LeaseCell;
use crate::lease::sight::Sight;
use crate::lease::{CellName, Dealt, Errand, LeaseAsk, Link, Missed, Near, OnOutage, Stage, Units};
use crate::sync::{Ordering, lock};

// === impl LeaseTable ===

impl<W> LeaseTable<W> {
    /// The table has no room: the ask goes straight to the origin, and nothing is kept of it.
    pub(super) fn detached(&self, ask: &LeaseAsk, name: CellName, link: Link, now: Millis) -> Near {
        self.counters.detached.fetch_add(1, Ordering::Relaxed);
        let born = lock(&self.sight).unwrap_or_else(|| Sight::guess(now));
        let mut cell: LeaseCell<W> = LeaseCell::new(ask.key, Arc::new(name), ask.limit, born);
        if link != Link::Up {
            // A share that nobody remembers is a new one for every ask.
            let dealt = match ask.on_outage {
                OnOutage::Share if ask.cost != Cost::PEEK => cell.unheard(ask, now),
                _ => cell.without_origin(ask, link, self.nodes(), now),
            };
            return Near::Dealt(dealt, None);
        }
        let take = Take { need: ask.cost.get(), ..cell.depart(&self.sender(now), now) };
        let take = Take { bundled: false, ask: 0, ..take };
        let id = self.waiter.fetch_add(1, Ordering::Relaxed);
        Near::Waits(id, Some(Errand { key: ask.key, name: cell.name, take, detached: Some(id) }))
    }

    /// What a detached ask's answer means.
    pub fn deal_detached(
        &self,
        ask: &LeaseAsk,
        answer: Result<&Taken, Missed>,
        now: Millis,
    ) -> Dealt {
        let Ok(taken) = answer else {
            let outcome = Outcome {
                admission: Admission::NotUntil(now + 100),
                ..State::fresh(&ask.limit).probe(&ask.limit, Cost::PEEK, now)
            };
            return Dealt { outcome, units: None, degraded: true, unavailable: false, at: now };
        };
        let units = Units { key: ask.key, units: ask.cost.get(), stage: Stage::Taken };
        let mut outcome = taken.state.probe(&ask.limit, ask.cost, taken.now);
        if taken.took || ask.cost == Cost::PEEK {
            outcome = taken.state.probe(&ask.limit, Cost::PEEK, taken.now);
        }
        let degraded = !taken.took && outcome.admitted() && ask.cost != Cost::PEEK;
        if degraded {
            outcome.admission = Admission::NotUntil(taken.now + 20);
        }
        Dealt {
            outcome,
            units: taken.took.then_some(units),
            degraded,
            unavailable: false,
            at: taken.now,
        }
    }
}
