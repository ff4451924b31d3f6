//! The table's side of the shelf: which cells leave, which must be looked for, and how they come back.

use tollkeeper_core::Millis;

use super::Cells;
use crate::CellKey;
use crate::ports::ParkedCell;
use crate::shard::{Evicted, Shard};
use crate::sync::{Ordering, lock};

/// What must be fetched from the shelf before a decision.
#[derive(Debug, Default)]
pub struct Far {
    /// With the resets that the cell's shard had seen by then.
    pub keys: Vec<(CellKey, u64)>,
    /// The shelf is falling behind: asks for new cells should wait a moment.
    pub crowded: bool,
}

/// A cell that came back from the shelf, and how many resets its shard had seen by then.
#[derive(Clone, Debug)]
pub struct Returned {
    pub cell: ParkedCell,
    pub resets: u64,
}

// === impl Cells ===

impl Cells {
    /// Puts a cell back into the table from the parking, or from what storage had of it.
    pub(super) fn bring_back(
        &self,
        shard: &mut Shard,
        key: CellKey,
        returned: Vec<Returned>,
        now: Millis,
    ) {
        let parked = shard.parking.take(key);
        let fetched = returned
            .into_iter()
            .filter_map(|back| self.still_valid(shard, back))
            .collect::<Vec<_>>();
        for cell in parked.into_iter().chain(fetched) {
            let evicted = shard.restore(cell, now);
            self.note(&evicted, shard);
        }
    }

    /// A state that was read before a reset must not undo it.
    fn still_valid(&self, shard: &Shard, back: Returned) -> Option<ParkedCell> {
        let Some(reset) = shard.resets.since(back.resets, &back.cell) else {
            self.counters.lost.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        (!reset).then_some(back.cell)
    }

    pub(super) fn note(&self, evicted: &Evicted, shard: &mut Shard) {
        if let Evicted::Parked(key) = *evicted
            && shard.parking.unsettled_len() > self.parked_per_shard
        {
            self.counters.evicted.fetch_add(1, Ordering::Relaxed);
            self.counters.lost.fetch_add(1, Ordering::Relaxed);
            shard.give_up(key);
        } else {
            self.note_parked(evicted);
        }
    }

    pub(super) fn note_parked(&self, evicted: &Evicted) {
        if let Evicted::Parked(key) = *evicted {
            self.counters.evicted.fetch_add(1, Ordering::Relaxed);
            self.on_shelf.mark(key);
        }
    }

    /// Those of `keys` that may be on the shelf and are not here.
    pub fn far(&self, keys: impl Iterator<Item = CellKey>) -> Far {
        let mut far = Far::default();
        if !self.on_shelf.holds_any() {
            return far;
        }
        for key in keys {
            // Asked first: a cell that leaves the table in between is still in the parking.
            let may_be_shelved = self.on_shelf.may_hold(key);
            let shard = lock(&self.shards[self.shard_of(key)]);
            if !shard.holds(key) {
                far.crowded |= shard.parking.unsettled_len() > self.parked_per_shard / 4 * 3;
                if may_be_shelved {
                    far.keys.push((key, shard.resets.seen()));
                }
            }
        }
        far
    }

    /// Starts a round: all that is to be put on the shelf.
    pub(crate) fn hand_over(&self) -> Vec<ParkedCell> {
        let mut out = Vec::new();
        for shard in &self.shards {
            lock(shard).parking.hand_over(&mut out);
        }
        out
    }

    /// The shelf has these.
    pub(crate) fn shelved(&self, keys: &[CellKey]) {
        for key in keys {
            lock(&self.shards[self.shard_of(*key)]).shelved(*key);
        }
    }

    /// The shelf did not take them: they wait for the next round.
    pub(crate) fn take_back(&self) {
        for shard in &self.shards {
            lock(shard).parking.take_back();
        }
    }

    /// Starts learning anew what is on the shelf; evictions from here on enter both filters.
    pub(crate) fn renew_filter(&self) {
        self.on_shelf.renew();
    }

    /// Ends it: `on_shelf` is what the shelf held when it was asked, after [`Cells::renew_filter`].
    pub(crate) fn adopt_filter(&self, on_shelf: &[CellKey]) {
        let parked: Vec<CellKey> = self
            .shards
            .iter()
            .flat_map(|shard| {
                lock(shard).parking.unsettled().map(|cell| cell.key).collect::<Vec<_>>()
            })
            .collect();
        self.on_shelf.adopt(on_shelf.iter().chain(&parked));
    }
}
