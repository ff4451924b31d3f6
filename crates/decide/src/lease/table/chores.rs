//! What cells need without being asked: leases that end, units that others lack, history that the origin lost.

use tollkeeper_core::{Limit, Millis, Totals};

use super::LeaseTable;
use crate::CellKey;
use crate::lease::cell::{LeaseCell, width_of};
use crate::lease::{CellName, Errand};
use crate::sync::lock;

/// What `fast` cells have not told goes out at least so often.
const FLUSH_MS: u64 = 100;

/// A bucket's lease is renewed or given back when it is this old: well before it lapses.
const RENEW_MS: u64 = 4_000;

/// A cell that nobody touched for so long and that has nothing to tell is forgotten.
const IDLE_MS: u64 = 1_000;

/// One that still counts is kept longer, so that it can be told to an origin that lost its history; until
/// others need its room.
const HISTORY_MS: u64 = 60_000;

/// Calls that one look through a part of the table makes; the rest waits for the next one.
const ERRANDS_MAX: usize = 2_048;

// === impl LeaseTable ===

impl<W> LeaseTable<W> {
    /// What time alone makes necessary, in one part of `of` of the table. Forgets what is idle.
    pub fn tick(&self, part: usize, of: usize, now: Millis) -> Vec<Errand> {
        let mut errands = Vec::new();
        for shard in self.shards.iter().skip(part).step_by(of.max(1)) {
            let mut shard = lock(shard);
            for cell in shard.values_mut() {
                if errands.len() < ERRANDS_MAX
                    && let Some(errand) = self.chore(cell, now)
                {
                    errands.push(errand);
                }
            }
            shard.retain(|_, cell| {
                let quiet = now.since(cell.spent_at.max(cell.answered));
                let untouched = quiet > HISTORY_MS || (quiet > IDLE_MS && !cell.is_history(now));
                !(untouched && now >= cell.again_at && cell.is_idle(now))
            });
        }
        errands
    }

    pub(super) fn chore(&self, cell: &mut LeaseCell<W>, now: Millis) -> Option<Errand> {
        use tollkeeper_core::Algorithm::{FixedWindow, SlidingLog, SlidingWindow, TokenBucket};
        if cell.flight.is_some() {
            return None;
        }
        if !cell.waiters.is_empty() {
            return Some(self.send(cell, now));
        }
        let was_held = cell.totals.held();
        cell.pass_time(now);
        if cell.owes || cell.owes_before {
            return Some(self.tell(cell));
        }
        let ended = was_held > 0 && cell.totals.held() == 0;
        let quiet = now.since(cell.spent_at) > IDLE_MS;
        let due = match cell.limit.algorithm {
            FixedWindow(_) => false,
            // After the edge, or its lapse, what was not spent must stop counting.
            SlidingWindow(_) => {
                ended || (cell.totals.returned > cell.acked.returned && now >= cell.lapse)
            }
            // It has no window whose end would make it forgettable untold.
            SlidingLog(_) => ended || (cell.totals != cell.acked && (now >= cell.lapse || quiet)),
            TokenBucket { .. } => {
                let old = now.since(cell.answered) >= RENEW_MS || quiet;
                if old && quiet && cell.totals.held() > 0 {
                    cell.hand_back();
                }
                old && (cell.totals != cell.acked || cell.totals.held() > 0)
            }
        };
        let untold = cell.untold() > 0 && now.since(cell.answered) >= FLUSH_MS;
        let crowded = quiet && cell.totals != cell.acked && now < cell.lapse;
        (due || untold || crowded).then(|| self.tell(cell))
    }

    /// All that this node knows of the cells that `which` covers, for an origin that lost its history.
    pub fn assert_all(&self, which: impl Fn(&CellName, &Limit) -> bool) -> Vec<Errand> {
        let mut errands = Vec::new();
        for shard in &self.shards {
            for cell in lock(shard).values_mut() {
                if which(&cell.name, &cell.limit) {
                    errands.extend(self.assert(cell));
                }
            }
        }
        errands
    }

    /// The same of one cell, whose record was lost.
    pub fn assert_one(&self, key: CellKey) -> Option<Errand> {
        let mut shard = lock(self.shard(key));
        self.assert(shard.get_mut(&key)?)
    }

    fn assert(&self, cell: &mut LeaseCell<W>) -> Option<Errand> {
        let told_something =
            cell.totals != Totals::default() || cell.before.is_some() || cell.flight.is_some();
        if !told_something {
            return None;
        }
        // A call under way may have been heard before the loss, and one that leaves now may get lost: a tick
        // tells it again until there is an answer.
        (cell.owes, cell.owes_before) = (true, cell.before.is_some());
        match &mut cell.flight {
            Some(flight) => {
                flight.pays = false;
                None
            }
            None => Some(self.tell(cell)),
        }
    }

    /// Everything goes back, the largest leases first.
    pub fn close(&self, now: Millis) -> Vec<Errand> {
        let mut leases = Vec::new();
        for shard in &self.shards {
            for cell in lock(shard).values_mut() {
                cell.pass_time(now);
                let held = cell.totals.held();
                if cell.flight.is_none() && (cell.totals != cell.acked || held > 0) {
                    cell.hand_back();
                    leases.push((held, self.tell(cell)));
                }
            }
        }
        leases.sort_by_key(|(held, _)| std::cmp::Reverse(*held));
        leases.into_iter().map(|(_, errand)| errand).collect()
    }

    /// Others lack what this node holds: all beyond its own use of the next 50 ms goes back.
    pub fn recall(&self, key: CellKey, now: Millis) -> Option<Errand> {
        let mut shard = lock(self.shard(key));
        let cell = shard.get_mut(&key)?;
        cell.pass_time(now);
        let keep = cell.pace.in_50_ms(width_of(&cell.limit, now));
        let idle = now.since(cell.spent_at) > 50;
        let kept = cell.aside + if idle { 0 } else { keep };
        let spare = cell.totals.held().saturating_sub(kept);
        if spare == 0 || cell.flight.is_some() || !cell.waiters.is_empty() {
            return None;
        }
        cell.totals.returned += spare;
        trim_dated(cell);
        Some(self.tell(cell))
    }

    /// What is known of a cell is void: somebody reset it, or its limit changed.
    pub fn forget_copy(&self, key: CellKey) {
        if let Some(cell) = lock(self.shard(key)).get_mut(&key) {
            cell.forget_copy();
        }
    }

    /// News may have been missed: what is remembered as refused is asked for once more. What was heard stays, for a
    /// share of it is all that there is should the origin go away.
    pub fn doubt_refusals(&self) {
        for shard in &self.shards {
            for cell in lock(shard).values_mut() {
                (cell.again_at, cell.refusals) = (Millis(0), 0);
            }
        }
    }

    /// What is known of all cells that `which` covers is void; what they hold goes back.
    pub fn forget_where(&self, now: Millis, which: impl Fn(&CellName) -> bool) -> Vec<Errand> {
        let mut errands = Vec::new();
        for shard in &self.shards {
            for cell in lock(shard).values_mut().filter(|cell| which(&cell.name)) {
                cell.pass_time(now);
                cell.forget_copy();
                if cell.totals.held() > cell.aside && cell.flight.is_none() {
                    cell.hand_back();
                    errands.push(self.tell(cell));
                }
            }
        }
        errands
    }
}

/// What was given back is no longer dated.
fn trim_dated<W>(cell: &mut LeaseCell<W>) {
    let held = cell.totals.held();
    let mut dated: u64 = cell.dated.iter().map(|(_, units)| units).sum();
    while dated > held
        && let Some((_, units)) = cell.dated.pop_back()
    {
        dated -= units;
    }
}
