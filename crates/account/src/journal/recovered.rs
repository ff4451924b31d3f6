//! What a start finds in the files of earlier processes, segment by segment.

use std::path::{Path, PathBuf};

use super::segment::{self, SegmentReader};
use super::{BootId, CreditSpent, Entry, JournalError};

/// What a start found.
#[derive(Debug, Default)]
pub struct Recovered {
    pub changes: u64,
    /// Files that hold what could not be read, for a person to look at.
    pub set_aside: Vec<PathBuf>,
    /// The last process ended in order.
    pub clean: bool,
    /// Whose files these are, or whose spending they name: what such a process held, nobody holds any more.
    pub boots: Vec<BootId>,
    /// Nothing is missing: every write of these processes got here, and all of it could be read.
    pub whole: bool,
    /// Some of it was written before the machine last started, or in a directory that this one was copied from: it may be
    /// older than what these processes did last.
    pub moved: bool,
}

/// Replays one segment; returns whether it ends with the record of an orderly end.
pub(super) fn replay(
    dir: &Path,
    number: u64,
    recovered: &mut Recovered,
    each: &mut impl FnMut(Entry),
) -> Result<bool, JournalError> {
    let path = segment::path(dir, number);
    let mut reader = SegmentReader::open(&path)?;
    if let Some(boot) = reader.boot() {
        recovered.note_boot(boot);
    }
    recovered.moved |= !reader.is_in_place();
    let mut clean = false;
    while let Some(record) = reader.next_record()? {
        clean = record.is_closed();
        let Some(entries) = record.entries() else {
            reader.reject();
            break;
        };
        for entry in entries {
            recovered.changes += 1;
            // A checkpoint repeats totals of earlier processes as long as the bank has not heard of them.
            if let Entry::Spent(CreditSpent { boot, .. }) = entry {
                recovered.note_boot(boot);
            }
            each(entry);
        }
    }
    if let Some(aside) = reader.set_rest_aside()? {
        recovered.set_aside.push(aside);
        clean = false;
    }
    Ok(clean)
}

// === impl Recovered ===

impl Recovered {
    fn note_boot(&mut self, boot: BootId) {
        if !self.boots.contains(&boot) {
            self.boots.push(boot);
        }
    }
}
