//! One shard of the cell table: a part of all cells behind one lock.
//! Bounded: a full shard parks the cell that is furthest from its limit, and never forgets one that still matters.

use tollkeeper_core::{Cost, Limit, Millis, Outcome, State};

use crate::cell::{Cell, ShortStep};
use crate::parking::Parking;
use crate::ports::{ParkedCell, Which};
use crate::resets::Resets;
use crate::slots::Slots;
use crate::whereabouts::Post;
use crate::{CellKey, Change};

/// How many cells an eviction looks at. Of 16 random cells the emptiest is in the emptiest
/// tenth four times out of five; more would only hold the lock longer.
const EVICTION_SAMPLE: usize = 16;

/// Evictions and resets that wait for the journal, at most: what a shard evicts in 20 ms is far less.
/// Beyond it they are dropped and the journal is told to write everything anew.
const UNTOLD_MAX: usize = 4096;

#[derive(Debug)]
pub(crate) struct Shard {
    /// Marked are those that changed since the journal last asked.
    cells: Slots,
    /// The most cells this shard holds.
    room: usize,
    /// Where the next eviction starts looking.
    hand: usize,
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

/// Where a cell is and what it would become, for as long as its shard is locked and no cell comes or goes.
#[derive(Debug)]
pub(crate) struct Ahead {
    slot: usize,
    /// Absent where it has yet to be worked out.
    next: Option<State>,
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
    pub(crate) fn new(room: usize, post: Post) -> Self {
        let room = room.max(1);
        Self {
            cells: Slots::for_cells(room, post),
            room,
            hand: 0,
            moved: Vec::new(),
            untold: false,
            parking: Parking::default(),
            resets: Resets::default(),
        }
    }

    /// Where the cell of this key is, for as long as none comes or goes.
    #[inline]
    pub(crate) fn place(&self, key: CellKey) -> Option<usize> {
        self.cells.place(key)
    }

    /// Spends from the cell in this slot where that takes few instructions, which it mostly does: see [`ShortStep`].
    #[inline]
    pub(crate) fn step_shortly<S: ShortStep>(
        &mut self,
        slot: usize,
        limit: &Limit,
        cost: Cost,
        now: Millis,
    ) -> Option<Outcome> {
        let (outcome, spent) = S::take(self.cells.at_mut(slot)?, limit, cost, now)?;
        if spent {
            self.cells.mark(slot);
        }
        Some(outcome)
    }

    /// Spends from a cell that is here; `None` when it is not.
    pub(crate) fn spend(&mut self, touch: &Touch<'_>) -> Option<Outcome> {
        let slot = self.cells.place(touch.key)?;
        self.step(slot, touch)
    }

    /// Spends from the cell in this slot, whatever there is to be said. Never inlined: it would stand in the way of
    /// [`Shard::step_shortly`], beside which it is called.
    #[inline(never)]
    pub(crate) fn step(&mut self, slot: usize, touch: &Touch<'_>) -> Option<Outcome> {
        let cell = self.cells.at_mut(slot)?;
        let (outcome, spent) = cell.step(touch.limit, touch.cost, touch.now);
        if spent {
            self.cells.mark(slot);
        }
        Some(outcome)
    }

    /// What spending from a cell that is here would come to; `None` when it is not.
    #[inline]
    pub(crate) fn look_ahead(&self, touch: &Touch<'_>) -> Option<(Outcome, Ahead)> {
        let slot = self.cells.place(touch.key)?;
        let cell = self.cells.at(slot)?;
        let (outcome, next) = cell.state.ahead(touch.limit, touch.cost, touch.now);
        Some((outcome, Ahead { slot, next }))
    }

    /// The same without a view to what it would become.
    pub(crate) fn probe(&self, touch: &Touch<'_>) -> Option<Outcome> {
        let cell = self.cells.find(touch.key)?;
        Some(cell.state.probe(touch.limit, touch.cost, touch.now))
    }

    /// Spends from a cell what was looked ahead to and admitted, under the same lock.
    #[inline]
    pub(crate) fn go_ahead(&mut self, touch: &Touch<'_>, ahead: Ahead, outcome: &Outcome) {
        let Some(cell) = self.cells.at_mut(ahead.slot) else { return };
        match ahead.next {
            Some(next) => cell.spent(next, touch.limit, outcome),
            None => {
                cell.step(touch.limit, touch.cost, touch.now);
            }
        }
        self.cells.mark(ahead.slot);
    }

    /// The state of a cell wherever it is; it stays there.
    pub(crate) fn state(&self, key: CellKey) -> Option<&State> {
        let here = self.cells.find(key).map(|cell| &cell.state);
        here.or_else(|| self.parking.peek(key).map(|cell| &cell.state))
    }

    /// Is there no need to ask the shelf for this cell?
    pub(crate) fn holds(&self, key: CellKey) -> bool {
        self.cells.find(key).is_some() || self.parking.stays(key)
    }

    /// Puts the state of a cell after an admitted ask, making room if the cell is new.
    pub(crate) fn keep(&mut self, touch: &Touch<'_>, state: State, outcome: &Outcome) -> Evicted {
        if let Some(slot) = self.cells.place(touch.key)
            && let Some(cell) = self.cells.at_mut(slot)
        {
            cell.keep(state, touch.limit, outcome);
            self.cells.mark(slot);
            return Evicted::Nothing;
        }
        let mut cell = Cell::fresh(touch.key, touch.namespace, touch.limit);
        cell.keep(state, touch.limit, outcome);
        let (slot, evicted) = self.insert(cell, touch.now);
        self.cells.mark(slot);
        evicted
    }

    /// Takes a cell back from the parking or from storage, unless the table already has it.
    pub(crate) fn restore(&mut self, parked: ParkedCell, now: Millis) -> Evicted {
        let cell = Cell::from(parked);
        if cell.is_idle(now) || self.cells.find(cell.key).is_some() {
            return Evicted::Nothing;
        }
        self.insert(cell, now).1
    }

    pub(crate) fn remove(&mut self, key: CellKey) {
        self.cells.remove(key);
    }

    /// Takes a cell out of the table and says how it stood for this limit. A parked one stays where it is.
    pub(crate) fn take(&mut self, key: CellKey, limit: &Limit, now: Millis) -> Option<Outcome> {
        let stood = self.cells.find(key)?.state.probe(limit, Cost::PEEK, now);
        self.cells.remove(key);
        self.tell(Change::Left(key));
        Some(stood)
    }

    fn insert(&mut self, cell: Cell, now: Millis) -> (usize, Evicted) {
        let evicted =
            if self.cells.len() >= self.room { self.evict(now) } else { Evicted::Nothing };
        (self.cells.insert(cell), evicted)
    }

    /// Drops an idle cell, or parks the emptiest of a sample.
    fn evict(&mut self, now: Millis) -> Evicted {
        let Some(victim) = self.victim(now) else { return Evicted::Nothing };
        let Some(cell) = self.cells.remove(victim) else { return Evicted::Nothing };
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
        let slots = self.cells.slots();
        let mut best: Option<(&Cell, u16)> = None;
        let mut seen = 0;
        for step in 0..slots {
            let at = (self.hand + step) % slots;
            let Some(cell) = self.cells.at(at) else { continue };
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
        self.cells.remove_if(|cell| cell.is_idle(now), drop);
        self.cells.shrink();
        before - self.cells.len()
    }

    /// Sets the counters of these cells back, here and in the parking. Returns how many there were.
    pub(crate) fn reset(&mut self, which: Which) -> Vec<CellKey> {
        self.resets.note(which);
        let parked = self.parking.forget(|cell| which.covers(cell.key, cell.namespace));
        let mut gone = Vec::new();
        let here = |cell: &Cell| which.covers(cell.key, cell.namespace);
        self.cells.remove_if(here, |cell| gone.push(cell.key));
        gone.extend(parked);
        for key in &gone {
            self.tell(Change::Left(*key));
        }
        gone
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

    /// Tells the journal some of what changed since it last asked, in an order that can be replayed: `from` is where
    /// the call before left off. What moved comes first, also what moved since then: a cell that was reset and made
    /// again must not be told of before its reset.
    pub(crate) fn drain(&mut self, from: usize, out: &mut Vec<Change>) -> Option<usize> {
        out.append(&mut self.moved);
        // A burst must not pin its memory for ever.
        self.moved.shrink_to(256);
        self.cells.unmark(from, |cell| out.push(Change::Cell(cell.parked())))
    }

    /// False when changes had to be dropped since the last call: then only a snapshot of everything is whole.
    pub(crate) fn told_all(&mut self) -> bool {
        !std::mem::take(&mut self.untold)
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
        self.cells.slots()
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
