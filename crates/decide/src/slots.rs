//! The cells of one shard in one flat array, each at or shortly behind the place its key asks for: whoever finds a cell has
//! waited for one cache line, or for neighbours of it. Open addressing with linear probing.
//! It grows by doubling, but never beyond what it was told it will hold.

use smallvec::SmallVec;

use crate::CellKey;
use crate::cell::Cell;
use crate::whereabouts::{Post, fetch_once, home};

/// Fewer would only be outgrown at once.
const SLOTS_MIN: usize = 16;

/// Slots whose marks share a word.
const BLOCK: usize = u64::BITS as usize;
/// Blocks with marks that are unmarked in one go: some 25 cells under heavy load, 256 at most. That is
/// a microsecond or a few, which a request can wait for without going to sleep.
const UNMARKED_AT_ONCE: usize = 4;

/// Every run of full slots ends at an empty one, so there must always be one.
#[derive(Debug)]
pub(crate) struct Slots {
    cells: Vec<Option<Cell>>,
    /// One bit per slot, apart from the cells: whoever reads the marks need not write to the cells.
    marks: Vec<u64>,
    len: usize,
    /// The most cells there will be.
    room: usize,
    post: Post,
}

// === impl Slots ===

impl Slots {
    /// Where the cells are is told at `post` whenever there is room for more or fewer of them.
    pub(crate) fn for_cells(room: usize, post: Post) -> Self {
        Self { cells: Vec::new(), marks: Vec::new(), len: 0, room, post }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many slots there are, full and empty.
    pub(crate) fn slots(&self) -> usize {
        self.cells.len()
    }

    pub(crate) fn at(&self, slot: usize) -> Option<&Cell> {
        self.cells.get(slot)?.as_ref()
    }

    pub(crate) fn at_mut(&mut self, slot: usize) -> Option<&mut Cell> {
        self.cells.get_mut(slot)?.as_mut()
    }

    pub(crate) fn find(&self, key: CellKey) -> Option<&Cell> {
        self.at(self.place(key)?)
    }

    /// Puts in a cell that is not here yet. Returns its slot.
    pub(crate) fn insert(&mut self, cell: Cell) -> usize {
        if self.len >= usable(self.cells.len()) {
            self.resize(self.len + 1);
        }
        self.len += 1;
        self.put(cell)
    }

    pub(crate) fn remove(&mut self, key: CellKey) -> Option<Cell> {
        let at = self.place(key)?;
        self.take(at)
    }

    /// Removes all that `leaves` picks, and hands each to `gone`.
    pub(crate) fn remove_if(&mut self, leaves: impl Fn(&Cell) -> bool, mut gone: impl FnMut(Cell)) {
        let slots = self.cells.len();
        // Backwards from an empty slot: what moves up into a freed one comes from behind it, and was looked at already.
        let Some(empty) = self.cells.iter().position(Option::is_none) else { return };
        for at in (0..empty).rev().chain((empty..slots).rev()) {
            if self.at(at).is_some_and(&leaves) {
                self.take(at).into_iter().for_each(&mut gone);
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().flatten()
    }

    /// Marks the cell in this slot. The mark goes wherever the cell goes, and leaves with it.
    #[inline]
    pub(crate) fn mark(&mut self, slot: usize) {
        let marks = &mut self.marks[slot / BLOCK];
        let bit = 1 << (slot % BLOCK);
        // Only read where it is there already: another core may be reading it too.
        if *marks & bit == 0 {
            *marks |= bit;
        }
    }

    /// Takes the marks off some cells, from this block on, and shows the cells to `each`.
    /// Returns the block to go on with.
    pub(crate) fn unmark(&mut self, from: usize, mut each: impl FnMut(&Cell)) -> Option<usize> {
        let mut marked =
            self.marks.iter_mut().enumerate().skip(from).filter(|(_, marks)| **marks != 0);
        let some: SmallVec<[(usize, u64); UNMARKED_AT_ONCE]> = marked
            .by_ref()
            .take(UNMARKED_AT_ONCE)
            .map(|(block, marks)| (block, std::mem::take(marks)))
            .collect();
        let next = marked.next().map(|(block, _)| block);
        let slots = || some.iter().flat_map(|(block, marks)| slots_of(*block, *marks));
        // All at once, so that they are waited for once and not one after the other.
        slots().for_each(|slot| fetch_once(&self.cells[slot]));
        slots().for_each(|slot| self.cells[slot].iter().for_each(&mut each));
        next
    }

    /// Below a quarter full it shrinks to twice what it holds: room to grow, no flapping.
    pub(crate) fn shrink(&mut self) {
        if self.cells.len() > 4 * SLOTS_MIN && self.len * 4 < usable(self.cells.len()) {
            self.resize(self.len);
        }
    }

    /// The slot of this cell.
    #[inline]
    pub(crate) fn place(&self, key: CellKey) -> Option<usize> {
        let mut at = home(key, self.cells.len());
        loop {
            // Past the end it goes on at the front.
            let Some(slot) = self.cells.get(at) else {
                if at == 0 {
                    return None;
                }
                at = 0;
                continue;
            };
            if slot.as_ref()?.key == key {
                return Some(at);
            }
            at += 1;
        }
    }

    fn put(&mut self, cell: Cell) -> usize {
        let mut at = home(cell.key, self.cells.len());
        while self.cells[at].is_some() {
            at = self.after(at);
        }
        self.cells[at] = Some(cell);
        at
    }

    /// Empties a slot and closes the gap: every cell behind it that may be nearer to its place moves up.
    fn take(&mut self, mut gap: usize) -> Option<Cell> {
        let taken = self.cells.get_mut(gap)?.take()?;
        self.len -= 1;
        self.take_mark(gap);
        let mut at = self.after(gap);
        while let Some(cell) = &self.cells[at] {
            let wanted = home(cell.key, self.cells.len());
            if self.distance(wanted, at) >= self.distance(gap, at) {
                self.cells.swap(gap, at);
                if self.take_mark(at) {
                    self.mark(gap);
                }
                gap = at;
            }
            at = self.after(at);
        }
        Some(taken)
    }

    fn take_mark(&mut self, slot: usize) -> bool {
        let marks = &mut self.marks[slot / BLOCK];
        let bit = 1 << (slot % BLOCK);
        let marked = *marks & bit != 0;
        *marks &= !bit;
        marked
    }

    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.cells.len() { 0 } else { slot + 1 }
    }

    /// Steps from one slot forward to another.
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.cells.len() - from }
    }

    /// Makes it as large as `cells` need, with as many again to come if there is room for them.
    fn resize(&mut self, cells: usize) {
        let cells = (2 * cells).min(self.room).max(cells);
        let slots = slots_for(cells).max(SLOTS_MIN);
        let empty = std::iter::repeat_with(|| None).take(slots).collect();
        let old = std::mem::replace(&mut self.cells, empty);
        let old_marks = std::mem::replace(&mut self.marks, vec![0; slots.div_ceil(BLOCK)]);
        self.post.tell(&self.cells, &self.marks);
        for (slot, cell) in old.into_iter().enumerate() {
            let Some(cell) = cell else { continue };
            let at = self.put(cell);
            if old_marks[slot / BLOCK] >> (slot % BLOCK) & 1 == 1 {
                self.mark(at);
            }
        }
    }
}

/// The marked slots of a block.
fn slots_of(block: usize, mut marks: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let slot = (marks != 0).then(|| block * BLOCK + marks.trailing_zeros() as usize)?;
        marks &= marks - 1;
        Some(slot)
    })
}

/// Four fifths, and always an empty one.
fn usable(slots: usize) -> usize {
    slots / 5 * 4
}

fn slots_for(cells: usize) -> usize {
    cells.div_ceil(4) * 5
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use tollkeeper_core::{Limit, Quota, Window};

    use super::*;
    use crate::whereabouts::Whereabouts;

    /// Nobody asks.
    fn nowhere() -> Post {
        Post::new(&Arc::default(), 0)
    }

    fn cell(key: CellKey, namespace: u64) -> Cell {
        let limit = Limit::fixed_window(Quota::new(1).unwrap(), Window::Day);
        Cell::fresh(key, namespace, &limit)
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Insert(CellKey),
        Remove(CellKey),
        RemoveIf(u64),
        Mark(CellKey),
        Unmark(usize),
        Shrink,
    }

    /// Few keys, crowded around a few places and around the end, so that runs meet and go around.
    fn key() -> impl Strategy<Value = CellKey> {
        let exact = prop_oneof![
            Just(0),
            Just(u64::MAX),
            (0_u64..8).prop_map(|place| place << 61),
            (0_u64..40).prop_map(|place| u64::MAX - (place << 56)),
        ];
        (0_u64..6, exact).prop_map(|(subject, exact)| CellKey { subject, exact })
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => key().prop_map(Step::Insert),
            4 => key().prop_map(Step::Remove),
            1 => (0_u64..6).prop_map(Step::RemoveIf),
            4 => key().prop_map(Step::Mark),
            1 => (0_usize..4).prop_map(Step::Unmark),
            1 => Just(Step::Shrink),
        ]
    }

    /// What a cell holds, and whether it is marked.
    type Model = HashMap<CellKey, (u64, bool)>;

    fn take_step(step: Step, slots: &mut Slots, model: &mut Model, n: u64) {
        match step {
            Step::Insert(key) => {
                if let Some((held, _)) = model.get_mut(&key) {
                    *held = n;
                    let at = slots.place(key).unwrap();
                    slots.at_mut(at).unwrap().namespace = n;
                } else {
                    model.insert(key, (n, false));
                    let at = slots.insert(cell(key, n));
                    assert_eq!(slots.at(at).unwrap().key, key);
                }
            }
            Step::Remove(key) => {
                let held = model.remove(&key).map(|(held, _)| held);
                assert_eq!(slots.remove(key).map(|cell| cell.namespace), held);
            }
            Step::Mark(key) => {
                let at = slots.place(key);
                assert_eq!(at.is_some(), model.contains_key(&key));
                if let Some(at) = at {
                    slots.mark(at);
                }
                model.entry(key).and_modify(|(_, marked)| *marked = true);
            }
            Step::Unmark(from) => {
                slots.unmark(from, |cell| {
                    let (_, marked) = model.get_mut(&cell.key).unwrap();
                    assert!(std::mem::take(marked), "{:?}", cell.key);
                });
            }
            Step::RemoveIf(subject) => {
                let mut gone = Vec::new();
                slots.remove_if(|cell| cell.key.subject == subject, |cell| gone.push(cell.key));
                let mut expected: Vec<_> =
                    model.extract_if(|key, _| key.subject == subject).map(|(key, _)| key).collect();
                gone.sort_unstable();
                expected.sort_unstable();
                assert_eq!(gone, expected);
            }
            Step::Shrink => slots.shrink(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 512 }))]

        #[test]
        fn slots_hold_what_a_hash_map_holds(steps in vec(step(), 1..400), room in 1_usize..300) {
            let mut slots = Slots::for_cells(room, nowhere());
            let mut model = Model::new();
            for (step, n) in steps.into_iter().zip(0..) {
                take_step(step, &mut slots, &mut model, n);
                prop_assert_eq!(slots.len(), model.len());
                prop_assert!(slots.len() <= usable(slots.slots()));
            }
            for (key, (n, _)) in &model {
                prop_assert_eq!(slots.find(*key).map(|cell| cell.namespace), Some(*n));
            }
            prop_assert_eq!(slots.iter().count(), model.len());
            let mut marked = Vec::new();
            let mut from = Some(0);
            while let Some(block) = from {
                from = slots.unmark(block, |cell| marked.push(cell.key));
            }
            let mut expected: Vec<_> =
                model.into_iter().filter(|(_, (_, marked))| *marked).map(|(key, _)| key).collect();
            marked.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(marked, expected);
        }
    }

    #[test]
    fn slots_for_all_their_cells_are_never_outgrown() {
        for room in [1, 2, 13, 64, 1000, 13_104] {
            let mut slots = Slots::for_cells(room, nowhere());
            for n in 0..room as u64 {
                let exact = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                slots.insert(cell(CellKey { subject: n, exact }, 0));
            }
            assert!(slots.slots() <= slots_for(room).max(SLOTS_MIN), "{room}");
        }
    }

    #[test]
    fn the_whereabouts_are_told_whenever_the_slots_move() {
        let all: Arc<[Whereabouts]> = (0..3).map(|_| Whereabouts::default()).collect();
        let mut slots = Slots::for_cells(1_000, Post::new(&all, 1));
        let mut seen = std::collections::HashSet::new();
        let mut assert_told = |slots: &Slots| {
            let (cells, marks) = (slots.cells.as_ptr().addr(), slots.marks.as_ptr().addr());
            assert_eq!(all[1].told(), (slots.slots(), cells, marks));
            seen.insert(slots.slots());
        };
        for n in 0..1_000 {
            let key = CellKey { subject: n, exact: n.wrapping_mul(0x9e37_79b9_7f4a_7c15) };
            slots.insert(cell(key, 0));
            assert_told(&slots);
        }
        slots.remove_if(|cell| cell.key.subject > 10, drop);
        slots.shrink();
        assert_told(&slots);
        assert!(seen.len() > 5, "{seen:?}");
        assert_eq!([&all[0], &all[2]].map(Whereabouts::told), [(0, 0, 0); 2]);
    }

    #[test]
    fn nothing_is_found_where_nothing_ever_was() {
        let mut slots = Slots::for_cells(10, nowhere());
        let key = CellKey { subject: 0, exact: 0 };
        assert!(slots.find(key).is_none() && slots.place(key).is_none());
        assert!(slots.remove(key).is_none() && slots.at(0).is_none());
        slots.remove_if(|_| true, drop);
        slots.shrink();
        assert_eq!((slots.len(), slots.slots()), (0, 0));
    }
}
