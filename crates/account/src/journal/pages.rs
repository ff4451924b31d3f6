//! Pages of the journal: usage counted in memory that is a file. A request adds to its key's slot of this minute and is in
//! the kernel's hands before its answer leaves; the next process reads what this one left. Totals only grow, and a slot is
//! used anew only when the ledger in the database shows all of it. Full or failing, it counts on and says so.

mod book;
mod file;
mod former;
mod index;
mod room;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tollkeeper_core::{Component, Millis, Minute, Usage, boot_text};
use tollkeeper_decide::fetch_ahead;

use super::slot::{self, SlotName};
use super::{BootId, JournalError};
use book::{Book, Claim};
use file::PagesFile;
use room::{Maker, Room};

pub use former::Former;

/// 256 KiB at a time: a file of that size is soon allocated, and few keys need no more.
pub(super) const PART_SLOTS: usize = 1_024;

/// 64 MiB in all, or 262,144 pairs of key and minute: what 10,000 busy keys count in 26 minutes. Whoever has more keys
/// while the database is away longer than that loses their names, not their totals.
const PARTS_MAX: usize = 256;

/// Kept for projects, whose keys then share one slot a minute.
const RESERVED_SLOTS: usize = 4_096;

/// A minute that is over may still get what was decided at its end and recorded late.
const LATE_MS: u64 = 30_000;

/// So long a slot is left as it is after the ledger has shown it: a database that comes back as it was a minute ago
/// is then told again.
pub const KEPT_MS: u64 = 600_000;

#[derive(Debug)]
pub struct Pages {
    boot: BootId,
    room: Arc<Room>,
    maker: Maker,
    book: Mutex<Book>,
    counts: Counts,
}

/// What went otherwise than it should.
#[derive(Debug, Default)]
struct Counts {
    overflowed: AtomicU64,
    lost: AtomicU64,
}

/// For metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagesReading {
    /// Pairs of key and minute that wait for the ledger.
    pub waiting: u64,
    /// Of them those that a kill would cost: there was no room for them on the disk.
    pub unkept: u64,
    /// Pairs of key and minute counted under their project alone.
    pub overflowed: u64,
    /// Requests that found no slot at all.
    pub lost: u64,
    /// Parts that could not be added to the file.
    pub failures: u64,
}

/// A slot as it stood when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    slot: u32,
    pub component: Component,
}

// === impl Pages ===

impl Pages {
    /// Makes the file of this process, and reads those of others that are there.
    pub(super) fn open(dir: &Path, boot: BootId) -> Result<(Self, Vec<Former>), JournalError> {
        let former = Former::read_all(dir)?;
        let file = PagesFile::create(dir, boot)?;
        let first = file.part(0)?;
        file::write_header(first.words(), boot);
        let room = Arc::new(Room::new(file, first, PARTS_MAX));
        let (maker, book) = (Maker::start(&room), Mutex::new(Book::new()));
        Ok((Self { boot, room, maker, book, counts: Counts::default() }, former))
    }

    /// Where this minute of this key is counted: found once a minute, and remembered by the key. `None` only where there
    /// is no room for anything at all; the caller's count is then lost, and known to be.
    pub fn find(&self, project_id: &Arc<str>, key_id: &Arc<str>, minute: Minute) -> Option<u32> {
        let name =
            SlotName { minute, project_id: Arc::clone(project_id), key_id: Arc::clone(key_id) };
        let mut book = self.book();
        if name.fits()
            && let Some(slot) = self.claim(&mut book, name)
        {
            return Some(slot);
        }
        self.counts.overflowed.fetch_add(1, Ordering::Relaxed);
        let project = SlotName { minute, project_id: Arc::clone(project_id), key_id: "".into() };
        self.claim(&mut book, project)
    }

    pub fn add(&self, slot: u32, usage: Usage) {
        match self.slot(slot) {
            Some(words) => slot::add(words, usage),
            None => self.lose(usage),
        }
    }

    /// Has a slot fetched that will be added to: it lies where nobody was since the key's last request.
    pub fn fetch(&self, slot: u32) {
        self.slot(slot).into_iter().for_each(fetch_ahead);
    }

    /// Counted nowhere else.
    pub fn lose(&self, usage: Usage) {
        self.counts.lost.fetch_add(usage.requests + usage.denied, Ordering::Relaxed);
    }

    /// What has grown since it was last told, some of it at a time; asked until there is nothing left.
    pub fn untold(&self, most: usize) -> Vec<Noted> {
        self.noted(most, |cell, usage| usage != cell.told)
    }

    /// Everything that the ledger has not shown yet, told or not.
    pub fn open_slots(&self, most: usize) -> Vec<Noted> {
        self.noted(most, |cell, usage| cell.settled_at.is_none() && !usage.is_none())
    }

    /// Somebody who keeps it has heard this.
    pub fn told(&self, noted: &[Noted]) {
        let mut book = self.book();
        for one in noted {
            if let Some(cell) = book.cell(one.slot, &one.component) {
                cell.told = one.component.usage;
            }
        }
    }

    /// Slots of minutes that are over, and whose totals were told but not seen in the ledger yet.
    pub fn unsettled(&self, now: Millis, most: usize) -> Vec<Noted> {
        self.noted(most, |cell, usage| {
            cell.settled_at.is_none() && usage == cell.told && is_over(cell.name.minute, now)
        })
    }

    /// The ledger shows this. A slot that has grown meanwhile stays.
    pub fn settle(&self, noted: &[Noted], now: Millis) {
        let mut book = self.book();
        for one in noted.iter().filter(|one| is_over(one.component.minute, now)) {
            let unchanged = self.slot(one.slot).map(slot::read) == Some(one.component.usage);
            if unchanged {
                book.settle(one.slot, &one.component, now);
            }
        }
    }

    /// By the minute, what the ledger was seen to show of all that is still here.
    pub fn shown(&self) -> BTreeMap<Minute, Usage> {
        let mut sums = BTreeMap::new();
        for from in (0..).step_by(PART_SLOTS) {
            let book = self.book();
            let Some(cells) = book.cells(from..from + PART_SLOTS) else { break };
            for (_, cell) in cells.filter(|(_, cell)| !cell.shown.is_none()) {
                let sum: &mut Usage = sums.entry(cell.name.minute).or_default();
                *sum = sum.plus(cell.shown);
            }
        }
        sums
    }

    /// The ledger has forgotten something it had shown: everything that is still here is told again.
    pub fn tell_all_again(&self) {
        self.book().unsettle_all();
    }

    pub fn reading(&self) -> PagesReading {
        let book = self.book();
        PagesReading {
            waiting: book.waiting(),
            unkept: book.unkept(),
            overflowed: self.counts.overflowed.load(Ordering::Relaxed),
            lost: self.counts.lost.load(Ordering::Relaxed),
            failures: self.room.failures(),
        }
    }

    /// The process that counts here.
    pub fn boot(&self) -> BootId {
        self.boot
    }

    /// The same, as 32 hex digits.
    pub fn boot_text(&self) -> String {
        boot_text(self.boot.0)
    }

    fn claim(&self, book: &mut Book, name: SlotName) -> Option<u32> {
        let bound =
            PARTS_MAX * PART_SLOTS - if name.key_id.is_empty() { 0 } else { RESERVED_SLOTS };
        loop {
            match book.claim(&name, bound, |at| self.slot(at).map(slot::read)) {
                Claim::Found(at) => return Some(at),
                Claim::Fresh(at) => {
                    slot::open(self.slot(at)?, &name);
                    let slot = book.enter(at, name);
                    self.maker.want(book.parts_wanted());
                    return Some(slot);
                }
                Claim::NeedsRoom(part) => book.grown(!self.room.part(part)?.is_kept()),
                Claim::NoRoom => return None,
            }
        }
    }

    fn noted(&self, most: usize, wanted: impl Fn(&book::Cell, Usage) -> bool) -> Vec<Noted> {
        let mut noted = Vec::new();
        let mut from = 0;
        // Whoever needs a slot meanwhile waits for one part only.
        while noted.len() < most {
            let book = self.book();
            let Some(cells) = book.cells(from..from + PART_SLOTS) else { break };
            for (at, cell) in cells {
                let Some(usage) = self.slot(at).map(slot::read) else { continue };
                if wanted(cell, usage) {
                    noted.push(Noted { slot: at, component: cell.component(self.boot, usage) });
                }
            }
            from += PART_SLOTS;
        }
        noted.truncate(most);
        noted
    }

    fn slot(&self, slot: u32) -> Option<&[AtomicU64]> {
        self.room.slot(slot)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_over(minute: Minute, now: Millis) -> bool {
    now >= minute.end() + LATE_MS
}
