//! All shared cells of one node, sharded and bounded. It decides what can be decided at once, says which
//! calls must be made, and deals their answers out. It never makes a call itself.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;
use tollkeeper_core::{Boot, Millis, Stand, Taken};

use super::absorb::Dealing;
use super::asleep::{Births, Slot};
use super::cell::{First, LeaseCell, Sender};
use super::mark::Ceilings;
use super::sight::Sight;
use super::waiter::Waiter;
use super::{CellName, Consistency, Dealt, Errand, LeaseAsk, Link, Missed, Near, Units};
use crate::CellKey;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};

mod chores;
mod detached;
mod marks;
mod shard;

pub use chores::Place;
pub(crate) use chores::UnderWay;
use shard::Shard;

/// A shard is walked, and grows, while requests for its cells wait: a thousand cells take a fraction of a millisecond. When it
/// grows, the key of each is read where the cell is. With the eighth more that bundles find, these just fit 1,024 places.
const CELLS_PER_SHARD: usize = 790;
const SHARDS_MIN: usize = 64;

/// Cells that are looked at for one that can make room.
const SAMPLE: usize = 64;

/// Where none of those can, all of the shard are looked at, so often at most: requests for its cells wait meanwhile.
const SEARCH_MS: u64 = 50;

/// Then so large a part of it is forgotten, and no fewer cells than this: enough for the new ones until the next search, and
/// not all, for an origin that lost its history would miss them.
const FORGOTTEN_PART: usize = 16;
const FORGOTTEN_MIN: usize = 8;

/// What who waits has in all, where nobody says otherwise: two calls, and a little more.
const PATIENCE_MS: u64 = 11;

pub struct LeaseTable<W> {
    shards: Box<[Mutex<Shard<W>>]>,
    /// By shard: when all of it was last looked through for room.
    searched: Box<[AtomicU64]>,
    room: usize,
    boot: Boot,
    seq: AtomicU64,
    waiter: AtomicU64,
    births: Births,
    nodes: AtomicU64,
    sight: Mutex<Option<Sight>>,
    ceilings: Option<Arc<dyn Ceilings>>,
    /// What who waits has in all.
    patience_ms: u64,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    waited: AtomicU64,
    near: AtomicU64,
    detached: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseStats {
    pub cells: usize,
    /// Asks that were decided at once.
    pub near: u64,
    /// Asks that waited for the origin.
    pub waited: u64,
    /// Asks that found the table full.
    pub detached: u64,
}

/// What follows from an answer.
#[derive(Debug)]
pub struct Turn<W> {
    pub dealt: Vec<(W, Dealt)>,
    pub next: Option<Errand>,
    /// Others hold what this cell lacks: they should be asked for it.
    pub recall: bool,
    /// Somebody waits for what is there in a moment: [`LeaseTable::ask_again`] after so many milliseconds.
    pub again_in: Option<u64>,
    pub learning: bool,
    /// The record is not the one that this node was heard in before: the others should say what they spent.
    pub lost: bool,
}

impl<W> Default for Turn<W> {
    fn default() -> Self {
        Self {
            dealt: Vec::new(),
            next: None,
            recall: false,
            again_in: None,
            learning: false,
            lost: false,
        }
    }
}

// === impl LeaseTable ===

impl<W> LeaseTable<W> {
    pub fn new(cells_max: usize, boot: Boot) -> Self {
        let shards = (cells_max / CELLS_PER_SHARD).max(SHARDS_MIN);
        Self {
            shards: (0..shards).map(|_| Mutex::new(Shard::default())).collect(),
            searched: (0..shards).map(|_| AtomicU64::new(0)).collect(),
            room: (cells_max / shards).max(1),
            boot,
            seq: AtomicU64::new(1),
            waiter: AtomicU64::new(1),
            births: Births::new(),
            nodes: AtomicU64::new(0),
            sight: Mutex::new(None),
            ceilings: None,
            patience_ms: PATIENCE_MS,
            counters: Counters::default(),
        }
    }

    #[must_use]
    pub fn keeping(self, ceilings: Arc<dyn Ceilings>) -> Self {
        Self { ceilings: Some(ceilings), ..self }
    }

    /// Who waits has so long in all.
    #[must_use]
    pub fn with_patience(self, patience_ms: u64) -> Self {
        Self { patience_ms, ..self }
    }

    /// How many nodes share the cells, as far as anybody knows.
    pub fn set_nodes(&self, nodes: u64) {
        self.nodes.store(nodes.max(1), Ordering::Relaxed);
    }

    pub fn nodes(&self) -> u64 {
        self.counted().max(1)
    }

    /// The same, or 0 where nobody has counted them.
    pub fn counted(&self) -> u64 {
        self.nodes.load(Ordering::Relaxed)
    }

    pub fn boot(&self) -> Boot {
        self.boot
    }

    /// The first look. `name` is only called for a cell that is new here; `tell` only for an ask that waits.
    pub fn near(
        &self,
        ask: &LeaseAsk,
        name: impl FnOnce() -> CellName,
        tell: impl FnOnce(u64) -> W,
        link: Link,
        now: Millis,
    ) -> Near {
        let mut shard = lock(self.shard(ask.key));
        if !shard.holds(ask.key)
            && shard.len() >= self.room
            && !make_room(&mut shard, now)
            && !self.search_room(ask.key, &mut shard, now)
            && shard.len() >= self.room_for(ask)
        {
            drop(shard);
            return self.detached(ask, name(), link, now);
        }
        let cell = shard.wake_or_enter(ask.key, &self.births, || {
            let born = lock(&self.sight).unwrap_or_else(|| Sight::guess(now));
            let mut cell = LeaseCell::new(ask.key, Arc::new(name()), ask.limit, born);
            cell.lease = self.births.next();
            cell
        });
        if ask.consistency == Consistency::Fast {
            let near = self.near_fast(cell, ask, link, now);
            return near;
        }
        match cell.look(ask, link, self.nodes(), now) {
            First::Dealt(dealt) => {
                self.counters.near.fetch_add(1, Ordering::Relaxed);
                self.mark(cell);
                if link != Link::Up {
                    return Near::Dealt(dealt, None);
                }
                let low = dealt.units.is_some() && cell.runs_low(now);
                let errand = if low {
                    Some(self.send(cell, now))
                } else {
                    cell.wants_ahead(now).then(|| self.send_ahead(cell, now))
                };
                Near::Dealt(dealt, errand)
            }
            First::Wait => {
                self.counters.waited.fetch_add(1, Ordering::Relaxed);
                let id = self.waiter.fetch_add(1, Ordering::Relaxed);
                cell.waiters.push_back(Waiter {
                    id,
                    ask: *ask,
                    tell: tell(id),
                    rounds: 0,
                    waits: 0,
                    until: now + self.patience_ms,
                });
                let errand = cell.flight.is_none().then(|| self.send(cell, now));
                Near::Waits(id, errand)
            }
        }
    }

    fn near_fast(&self, cell: &mut LeaseCell<W>, ask: &LeaseAsk, link: Link, now: Millis) -> Near {
        self.counters.near.fetch_add(1, Ordering::Relaxed);
        if link != Link::Up {
            return Near::Dealt(cell.without_origin(ask, link, self.nodes(), now), None);
        }
        let last_words = cell.turn_fast(ask, now).then(|| self.tell(cell, now));
        let dealt = cell.decide_fast(ask, self.nodes(), now);
        let first = cell.seen.is_none() && cell.flight.is_none() && cell.untold() > 0;
        let stale = !dealt.outcome.admitted() && cell.copy_is_stale(now);
        let due = last_words.is_none()
            && (first || stale || cell.must_tell(&ask.limit, self.nodes(), now));
        Near::Dealt(dealt, last_words.or_else(|| due.then(|| self.tell(cell, now))))
    }

    /// The answer to an errand, or that there was none.
    pub fn absorb(
        &self,
        errand: &Errand,
        answer: Result<&Taken, Missed>,
        sent: Millis,
        heard: Millis,
    ) -> Turn<W> {
        let mut turn = Turn::default();
        if let Ok(taken) = answer {
            *lock(&self.sight) = Some(Sight { origin: taken.now, sent, heard });
            turn.learning = taken.stand == Stand::Learning;
            turn.recall = taken.recall;
        }
        let mut shard = lock(self.shard(errand.key));
        let Some(slot) = shard.slot_mut(errand.key) else { return turn };
        let Some(cell) = slot.awake() else { return turn };
        let ours = cell.flight.as_ref().is_some_and(|flight| flight.take.seq == errand.take.seq);
        if !ours {
            return turn;
        }
        let mut dealing: Dealing<W> = Vec::new();
        match answer {
            Ok(taken) => {
                turn.lost = cell.lacks_record(taken, heard);
                cell.absorb(taken, sent, heard, &mut dealing);
                turn.again_in = cell.parks_for();
            }
            Err(_) => cell.miss(heard, &mut dealing),
        }
        match answer {
            // What is not in the journal cannot be given back by the next process.
            Ok(taken) if taken.lent > 0 && taken.win == cell.win => {
                self.note(cell);
                self.note_ahead(cell);
            }
            _ => self.mark(cell),
        }
        if answer.is_ok() && !turn.learning && !cell.waiters.is_empty() {
            turn.next = Some(self.send(cell, heard));
        } else if answer.is_ok()
            && (cell.owes_before || cell.must_tell(&cell.limit, self.nodes(), heard))
        {
            // What was spent while the call was under way, or in a window that its answer ended.
            turn.next = Some(self.tell(cell, heard));
        } else if answer.is_ok_and(|taken| taken.stand != Stand::WrongWindow) && !cell.owes {
            turn.next = self.tell_ahead(cell, heard);
        }
        turn.dealt = dealing;
        cell.rest();
        // Who was asked for once may not be asked for again for long. A lease in hand is there to be spent soon, and that others
        // lacked it is forgotten in sleep.
        if cell.totals.held() == 0 && !cell.yields(heard) {
            slot.lay_down(heard);
        }
        turn
    }

    /// An asker whose patience is over. `None` when it has been dealt with already.
    pub fn give_up(&self, key: CellKey, waiter: u64, now: Millis) -> Option<Dealt> {
        let mut shard = lock(self.shard(key));
        let cell = shard.awake(key)?;
        let dealt = cell.leave(waiter, now)?;
        cell.rest();
        Some(dealt)
    }

    /// Spends all that was set aside for one decision, or gives all of it back: false where some of it was set
    /// aside in a lease that is over by now.
    pub fn settle(&self, all: &[Units], now: Millis) -> bool {
        let mut order: SmallVec<[usize; 4]> = SmallVec::new();
        order.extend(all.iter().filter(|units| units.is_open()).map(|units| self.place(units.key)));
        order.sort_unstable();
        order.dedup();
        let mut held: SmallVec<[_; 4]> = order.iter().map(|at| lock(&self.shards[*at])).collect();
        let place = |key| order.binary_search(&self.place(key)).unwrap_or(0);
        let whole = all.iter().filter(|units| units.is_aside()).all(|units| {
            held[place(units.key)].awake(units.key).is_some_and(|cell| cell.keeps(units, now))
        });
        for units in all.iter().filter(|units| units.is_open()) {
            if let Some(cell) = held[place(units.key)].awake(units.key) {
                cell.close(units, whole);
            }
        }
        whole
    }

    /// Spends what was set aside for a decision that has been made. What was set aside in a lease that is over by now was
    /// counted as spent when it ended.
    pub fn commit(&self, all: &[Units]) {
        for units in all.iter().filter(|units| units.is_open()) {
            if let Some(cell) = lock(self.shard(units.key)).awake(units.key) {
                cell.close(units, true);
            }
        }
    }

    /// Can these still be spent?
    pub fn keeps(&self, units: &Units, now: Millis) -> bool {
        !units.is_aside()
            || lock(self.shard(units.key))
                .awake(units.key)
                .is_some_and(|cell| cell.keeps(units, now))
    }

    /// What others held of a cell when the origin was last heard.
    pub fn lent_elsewhere(&self, key: CellKey) -> u64 {
        let shard = lock(self.shard(key));
        let elsewhere = |cell: &LeaseCell<W>| cell.seen.as_ref().map_or(0, |seen| seen.elsewhere);
        shard.slot(key).map_or(0, |slot| slot.read(elsewhere))
    }

    /// Gives back what was set aside and not spent.
    pub fn release(&self, units: Units) {
        if !units.is_open() {
            return;
        }
        if let Some(cell) = lock(self.shard(units.key)).awake(units.key) {
            cell.close(&units, false);
        }
    }

    /// How a cell stands for an ask: refused where that is remembered, else what is left. `None` where nothing is known.
    pub fn standing(&self, ask: &LeaseAsk, now: Millis) -> Option<Dealt> {
        let shard = lock(self.shard(ask.key));
        let dealt = shard.slot(ask.key)?.read(|cell| {
            let at_hand = cell.ready() >= ask.cost.get() && cell.covers(&ask.limit);
            let refused =
                if at_hand && now < cell.lapse { None } else { cell.remembered(ask, now) };
            refused.unwrap_or_else(|| cell.admitted(ask, None, cell.origin_time(now)))
        });
        Some(dealt)
    }

    pub fn stats(&self) -> LeaseStats {
        LeaseStats {
            cells: self.shards.iter().map(|shard| lock(shard).len()).sum(),
            near: self.counters.near.load(Ordering::Relaxed),
            waited: self.counters.waited.load(Ordering::Relaxed),
            detached: self.counters.detached.load(Ordering::Relaxed),
        }
    }

    /// How many cells sleep, for those who measure: all of them are looked at.
    pub fn asleep(&self) -> usize {
        let asleep = |slot: &&Slot<W>| matches!(slot, Slot::Asleep(_));
        self.shards.iter().map(|shard| lock(shard).slots().filter(asleep).count()).sum()
    }

    fn send(&self, cell: &mut LeaseCell<W>, now: Millis) -> Errand {
        let take = cell.depart(&self.sender(now), now);
        self.note_ask(cell, &take);
        Errand { key: cell.key, name: Arc::clone(&cell.name), take, detached: None }
    }

    fn tell(&self, cell: &mut LeaseCell<W>, now: Millis) -> Errand {
        let take = cell.report(&self.sender(now));
        Errand { key: cell.key, name: Arc::clone(&cell.name), take, detached: None }
    }

    fn send_ahead(&self, cell: &mut LeaseCell<W>, now: Millis) -> Errand {
        let take = cell.depart_ahead(&self.sender(now));
        self.note_ask_ahead(cell);
        Errand { key: cell.key, name: Arc::clone(&cell.name), take, detached: None }
    }

    /// What the origin must still be told of the next window's lease.
    fn tell_ahead(&self, cell: &mut LeaseCell<W>, now: Millis) -> Option<Errand> {
        let at = cell.origin_time(now);
        cell.ahead.as_ref().filter(|ahead| ahead.is_untold(at))?;
        let take = cell.report_ahead(&self.sender(now))?;
        Some(Errand { key: cell.key, name: Arc::clone(&cell.name), take, detached: None })
    }

    fn sender(&self, now: Millis) -> Sender {
        Sender {
            boot: self.boot,
            seq: self.seq.fetch_add(1, Ordering::Relaxed),
            nodes: self.nodes(),
            now,
            sight: lock(&self.sight).unwrap_or_else(|| Sight::guess(now)),
        }
    }

    /// Forgets those that nobody asked for for longest, wherever they are in the shard.
    #[cold]
    fn search_room(&self, key: CellKey, shard: &mut Shard<W>, now: Millis) -> bool {
        let searched = &self.searched[self.place(key)];
        if now.since(Millis(searched.load(Ordering::Relaxed))) < SEARCH_MS {
            return false;
        }
        searched.store(now.0, Ordering::Relaxed);
        let idle = |slot: &Slot<W>| Some((slot.idle_since(now)?, slot.key()));
        let mut idle: Vec<_> = shard.slots().filter_map(idle).collect();
        let most = (self.room / FORGOTTEN_PART).max(FORGOTTEN_MIN);
        if idle.len() > most {
            idle.select_nth_unstable_by_key(most, |(since, _)| *since);
            idle.truncate(most);
        }
        for (_, key) in &idle {
            shard.remove(*key);
        }
        !idle.is_empty()
    }

    fn shard(&self, key: CellKey) -> &Mutex<Shard<W>> {
        &self.shards[self.place(key)]
    }

    #[allow(clippy::cast_possible_truncation, reason = "a remainder below the number of shards")]
    fn place(&self, key: CellKey) -> usize {
        (key.subject % self.shards.len() as u64) as usize
    }
}

/// Forgets one idle cell of a few that are looked at.
fn make_room<W>(shard: &mut Shard<W>, now: Millis) -> bool {
    let idle =
        shard.slots().take(SAMPLE).filter_map(|slot| Some((slot.idle_since(now)?, slot.key())));
    idle.min_by_key(|(since, _)| *since).is_some_and(|(_, key)| shard.remove(key))
}

impl<W> fmt::Debug for LeaseTable<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseTable").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
