//! The file behind the pages of one process: a header, then slots. It grows by whole parts that the disk has room for
//! before anybody touches them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use tollkeeper_core::{Millis, boot_text};

use super::super::mapped::Mapped;
use super::super::slot::{SLOT_BYTES, SLOT_WORDS};
use super::super::{BootId, JournalError, at};
use super::PART_SLOTS;

/// Files of pages begin with this, and nothing else in the directory does.
pub(super) const PREFIX: &str = "usage-";

const MAGIC: u64 = u64::from_le_bytes(*b"TKUSAGE1");
const PART_WORDS: usize = PART_SLOTS * SLOT_WORDS;
pub(super) const PART_BYTES: u64 = (PART_SLOTS * SLOT_BYTES) as u64;

#[derive(Debug)]
pub(super) struct PagesFile {
    file: File,
    path: PathBuf,
}

/// Slots in a file, or in plain memory while there is no room for them on the disk.
#[derive(Debug)]
pub(super) enum Part {
    Kept(Mapped),
    InMemory(Box<[AtomicU64]>),
}

// === impl PagesFile ===

impl PagesFile {
    pub(super) fn create(dir: &Path, boot: BootId) -> Result<Self, JournalError> {
        let path = dir.join(format!("{PREFIX}{}", boot_text(boot.0)));
        // It names keys, so only the owner may read it.
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(&path).map_err(at("create", &path))?;
        Ok(Self { file, path })
    }

    /// Makes the file long enough for this part, and maps it.
    pub(super) fn part(&self, number: usize) -> Result<Part, JournalError> {
        let offset = number as u64 * PART_BYTES;
        if let Err(source) = self.allocate(offset) {
            // What was allocated of it is of no use; the next start would read it as empty slots.
            let _ = self.file.set_len(offset);
            return Err(at("make room in", &self.path)(source));
        }
        let mapped = Mapped::new(&self.file, offset, PART_WORDS).map_err(at("map", &self.path))?;
        Ok(Part::Kept(mapped))
    }

    /// Some file systems cannot promise room; there it is taken by writing.
    fn allocate(&self, offset: u64) -> io::Result<()> {
        loop {
            match fallocate(&self.file, FallocateFlags::empty(), offset, PART_BYTES) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                    let zeroes = vec![0; PART_SLOTS * SLOT_BYTES];
                    return self.file.write_all_at(&zeroes, offset);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

// === impl Part ===

impl Part {
    pub(super) fn in_memory() -> Self {
        Self::InMemory((0..PART_WORDS).map(|_| AtomicU64::new(0)).collect())
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        match self {
            Self::Kept(mapped) => mapped.words(),
            Self::InMemory(words) => words,
        }
    }

    /// With every page of memory in place: the first write to one asks the file system where it will be stored.
    pub(super) fn touched(self) -> Self {
        /// A page of memory, in words.
        const PAGE: usize = 512;
        for word in self.words().iter().step_by(PAGE) {
            word.fetch_add(0, Ordering::Relaxed);
        }
        self
    }

    pub(super) fn is_kept(&self) -> bool {
        matches!(self, Self::Kept(_))
    }
}

/// The first slot names the process; without it nothing behind it can be told apart from another's.
pub(super) fn write_header(words: &[AtomicU64], boot: BootId) {
    for (place, word) in words.iter().zip(header(boot)) {
        place.store(word, Ordering::SeqCst);
    }
}

fn header(boot: BootId) -> [u64; 4] {
    let (first, second) = boot.0.split_at(8);
    let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight));
    let checksum = crc32fast::hash(&boot.0);
    [MAGIC, word(first), word(second), u64::from(checksum)]
}

/// When somebody last wrote to the file; a file that does not tell is taken for an old one.
pub(super) fn written_at(path: &Path) -> Millis {
    let modified = fs::metadata(path).and_then(|about| about.modified()).ok();
    let since = modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Millis(u64::try_from(since.as_millis()).unwrap_or(0))
}

/// The whole slots of a file and what is left over at its end, or `None` where the header is not whole.
pub(super) fn read(path: &Path) -> Result<Option<(BootId, Vec<u8>)>, JournalError> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(at("read", path))?,
    };
    let boot = || {
        let (head, _) = bytes.split_at_checked(SLOT_BYTES)?;
        let boot = BootId(*head[8..].first_chunk()?);
        let expected: Vec<u8> = header(boot).iter().flat_map(|word| word.to_le_bytes()).collect();
        // The rest of the header is empty; whatever stands there was not written by us.
        let rest = &head[expected.len()..];
        (head.starts_with(&expected) && rest.iter().all(|byte| *byte == 0)).then_some(boot)
    };
    Ok(boot().map(|boot| (boot, bytes)))
}
