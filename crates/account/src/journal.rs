//! The journal: what must survive the process, appended to files and read back at the next start.
//! States are whole, so that replaying too much is harmless; a torn or corrupt tail is set aside, never fatal.
//! It never reads a clock and never touches the table: changes come in, changes go out.

mod lease;
mod mapped;
mod marker;
mod pages;
mod place;
mod record;
mod recovered;
mod segment;
mod shared;
mod slot;

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tollkeeper_core::Millis;
use tollkeeper_decide::Change;

use crate::lease_left::LeaseLeft;
use marker::Marker;
use record::Record;
use recovered::replay;
use segment::Segment;

pub use pages::{Former, KEPT_MS, Noted, Pages, PagesReading};
pub use recovered::Recovered;
pub use shared::SharedJournal;

/// A new checkpoint is due when this much was written since the last one, or as much as it
/// took, whichever is more: the journal stays within some three times what it protects.
const CHECKPOINT_BYTES_MIN: u64 = 16 << 20;

/// One process life. Random, so that a copied data directory never passes for the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BootId(pub [u8; 16]);

#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    boot: BootId,
    segment: Segment,
    /// What the last whole checkpoint took.
    checkpoint_bytes: u64,
    /// Set while a checkpoint is being written: the bytes before it began.
    checkpoint_from: Option<u64>,
    intact: Marker,
    /// A write failed since the last checkpoint began.
    failed: bool,
    /// The segment began after a write had failed: what is in it has gaps before it.
    retrying: bool,
    /// Held as long as the journal is open: two processes would delete each other's segments.
    _lock: File,
}

/// A checkpoint whose records are all written: what is left is to make it last, and to delete what it replaces.
/// Slow on a slow disk, so that it may be done beside the writing.
#[derive(Debug)]
pub struct Sealed {
    file: File,
    dir: PathBuf,
    number: u64,
}

/// What one process had spent of a key's credits, in total. Written before the answer leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreditSpent {
    pub boot: BootId,
    pub key_id: Arc<str>,
    pub total: u64,
}

/// What a journal holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    Cell(Change),
    Spent(CreditSpent),
    Lease(LeaseLeft),
}

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("cannot {action} {path}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("another process uses {path}; stop it, or give this one a data directory of its own")]
    InUse { path: PathBuf },
    #[error("a write to the journal failed since its last checkpoint began")]
    Gap,
    #[error("cannot get random bytes for a boot id")]
    Random,
    #[error("cannot start a thread for the journal")]
    Thread(#[source] io::Error),
    #[error("a thread of the journal ended by a panic")]
    Panicked,
}

// === impl Journal ===

impl Journal {
    /// Reads back what earlier processes left in `dir`, oldest first, then opens a segment of its own.
    pub fn open(
        dir: &Path,
        now: Millis,
        mut each: impl FnMut(Entry),
    ) -> Result<(Self, Recovered), JournalError> {
        fs::create_dir_all(dir).map_err(at("create", dir))?;
        let lock = lock(dir)?;
        let mut recovered = Recovered::default();
        let numbers = segment::numbers_in(dir)?;
        for number in &numbers {
            recovered.clean = replay(dir, *number, &mut recovered, &mut each)?;
        }
        let intact = Marker::new(dir);
        recovered.whole =
            recovered.set_aside.is_empty() && (numbers.is_empty() || intact.is_there());
        // What is missing stays missing as long as these files are there, for every process that reads them.
        if recovered.whole { intact.make() } else { intact.remove() }?;
        let mut boot = [0; 16];
        getrandom::fill(&mut boot).map_err(|_| JournalError::Random)?;
        let next = numbers.last().map_or(1, |last| last.saturating_add(1));
        let segment = Segment::create(dir, next, BootId(boot), now)?;
        let journal = Self {
            dir: dir.into(),
            boot: BootId(boot),
            segment,
            checkpoint_bytes: 0,
            checkpoint_from: None,
            intact,
            failed: false,
            retrying: false,
            _lock: lock,
        };
        Ok((journal, recovered))
    }

    /// Appends changes in order. After an error the tail is cut back to the last whole record.
    pub fn append(&mut self, changes: &[Change]) -> Result<(), JournalError> {
        let written =
            record::batches(changes).try_for_each(|batch| self.segment.append(&batch.encode()));
        self.judge(written)
    }

    /// Notes what was spent of credits. The kernel has it when this returns, whatever becomes of the process.
    pub fn note_spent(&mut self, spent: &[CreditSpent]) -> Result<(), JournalError> {
        let bytes: Vec<u8> = spent.iter().flat_map(|one| Record::spent(one).encode()).collect();
        let written = self.segment.append(&bytes);
        self.judge(written)
    }

    /// The same for ceilings of leases.
    pub fn note_leases(&mut self, leases: &[LeaseLeft]) -> Result<(), JournalError> {
        let bytes: Vec<u8> = leases.iter().flat_map(|one| Record::lease(one).encode()).collect();
        let written = self.segment.append(&bytes);
        self.judge(written)
    }

    /// A journal with a gap must not be taken for a whole one by the next process.
    fn judge(&mut self, written: Result<(), JournalError>) -> Result<(), JournalError> {
        if written.is_err() && !self.failed {
            self.failed = true;
            // Only a disk that takes no change at all keeps it, and there nothing could be done about it.
            let _ = self.intact.remove();
        }
        written
    }

    /// Something is missing that only a new checkpoint can bring.
    pub fn has_gap(&self) -> bool {
        self.failed
    }

    /// Is it time to write everything anew, so that older files can go?
    pub fn checkpoint_due(&self) -> bool {
        let written = self.segment.bytes();
        self.checkpoint_from.is_none()
            && written > 2 * self.checkpoint_bytes.max(CHECKPOINT_BYTES_MIN)
    }

    /// Starts a fresh segment. Until [`Journal::end_checkpoint`] the older ones stay: a process that dies
    /// in between finds all it needs in both.
    pub fn begin_checkpoint(&mut self, now: Millis) -> Result<(), JournalError> {
        if self.failed && self.retrying {
            // On a full disk every try would leave another half checkpoint behind.
            self.segment.clear()?;
        } else if !self.segment.is_empty() {
            self.segment = Segment::create(&self.dir, self.segment.number() + 1, self.boot, now)?;
            self.retrying = self.failed;
        }
        self.failed = false;
        self.checkpoint_from = Some(self.segment.bytes());
        Ok(())
    }

    /// All that matters is in this segment now: syncs it and deletes the older ones.
    pub fn end_checkpoint(&mut self) -> Result<(), JournalError> {
        self.seal_checkpoint()?.settle()?;
        self.settled()
    }

    /// The first part of [`Journal::end_checkpoint`]; the second, [`Sealed::settle`], may be done on another thread,
    /// and [`Journal::settled`] is the last. Refused when a write has failed since the checkpoint began.
    pub fn seal_checkpoint(&mut self) -> Result<Sealed, JournalError> {
        let from = self.checkpoint_from.take().unwrap_or(0);
        if self.failed {
            return Err(JournalError::Gap);
        }
        let file = self.segment.same_file()?;
        self.checkpoint_bytes = self.segment.bytes() - from;
        self.retrying = false;
        Ok(Sealed { file, dir: self.dir.clone(), number: self.segment.number() })
    }

    /// The older files are gone, and with them what was missing there.
    pub fn settled(&mut self) -> Result<(), JournalError> {
        if self.failed || self.intact.is_there() {
            return Ok(());
        }
        let made = self.intact.make();
        self.judge(made)
    }

    /// The last record of a process that ends in order.
    pub fn close(&mut self) -> Result<(), JournalError> {
        self.segment.append(&Record::closed().encode())?;
        self.segment.sync()
    }

    /// Bytes in the current segment.
    pub fn bytes(&self) -> u64 {
        self.segment.bytes()
    }

    pub fn boot(&self) -> BootId {
        self.boot
    }

    /// The pages that this process counts usage in, and what those before it left in theirs. Once per process.
    pub fn pages(&self) -> Result<(Pages, Vec<Former>), JournalError> {
        Pages::open(&self.dir, self.boot)
    }
}

// === impl Sealed ===

impl Sealed {
    /// Only when the new segment and its name are on the disk may the older ones go.
    pub fn settle(self) -> Result<(), JournalError> {
        let path = segment::path(&self.dir, self.number);
        self.file.sync_data().map_err(at("sync", &path))?;
        File::open(&self.dir).and_then(|dir| dir.sync_all()).map_err(at("sync", &self.dir))?;
        for number in segment::numbers_in(&self.dir)? {
            if number < self.number {
                let path = segment::path(&self.dir, number);
                fs::remove_file(&path).map_err(at("delete", &path))?;
            }
        }
        Ok(())
    }
}

/// The system lets go of the lock when the process ends, however it ends.
fn lock(dir: &Path) -> Result<File, JournalError> {
    let path = dir.join("lock");
    let open = File::options().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = open.map_err(at("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JournalError::InUse { path: dir.into() }),
        Err(TryLockError::Error(source)) => Err(at("lock", &path)(source)),
    }
}

/// Names the file and what was tried, for whoever reads the error.
fn at<'a>(action: &'static str, path: &'a Path) -> impl Fn(io::Error) -> JournalError + 'a {
    move |source| JournalError::Io { action, path: path.to_owned(), source }
}
