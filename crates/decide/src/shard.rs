//! One shard of the cell table: a part of all cells behind one lock.
//! Bounded: a full shard parks the cell that is furthest from its limit, and never forgets one that still matters.

use hashbrown::HashTable;
use tollkeeper_core::{Cost, FixedWindow, Limit, Millis, Outcome, State};

use crate::cell::Cell;
use crate::parking::Parking;
use crate::ports::{ParkedCell, Which};
use crate::resets::Resets;
use crate::{CellKey, Change};

/// How many cells an eviction looks at. Of 16 random cells the emptiest is in the emptiest
/// tenth four times out of five; more would only hold the lock longer.
const EVICTION_SAMPLE: usize = 16;

/// Changes that wait for the journal, at most, besides one per cell: what a shard evicts in 20 ms is far less.
/// Beyond it they are dropped and the journal is told to write everything anew.
const UNTOLD_MAX: usize = 4096;

#[derive(Debug)]
pub(crate) struct Shard {
    cells: HashTable<Cell>,
    /// The most cells this shard holds.
    room: usize,
    /// Where the next eviction starts looking.
    hand: usize,
    /// Cells that changed since the journal last asked.
    dirty: Vec<CellKey>,
    /// What the journal must know of evictions and resets, in order.
    moved: Vec<Change>,
    /// Some changes were dropped because nobody asked for them in time.
    untold: bool,
    pub(crate) parking: Parking,
    pub(crate) resets: Resets,
}

/// What one ask does to one cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch<'a> {
    pub(crate) key: CellKey,
    pub(crate) namespace: u64,
    pub(crate) limit: &'a Limit,
    pub(crate) cost: Cost,
    pub(crate) now: Millis,
}

/// A cell that had to leave, and whether anything still depends on it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Evicted {
    Nothing,
    Idle,
    Parked(CellKey),
}

// === impl Shard ===

impl Shard {
    pub(crate) fn new(room: usize) -> Self {
        Self {
            cells: HashTable::new(),
            room: room.max(1),
            hand: 0,
            dirty: Vec::new(),
            moved: Vec::new(),
            untold: false,
            parking: Parking::default(),
            resets: Resets::default(),
        }
    }

    /// Spends from a cell that is here; `None` when it is not.
    pub(crate) fn spend(&mut self, touch: Touch<'_>) -> Option<Outcome> {
        let key = touch.key;
        let cell = self.cells.find_mut(key.exact, |cell| cell.key == key)?;
        let old = std::mem::replace(&mut cell.state, State::Fixed(FixedWindow::default()));
        let (outcome, next) = old.spend(touch.limit, touch.cost, touch.now);
        let changed = outcome.admitted() && touch.cost != Cost::PEEK;
        if changed {
            cell.keep(next, touch.limit, &outcome);
            if !std::mem::replace(&mut cell.dirty, true) {
                self.tell_state(key);
            }
        } else {
            cell.state = next;
        }
        Some(outcome)
    }

    /// The state of a cell wherever it is; it stays there.
    pub(crate) fn state(&self, key: CellKey) -> Option<&State> {
        let here = self.cells.find(key.exact, |cell| cell.key == key).map(|cell| &cell.state);
        here.or_else(|| self.parking.peek(key).map(|cell| &cell.state))
    }

    /// Is there no need to ask the shelf for this cell?
    pub(crate) fn holds(&self, key: CellKey) -> bool {
        self.cells.find(key.exact, |cell| cell.key == key).is_some() || self.parking.stays(key)
    }

    /// Puts the state of a cell after an admitted ask, making room if the cell is new.
    pub(crate) fn keep(&mut self, touch: Touch<'_>, state: State, outcome: &Outcome) -> Evicted {
        let key = touch.key;
        if let Some(cell) = self.cells.find_mut(key.exact, |cell| cell.key == key) {
            cell.keep(state, touch.limit, outcome);
            if !std::mem::replace(&mut cell.dirty, true) {
                self.tell_state(key);
            }
            return Evicted::Nothing;
        }
        let mut cell = Cell::fresh(key, touch.namespace, touch.limit);
        cell.keep(state, touch.limit, outcome);
        cell.dirty = true;
        self.tell_state(key);
        self.insert(cell, touch.now)
    }

    /// Takes a cell back from the parking or from storage, unless the table already has it.
    pub(crate) fn restore(&mut self, parked: ParkedCell, now: Millis) -> Evicted {
        let cell = Cell::from(parked);
        if cell.is_idle(now)
            || self.cells.find(cell.key.exact, |other| other.key == cell.key).is_some()
        {
            return Evicted::Nothing;
        }
        self.insert(cell, now)
    }

    pub(crate) fn remove(&mut self, key: CellKey) {
        if let Ok(entry) = self.cells.find_entry(key.exact, |cell| cell.key == key) {
            entry.remove();
        }
    }

    fn insert(&mut self, cell: Cell, now: Millis) -> Evicted {
        let evicted =
            if self.cells.len() >= self.room { self.evict(now) } else { Evicted::Nothing };
        self.cells.insert_unique(cell.key.exact, cell, |cell| cell.key.exact);
        evicted
    }

    /// Drops an idle cell, or parks the emptiest of a sample.
    fn evict(&mut self, now: Millis) -> Evicted {
        let Some(victim) = self.victim(now) else { return Evicted::Nothing };
        let Ok(entry) = self.cells.find_entry(victim.exact, |cell| cell.key == victim) else {
            return Evicted::Nothing;
        };
        let (cell, _) = entry.remove();
        if cell.is_idle(now) {
            return Evicted::Idle;
        }
        let parked = cell.parked();
        self.tell(Change::Cell(parked.clone()));
        self.parking.push(parked);
        Evicted::Parked(victim)
    }

    /// Drops a parked cell for lack of room. A restart must not bring back what this process went on without.
    pub(crate) fn give_up(&mut self, key: CellKey) {
        self.parking.take(key);
        self.tell(Change::Left(key));
    }

    fn victim(&mut self, now: Millis) -> Option<CellKey> {
        let buckets = self.cells.num_buckets();
        let mut best: Option<(&Cell, u16)> = None;
        let mut seen = 0;
        for step in 0..buckets {
            let at = (self.hand + step) % buckets;
            let Some(cell) = self.cells.get_bucket(at) else { continue };
            let rank = if cell.is_idle(now) { 0 } else { cell.fill.max(1) };
            if best.is_none_or(|(_, least)| rank < least) {
                best = Some((cell, rank));
            }
            seen += 1;
            if rank == 0 || seen == EVICTION_SAMPLE {
                self.hand = at + 1;
                break;
            }
        }
        best.map(|(cell, _)| cell.key)
    }

    /// Forgets cells that are as good as fresh and gives memory back. Returns how many went.
    pub(crate) fn sweep(&mut self, now: Millis) -> usize {
        let before = self.cells.len();
        self.cells.retain(|cell| !cell.is_idle(now));
        // Below a quarter full the table shrinks to twice what it holds: room to grow, no flapping.
        if self.cells.capacity() > 64 && self.cells.len() * 4 < self.cells.capacity() {
            self.cells.shrink_to(self.cells.len() * 2, |cell| cell.key.exact);
        }
        before - self.cells.len()
    }

    /// Sets the counters of these cells back, here and in the parking. Returns how many there were.
    pub(crate) fn reset(&mut self, which: Which) -> Vec<CellKey> {
        self.resets.note(which);
        let parked = self.parking.forget(|cell| which.covers(cell.key, cell.namespace));
        let here = self
            .cells
            .extract_if(|cell| which.covers(cell.key, cell.namespace))
            .map(|cell| cell.key);
        let gone: Vec<_> = here.chain(parked).collect();
        for key in &gone {
            self.tell(Change::Left(*key));
        }
        gone
    }

    fn tell_state(&mut self, key: CellKey) {
        if self.dirty.len() < UNTOLD_MAX.max(2 * self.room) {
            self.dirty.push(key);
        } else {
            self.untold = true;
        }
    }

    fn tell(&mut self, change: Change) {
        if self.moved.len() < UNTOLD_MAX {
            self.moved.push(change);
        } else {
            self.untold = true;
        }
    }

    pub(crate) fn forget_untold(&mut self) {
        self.moved.clear();
    }

    /// Tells the journal what changed since it last asked, in an order that can be replayed.
    /// False when some of it had to be dropped: then only a snapshot of everything is whole.
    pub(crate) fn drain_changes(&mut self, out: &mut Vec<Change>) -> bool {
        out.append(&mut self.moved);
        for key in self.dirty.drain(..) {
            // A cell that was reset and made again is listed twice.
            let cell =
                self.cells.find_mut(key.exact, |cell| cell.key == key).filter(|cell| cell.dirty);
            if let Some(cell) = cell {
                cell.dirty = false;
                out.push(Change::Cell(cell.parked()));
            }
        }
        let whole = !std::mem::take(&mut self.untold);
        if !whole {
            self.cells.iter_mut().for_each(|cell| cell.dirty = false);
        }
        // A burst must not pin its memory for ever.
        self.dirty.shrink_to(1024);
        self.moved.shrink_to(256);
        whole
    }

    /// The shelf has this one: from now on it is found there, unless the table took it back meanwhile.
    pub(crate) fn shelved(&mut self, key: CellKey) {
        if self.parking.settle(key) {
            self.tell(Change::Left(key));
        }
    }

    /// Every cell that matters at `now`, for a checkpoint.
    pub(crate) fn snapshot(&self, now: Millis, out: &mut Vec<Change>) {
        let here = self.cells.iter().filter(|cell| !cell.is_idle(now)).map(Cell::parked);
        // What is on the shelf must not be here too: a reset that finds it only there tells the journal nothing.
        out.extend(here.chain(self.parking.unsettled().cloned()).map(Change::Cell));
    }

    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    #[cfg(all(test, not(feature = "shuttle")))]
    pub(crate) fn capacity(&self) -> usize {
        self.cells.capacity()
    }
}

// === impl Which ===

impl Which {
    pub(crate) fn covers(self, key: CellKey, namespace: u64) -> bool {
        match self {
            Self::Subject(subject) => key.subject == subject,
            Self::Namespace(tag) => namespace == tag,
        }
    }
}
