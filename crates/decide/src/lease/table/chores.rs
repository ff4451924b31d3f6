//! What cells need without being asked: leases that end, units that others lack, history that the origin lost.

use tollkeeper_core::Millis;

use super::LeaseTable;
use super::shard::Shard;
use crate::CellKey;
use crate::lease::asleep::{IDLE_MS, RENEW_MS, Slot};
use crate::lease::cell::{LeaseCell, width_of};
use crate::lease::{CellName, Errand};
use crate::sync::lock;

/// What `fast` cells have not told goes out at least so often.
const FLUSH_MS: u64 = 100;

/// Of what others lack a node keeps what it uses itself in so many milliseconds: until its next call is answered.
const KEPT_MS: u64 = 15;

/// How far somebody who looks through the table has come.
#[derive(Clone, Debug)]
pub struct Place {
    shard: usize,
    /// Of this shard's cells, those that are yet to be looked at; none: all of them. By key, because a map that grows meanwhile
    /// has another order.
    left: Vec<CellKey>,
}

/// A cell whose call was under way when its lease was to go back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnderWay {
    key: CellKey,
    seq: u64,
}

/// What is done with each cell, and what calls came of it, of which there are to be so many.
struct Look<F> {
    visit: F,
    most: usize,
    errands: Vec<Errand>,
}

// === impl Place ===

impl Place {
    /// Before the first cell of a shard.
    pub fn shard(shard: usize) -> Self {
        Self { shard, left: Vec::new() }
    }
}

// === impl Look ===

impl<F> Look<F> {
    fn is_done(&self) -> bool {
        self.errands.len() >= self.most
    }

    /// Looks at the cells of a shard, or at those of them that are left; returns those that are left then.
    fn go_through<W>(&mut self, shard: &mut Shard<W>, mut left: Vec<CellKey>) -> Vec<CellKey>
    where
        F: FnMut(&mut Slot<W>) -> Option<Errand>,
    {
        if left.is_empty() {
            let mut slots = shard.slots_mut();
            while !self.is_done() {
                let Some(slot) = slots.next() else { return Vec::new() };
                self.errands.extend((self.visit)(slot));
            }
            return slots.map(|slot| slot.key()).collect();
        }
        while !self.is_done() {
            let Some(key) = left.pop() else { break };
            if let Some(slot) = shard.slot_mut(key) {
                self.errands.extend((self.visit)(slot));
            }
        }
        left
    }
}

// === impl LeaseTable ===

impl<W> LeaseTable<W> {
    /// What time alone makes necessary, in one part of `of` of the table. Forgets what is idle, and lets sleep what is quiet.
    pub fn tick(&self, part: usize, of: usize, now: Millis) -> Vec<Errand> {
        self.look(Place::shard(part), of, usize::MAX, |_| true, now).0
    }

    /// The same from one place on, until there are `most` calls to make: with them the place to go on from. Cells whose server
    /// hears nothing are passed over: it is told when it does, and their calls would be in the way of others.
    pub fn look(
        &self,
        from: Place,
        step: usize,
        most: usize,
        hears: impl Fn(&CellName) -> bool,
        now: Millis,
    ) -> (Vec<Errand>, Option<Place>) {
        let visit = |slot: &mut Slot<W>| {
            if let Slot::Asleep(asleep) = slot
                && !asleep.is_due(&hears, now)
            {
                return None;
            }
            let cell = slot.wake(&self.births);
            let errand = if hears(&cell.name) {
                self.chore(cell, now)
            } else {
                cell.pass_time(now);
                None
            };
            if now.since(cell.spent_at) > IDLE_MS && !cell.is_forgettable(now) {
                slot.lay_down(now + IDLE_MS);
            }
            errand
        };
        let mut look = Look { visit, most, errands: Vec::new() };
        let Place { shard: mut at, mut left } = from;
        while let Some(shard) = self.shards.get(at) {
            let mut shard = lock(shard);
            left = look.go_through(&mut shard, left);
            if !left.is_empty() {
                return (look.errands, Some(Place { shard: at, left }));
            }
            shard.retain(|slot| slot.awake().is_none_or(|cell| !cell.is_forgettable(now)));
            at += step.max(1);
        }
        (look.errands, None)
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
            return Some(self.tell(cell, now));
        }
        if let Some(errand) = self.tell_ahead(cell, now) {
            return Some(errand);
        }
        let ended = was_held > 0 && cell.totals.held() == 0;
        let quiet = now.since(cell.spent_at) > IDLE_MS;
        let due = match cell.limit.algorithm {
            FixedWindow(_) => cell.drops_unused(now) || (cell.doubts && now < cell.lapse),
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
                let told = cell.totals == cell.acked;
                (old && (!told || cell.totals.held() > 0)) || cell.hinders_refill(now)
            }
        };
        let untold = cell.untold() > 0 && now.since(cell.answered) >= FLUSH_MS;
        let crowded = quiet && cell.totals != cell.acked && now < cell.lapse;
        (due || untold || crowded).then(|| self.tell(cell, now))
    }

    /// All that this node knows of the cells that `which` covers is to be told, to an origin that lost its history. Ticks
    /// do it, each cell's until there is an answer, and so does whoever asks for one before its turn has come.
    pub fn assert_all(&self, which: impl Fn(&CellName) -> bool) {
        for shard in &self.shards {
            for slot in lock(shard).slots_mut().filter(|slot| slot.is_named(&which)) {
                slot.owe();
            }
        }
    }

    /// The same of one cell, whose record was lost, at once.
    pub fn assert_one(&self, key: CellKey, now: Millis) -> Option<Errand> {
        let mut shard = lock(self.shard(key));
        let cell = shard.wake(key, &self.births)?;
        (cell.owe() && cell.flight.is_none()).then(|| self.tell(cell, now))
    }

    /// Everything goes back, the largest leases first. Cells with a call under way are left, for who comes back to them:
    /// what that call brings goes back too.
    pub fn close(&self, now: Millis) -> (Vec<Errand>, Vec<CellKey>) {
        let (mut leases, mut left) = (Vec::new(), Vec::new());
        for shard in &self.shards {
            for slot in lock(shard).slots_mut().filter(|slot| slot.is_awake_or_holds()) {
                let cell = slot.wake(&self.births);
                if cell.flight.is_some() {
                    left.push(cell.key);
                } else {
                    self.close_cell(cell, &mut leases, now);
                }
            }
        }
        (largest_first(leases), left)
    }

    /// The same of cells that had a call under way. Those that have one still are left.
    pub fn close_later(&self, left: &mut Vec<CellKey>, now: Millis) -> Vec<Errand> {
        let mut leases = Vec::new();
        left.retain(|key| {
            let mut shard = lock(self.shard(*key));
            let Some(cell) = shard.wake_holder(*key, &self.births) else { return false };
            if cell.flight.is_none() {
                self.close_cell(cell, &mut leases, now);
                return false;
            }
            true
        });
        largest_first(leases)
    }

    fn close_cell(&self, cell: &mut LeaseCell<W>, leases: &mut Vec<(u64, Errand)>, now: Millis) {
        cell.pass_time(now);
        let held = cell.totals.held();
        if cell.totals != cell.acked || held > 0 {
            cell.hand_back();
            leases.push((held, self.tell(cell, now)));
        }
        leases.extend(self.close_ahead(cell, now));
    }

    /// The lease of the next window goes back beside that of this one. Nobody waits for the answer: what was not heard the
    /// journal tells again.
    fn close_ahead(&self, cell: &mut LeaseCell<W>, now: Millis) -> Option<(u64, Errand)> {
        let ahead = cell.ahead.as_mut()?;
        let held = ahead.ready();
        ahead.totals.returned += held;
        let flight = cell.flight.take();
        let errand = self.tell_ahead(cell, now);
        cell.flight = flight;
        errand.map(|errand| (held, errand))
    }

    /// What was called in for those that wait for it, or was to leave a log, has come or will not: they ask once more.
    pub fn ask_again(&self, key: CellKey, now: Millis) -> Option<Errand> {
        let mut shard = lock(self.shard(key));
        let cell = shard.awake(key)?;
        cell.unpark();
        let sends = cell.flight.is_none() && !cell.waiters.is_empty();
        sends.then(|| self.send(cell, now))
    }

    /// Others lack what this node holds: all beyond its own use of the next moment goes back.
    pub fn recall(&self, key: CellKey, now: Millis) -> Option<Errand> {
        let mut shard = lock(self.shard(key));
        let cell = shard.wake_holder(key, &self.births)?;
        cell.pass_time(now);
        cell.end_between();
        cell.note_call_in(now);
        let keep = cell.pace.within(KEPT_MS, width_of(&cell.limit, now));
        let idle = now.since(cell.spent_at) > 50;
        let kept = cell.aside + if idle { 0 } else { keep };
        let spare = cell.totals.held().saturating_sub(kept);
        if spare == 0 || cell.flight.is_some() || !cell.waiters.is_empty() {
            return None;
        }
        cell.totals.returned += spare;
        trim_dated(cell);
        Some(self.tell(cell, now))
    }

    /// What is known of a cell is void: somebody reset it, or its limit changed.
    pub fn forget_copy(&self, key: CellKey) {
        if let Some(cell) = lock(self.shard(key)).wake(key, &self.births) {
            cell.forget_copy();
        }
    }

    /// News may have been missed: what is remembered as refused is asked for once more. What was heard stays, for a
    /// share of it is all that there is should the origin go away.
    pub fn doubt_refusals(&self) {
        for shard in &self.shards {
            for slot in lock(shard).slots_mut() {
                slot.doubt_refusal(&self.births);
            }
        }
    }

    /// What is known of all cells that `which` covers is void.
    pub fn forget_where(&self, which: impl Fn(&CellName) -> bool) {
        for shard in &self.shards {
            for slot in lock(shard).slots_mut().filter(|slot| slot.is_named(&which)) {
                slot.change(&self.births, LeaseCell::forget_copy);
            }
        }
    }

    /// What cells hold that `which` covers goes back, and what they spent is told: from one place on, until there are `most`
    /// calls to make, with the place to go on from. Those with a call under way come to the others of these.
    pub(crate) fn gather(
        &self,
        from: Place,
        most: usize,
        which: impl Fn(&CellName) -> bool,
        under_way: &mut Vec<UnderWay>,
        now: Millis,
    ) -> (Vec<Errand>, Option<Place>) {
        let visit = |slot: &mut Slot<W>| {
            if !slot.is_awake_or_holds() || !slot.is_named(&which) {
                return None;
            }
            let cell = slot.wake(&self.births);
            if let Some(flight) = &cell.flight {
                under_way.push(UnderWay { key: cell.key, seq: flight.take.seq });
                return None;
            }
            self.give_back(cell, now)
        };
        let mut look = Look { visit, most, errands: Vec::new() };
        let Place { shard: mut at, mut left } = from;
        while let Some(shard) = self.shards.get(at) {
            left = look.go_through(&mut lock(shard), left);
            if !left.is_empty() {
                return (look.errands, Some(Place { shard: at, left }));
            }
            at += 1;
        }
        (look.errands, None)
    }

    /// The same of cells that had a call under way. Those that have it still are left, and those beyond so many calls.
    pub(crate) fn gather_again(
        &self,
        under_way: &mut Vec<UnderWay>,
        most: usize,
        hears: impl Fn(&CellName) -> bool,
        now: Millis,
    ) -> Vec<Errand> {
        let mut errands = Vec::new();
        under_way.retain(|one| {
            if errands.len() >= most {
                return true;
            }
            let mut shard = lock(self.shard(one.key));
            let holder = shard.wake_holder(one.key, &self.births);
            let Some(cell) = holder.filter(|cell| hears(&cell.name)) else { return false };
            if let Some(flight) = &cell.flight {
                return flight.take.seq == one.seq || !flight.gives_back();
            }
            errands.extend(self.give_back(cell, now));
            false
        });
        errands
    }

    fn give_back(&self, cell: &mut LeaseCell<W>, now: Millis) -> Option<Errand> {
        cell.pass_time(now);
        let told = cell.totals == cell.acked && cell.totals.held() <= cell.aside;
        (!told).then(|| {
            cell.hand_back();
            self.tell(cell, now)
        })
    }
}

fn largest_first(mut leases: Vec<(u64, Errand)>) -> Vec<Errand> {
    leases.sort_by_key(|(held, _)| std::cmp::Reverse(*held));
    leases.into_iter().map(|(_, errand)| errand).collect()
}

/// What was given back is no longer dated, the latest first. What is left of a group keeps its date.
fn trim_dated<W>(cell: &mut LeaseCell<W>) {
    let dated: u64 = cell.dated.iter().map(|(_, units)| units).sum();
    let mut gone = dated.saturating_sub(cell.totals.held());
    while gone > 0
        && let Some((_, units)) = cell.dated.back_mut()
    {
        let cut = gone.min(*units);
        (*units, gone) = (*units - cut, gone - cut);
        if *units == 0 {
            cell.dated.pop_back();
        }
    }
}
