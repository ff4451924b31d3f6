//! The book of pages: which slot counts what, what of it was told, and which slots may be used anew. Behind one lock that
//! a key asks for once a minute. It never touches the slots themselves.

use std::collections::VecDeque;
use std::ops::Range;

use tollkeeper_core::{Component, Millis, Usage};

use super::super::BootId;
use super::super::slot::SlotName;
use super::index::Index;
use super::{KEPT_MS, PART_SLOTS, PARTS_MAX};

#[derive(Debug)]
pub(super) struct Book {
    /// By slot; the first of all is the header.
    cells: Vec<Option<Cell>>,
    index: Index,
    /// Slots whose totals the ledger shows, the earliest first. One that was taken up again since is passed over.
    settled: VecDeque<u32>,
    /// Of each part there is: is it on no disk?
    in_memory: Vec<bool>,
    unsettled: u64,
}

#[derive(Debug)]
pub(super) struct Cell {
    pub(super) name: SlotName,
    pub(super) told: Usage,
    /// What the ledger was seen to show.
    pub(super) shown: Usage,
    pub(super) settled_at: Option<Millis>,
}

/// Where a name may be counted.
pub(super) enum Claim {
    Found(u32),
    /// To be opened first.
    Fresh(u32),
    /// There is a slot when this part is there.
    NeedsRoom(usize),
    NoRoom,
}

// === impl Book ===

impl Book {
    /// With room for all cells that there can be: a list that grows moves everything, for milliseconds in which requests wait.
    /// Memory that nobody has written to yet is not taken from anybody.
    pub(super) fn new() -> Self {
        let mut cells = Vec::with_capacity(PARTS_MAX * PART_SLOTS);
        cells.push(None);
        Self {
            cells,
            index: Index::default(),
            settled: VecDeque::new(),
            in_memory: vec![false],
            unsettled: 0,
        }
    }

    /// How many parts there should be by now. Every key in use takes a slot as a minute begins, so there is room for as many
    /// as the last minute had, and for half a part at least.
    pub(super) fn parts_wanted(&self) -> usize {
        let ahead = self.index.newest().max(PART_SLOTS / 2);
        (self.cells.len() + ahead).div_ceil(PART_SLOTS).min(PARTS_MAX)
    }

    /// A slot is used anew when it has been settled for long enough, or for want of any other.
    pub(super) fn claim(
        &mut self,
        name: &SlotName,
        bound: usize,
        read: impl Fn(u32) -> Option<Usage>,
    ) -> Claim {
        if let Some(slot) = self.index.get(name) {
            return Claim::Found(slot);
        }
        let now = name.minute.start();
        if let Some(slot) = self.reusable(Some(now), &read) {
            return Claim::Fresh(slot);
        }
        let next = self.cells.len();
        if next < bound.min(self.in_memory.len() * PART_SLOTS) {
            return u32::try_from(next).map_or(Claim::NoRoom, Claim::Fresh);
        }
        if next < bound && self.in_memory.len() < PARTS_MAX {
            return Claim::NeedsRoom(self.in_memory.len());
        }
        self.reusable(None, &read).map_or(Claim::NoRoom, Claim::Fresh)
    }

    /// The slot was opened for this name.
    pub(super) fn enter(&mut self, slot: u32, name: SlotName) -> u32 {
        let at = usize::try_from(slot).unwrap_or(usize::MAX);
        self.index.insert(&name, slot);
        let (told, shown) = (Usage::default(), Usage::default());
        let cell = Some(Cell { name, told, shown, settled_at: None });
        if at == self.cells.len() {
            self.cells.push(cell);
        } else if let Some(place) = self.cells.get_mut(at) {
            *place = cell;
        }
        self.unsettled += 1;
        slot
    }

    pub(super) fn grown(&mut self, in_memory: bool) {
        self.in_memory.push(in_memory);
    }

    /// The cell, if it is still about the same thing.
    pub(super) fn cell(&mut self, slot: u32, about: &Component) -> Option<&mut Cell> {
        let cell = self.cells.get_mut(usize::try_from(slot).ok()?)?.as_mut()?;
        let same = cell.name.minute == about.minute
            && cell.name.project_id == about.project_id
            && cell.name.key_id == about.key_id;
        same.then_some(cell)
    }

    pub(super) fn settle(&mut self, slot: u32, about: &Component, now: Millis) {
        let usage = about.usage;
        let Some(cell) = self.cell(slot, about) else { return };
        if cell.settled_at.is_none() {
            cell.told = usage;
            cell.shown = usage;
            cell.settled_at = Some(now);
            self.settled.push_back(slot);
            self.unsettled -= 1;
        }
    }

    pub(super) fn unsettle_all(&mut self) {
        for cell in self.cells.iter_mut().flatten() {
            cell.told = Usage::default();
            cell.shown = Usage::default();
            cell.settled_at = None;
        }
        self.settled.clear();
        self.unsettled = self.index.len() as u64;
    }

    /// `None` behind the last one.
    pub(super) fn cells(&self, range: Range<usize>) -> Option<impl Iterator<Item = (u32, &Cell)>> {
        let end = range.end.min(self.cells.len());
        let cells = self.cells.get(range.start..end).filter(|cells| !cells.is_empty())?;
        let numbered = (range.start..end).filter_map(|at| u32::try_from(at).ok()).zip(cells);
        Some(numbered.filter_map(|(at, cell)| Some((at, cell.as_ref()?))))
    }

    pub(super) fn waiting(&self) -> u64 {
        self.unsettled
    }

    pub(super) fn unkept(&self) -> u64 {
        if !self.in_memory.contains(&true) {
            return 0;
        }
        let unkept = |at: usize| self.in_memory.get(at / PART_SLOTS) == Some(&true);
        let open = |cell: &Option<Cell>| cell.as_ref().is_some_and(|one| one.settled_at.is_none());
        let cells = self.cells.iter().enumerate();
        cells.filter(|(at, cell)| unkept(*at) && open(cell)).count() as u64
    }

    /// The earliest settled slot, if it has been for long enough. What came to it after all is told once more instead.
    fn reusable(
        &mut self,
        now: Option<Millis>,
        read: impl Fn(u32) -> Option<Usage>,
    ) -> Option<u32> {
        loop {
            let slot = *self.settled.front()?;
            let at = usize::try_from(slot).ok()?;
            let Some(cell) = self.cells.get_mut(at).and_then(Option::as_mut) else {
                self.settled.pop_front();
                continue;
            };
            let settled_at = cell.settled_at?;
            if now.is_some_and(|now| now.since(settled_at) < KEPT_MS) {
                return None;
            }
            self.settled.pop_front();
            if read(slot) != Some(cell.told) {
                cell.settled_at = None;
                self.unsettled += 1;
                continue;
            }
            self.index.remove(&cell.name);
            self.cells[at] = None;
            return Some(slot);
        }
    }
}

// === impl Cell ===

impl Cell {
    pub(super) fn component(&self, boot: BootId, usage: Usage) -> Component {
        Component {
            minute: self.name.minute,
            boot: boot.0,
            project_id: self.name.project_id.clone(),
            key_id: self.name.key_id.clone(),
            usage,
        }
    }
}
