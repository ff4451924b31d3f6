//! The cell table of one node: bounded, sharded, and all or nothing over many cells.
//! Synchronous. It never waits for storage; what must come from there is handed in.

use std::sync::Arc;

use crossbeam_utils::CachePadded;
use tollkeeper_core::{Algorithm, Cost, Limit, Millis, Outcome, State};

use crate::cell::{Count, Pour, ShortStep, Slide};
use crate::on_shelf::OnShelf;
use crate::ports::{ParkedCell, Which};
use crate::shard::{Shard, Touch};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, lock};
use crate::whereabouts::{Post, Whereabouts, fetch_ahead};
use crate::{CellKey, Change};

mod bundle;
#[cfg(all(test, feature = "shuttle"))]
mod schedules;
mod shelving;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;

pub use shelving::{Far, Returned};

/// With this many cells a shard's slots (16,380 of 64 bytes) take just less than a mebibyte, the
/// allocator's bookkeeping included.
const CELLS_PER_SHARD: usize = 13_104;

/// Small tables still get some shards, so that two threads rarely meet.
const SHARDS_MIN: usize = 16;
const CELLS_PER_SHARD_MIN: usize = 64;

/// Cells on their way to the shelf, at most, over all shards: what some 500 ms of flooding evicts at
/// full load. Beyond it an evicted counter is given up, counted and shown.
const PARKED_MAX: usize = 65_536;
const PARKED_PER_SHARD_MIN: usize = 256;

/// Changes that are handed to the journal in one go: few enough for one write, many enough for few writes.
const TOLD_AT_ONCE: usize = 1_000;

#[derive(Debug)]
pub struct Cells {
    shards: Box<[CachePadded<Mutex<Shard>>]>,
    /// Of each shard's cells.
    whereabouts: Arc<[Whereabouts]>,
    on_shelf: OnShelf,
    parked_per_shard: usize,
    counters: Counters,
}

/// What the table did, for the metrics.
#[derive(Debug, Default)]
struct Counters {
    evicted: AtomicU64,
    lost: AtomicU64,
    swept: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellStats {
    pub live: usize,
    /// Left for the shelf although they still mattered.
    pub evicted: u64,
    /// Given up because the shelf did not keep up: these counters started again.
    pub lost: u64,
    /// Forgotten because they were as good as fresh.
    pub swept: u64,
}

/// One limit to check on one cell.
#[derive(Clone, Copy, Debug)]
pub struct CellAsk {
    pub key: CellKey,
    pub namespace: u64,
    pub limit: Limit,
    pub cost: Cost,
}

// === impl CellAsk ===

impl CellAsk {
    fn touch(&self, now: Millis) -> Touch<'_> {
        let Self { key, namespace, ref limit, cost } = *self;
        Touch { key, namespace, limit, cost, now }
    }
}

// === impl Cells ===

impl Cells {
    pub fn new(cells_max: usize) -> Self {
        let fit = cells_max.div_ceil(CELLS_PER_SHARD);
        let shards = fit.max(SHARDS_MIN.min(cells_max / CELLS_PER_SHARD_MIN)).max(1);
        Self::with_shards(shards, cells_max / shards)
    }

    fn with_shards(shards: usize, room: usize) -> Self {
        let whereabouts: Arc<[Whereabouts]> = (0..shards).map(|_| Whereabouts::default()).collect();
        let shard = |at| Shard::new(room, Post::new(&whereabouts, at));
        Self {
            shards: (0..shards).map(|at| CachePadded::new(Mutex::new(shard(at)))).collect(),
            whereabouts,
            on_shelf: OnShelf::for_cells(shards * room),
            parked_per_shard: (PARKED_MAX / shards).max(PARKED_PER_SHARD_MIN),
            counters: Counters::default(),
        }
    }

    /// Spends one cost from one cell.
    pub fn spend(&self, ask: &CellAsk, returned: Vec<Returned>, now: Millis) -> Outcome {
        match ask.limit.algorithm {
            Algorithm::SlidingWindow(_) => self.spend_by::<Slide>(ask, returned, now),
            Algorithm::TokenBucket { .. } => self.spend_by::<Pour>(ask, returned, now),
            _ => self.spend_by::<Count>(ask, returned, now),
        }
    }

    /// Never inlined: each algorithm's way has all registers to itself.
    #[inline(never)]
    fn spend_by<S: ShortStep>(
        &self,
        ask: &CellAsk,
        returned: Vec<Returned>,
        now: Millis,
    ) -> Outcome {
        let mut shard = self.hold_for(ask.key);
        let slot = shard.place(ask.key);
        let shortly =
            slot.and_then(|slot| shard.step_shortly::<S>(slot, &ask.limit, ask.cost, now));
        if let Some(outcome) = shortly {
            return outcome;
        }
        let touch = ask.touch(now);
        match slot.and_then(|slot| shard.step(slot, &touch)) {
            Some(outcome) => outcome,
            None => self.spend_anew(&mut shard, &touch, returned),
        }
    }

    /// Spends from a cell that is not in the table: it comes back, or begins.
    #[cold]
    fn spend_anew(&self, shard: &mut Shard, touch: &Touch<'_>, returned: Vec<Returned>) -> Outcome {
        let Touch { key, limit, cost, now, .. } = *touch;
        self.bring_back(shard, key, returned, now);
        if let Some(outcome) = shard.spend(touch) {
            return outcome;
        }
        let (outcome, state) = State::fresh(limit).spend(limit, cost, now);
        // A cell nobody spent from is no cell: peeks and denials of strangers take no memory.
        if outcome.admitted() && cost != Cost::PEEK {
            let evicted = shard.keep(touch, state, &outcome);
            self.note(&evicted, shard);
        }
        outcome
    }

    /// Takes a cell away that is counted elsewhere from now on, and says what was used of it.
    pub(crate) fn take(&self, ask: &CellAsk, now: Millis) -> u64 {
        let mut shard = lock(&self.shards[self.shard_of(ask.key)]);
        let stood = shard.take(ask.key, &ask.limit, now);
        stood.map_or(0, |stood| ask.limit.ceiling().saturating_sub(stood.remaining))
    }

    /// Resets all cells that `which` covers; returns those that were in the table.
    pub fn reset(&self, which: Which) -> Vec<CellKey> {
        match which {
            // All cells of one identifier are in one shard; the others need not hear of it.
            Which::Subject(subject) => {
                let key = CellKey { subject, exact: 0 };
                lock(&self.shards[self.shard_of(key)]).reset(which)
            }
            Which::Namespace(_) => {
                self.shards.iter().flat_map(|shard| lock(shard).reset(which)).collect()
            }
        }
    }

    /// Forgets idle cells in one part of `of` of the table, and gives their memory back.
    pub fn sweep(&self, part: usize, of: usize, now: Millis) {
        let gone: usize = self
            .shards
            .iter()
            .skip(part)
            .step_by(of.max(1))
            .map(|shard| lock(shard).sweep(now))
            .sum();
        self.counters.swept.fetch_add(gone as u64, Ordering::Relaxed);
    }

    pub fn stats(&self) -> CellStats {
        CellStats {
            live: self.shards.iter().map(|shard| lock(shard).len()).sum(),
            evicted: self.counters.evicted.load(Ordering::Relaxed),
            lost: self.counters.lost.load(Ordering::Relaxed),
            swept: self.counters.swept.load(Ordering::Relaxed),
        }
    }

    /// Has fetched what may be looked at of a cell, lock included, while there is still something else to do.
    #[inline]
    pub(crate) fn fetch_early(&self, key: CellKey) {
        let at = self.shard_of(key);
        fetch_ahead(&*self.shards[at]);
        self.whereabouts[at].fetch_early(key);
    }

    /// Locks the shard of a cell that is about to be looked at.
    #[inline]
    fn hold_for(&self, key: CellKey) -> MutexGuard<'_, Shard> {
        let at = self.shard_of(key);
        self.whereabouts[at].fetch(key);
        lock(&self.shards[at])
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "the product's high half is below the number of shards"
    )]
    fn shard_of(&self, key: CellKey) -> usize {
        ((u128::from(key.subject) * self.shards.len() as u128) >> 64) as usize
    }
}

/// The journal's side.
impl Cells {
    /// What changed since the last call, some thousand at a time. False when nobody had asked for so long that
    /// some changes were dropped: then only a snapshot of every part is whole.
    pub fn drain_changes(&self, mut each: impl FnMut(&mut Vec<Change>)) -> bool {
        let mut whole = true;
        let mut changes = Vec::new();
        for shard in &self.shards {
            // A few at a time, so that requests can pass in between.
            let mut from = Some(0);
            while let Some(block) = from {
                from = lock(shard).drain(block, &mut changes);
            }
            whole &= lock(shard).told_all();
            if changes.len() >= TOLD_AT_ONCE {
                each(&mut changes);
                changes.clear();
            }
        }
        if !changes.is_empty() {
            each(&mut changes);
        }
        whole
    }

    /// Every cell that matters, one part of the table at a time, so that requests can pass in between.
    pub fn snapshot(&self, part: usize, now: Millis) -> Option<Vec<Change>> {
        let shard = self.shards.get(part)?;
        let mut out = Vec::new();
        lock(shard).snapshot(now, &mut out);
        Some(out)
    }

    /// Applies a change from the journal, at start, before the first ask.
    pub fn replay(&self, change: Change, now: Millis) {
        let (Change::Left(key) | Change::Cell(ParkedCell { key, .. })) = change;
        let mut shard = lock(&self.shards[self.shard_of(key)]);
        shard.parking.take(key);
        shard.remove(key);
        if let Change::Cell(cell) = change {
            // However many there are, they were in memory before: none is given up here.
            let evicted = shard.restore(cell, now);
            self.note_parked(&evicted);
        }
        // The journal has all of this already, and said now it would undo what it says next.
        shard.forget_untold();
    }
}
