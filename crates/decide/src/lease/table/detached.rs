//! Asks of cells that the table has no room for: they go straight to the origin, and nothing is kept of them.
//! What was taken that way cannot be given back, so it is never done for one of several that are spent together.

use std::sync::Arc;

use tollkeeper_core::{Admission, Cost, Limit, Millis, Outcome, State, Take, Taken};

use super::LeaseTable;
use crate::CellKey;
use crate::lease::cell::LeaseCell;
use crate::lease::sight::Sight;
use crate::lease::{CellName, Dealt, Errand, LeaseAsk, Link, Missed, Near, OnOutage, Stage, Units};
use crate::sync::{Ordering, lock};

/// Room for what is spent together, at least, over all shards. A cell that nobody asks for can be forgotten after a second or two:
/// so many are new to a node in that time only when Redis cannot keep up either.
const BUNDLED_MIN: usize = 65_536;

// === impl LeaseTable ===

impl<W> LeaseTable<W> {
    /// Cells that may be in a shard for this ask. One of several that are spent together needs a cell to be set aside in,
    /// and so finds an eighth more room than others do, and never little.
    pub(super) fn room_for(&self, ask: &LeaseAsk) -> usize {
        let more = self.room.div_ceil(8).max(BUNDLED_MIN.div_ceil(self.shards.len()));
        if ask.bundled { self.room + more } else { self.room }
    }

    /// How a cell will stand at a later moment of the origin's clock, by what was last heard of it and if nobody asks
    /// until then. `None` where nothing was heard.
    pub fn foresee(&self, key: CellKey, limit: &Limit, at: Millis) -> Option<Outcome> {
        let shard = lock(self.shard(key));
        shard.slot(key)?.read(|cell| {
            let seen = cell.seen.as_ref()?;
            let mut outcome = seen.state.probe(limit, Cost::PEEK, at);
            let (_, end) = limit.window_at(seen.sight.origin);
            if at < end {
                // Units in hand are counted as gone by the origin, and are there all the same.
                outcome.remaining =
                    outcome.remaining.saturating_add(cell.ready()).min(outcome.limit);
            }
            Some(outcome)
        })
    }

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
        if ask.bundled && ask.cost != Cost::PEEK {
            // Refused for a moment: what the origin spent for it would stay spent, whatever becomes of the others.
            return Near::Dealt(cell.unheard(ask, now), None);
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
            let mut outcome = State::fresh(&ask.limit).probe(&ask.limit, Cost::PEEK, now);
            if ask.cost != Cost::PEEK {
                outcome.admission = Admission::NotUntil(now + 100);
            }
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
