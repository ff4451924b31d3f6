//! A file that is there as long as nothing is missing in the journal: no write has failed, and all of it could be read.
//! A full disk still lets a file be removed, which is why it is this way round.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{JournalError, at};

#[derive(Debug)]
pub(super) struct Marker(PathBuf);

// === impl Marker ===

impl Marker {
    pub(super) fn new(dir: &Path) -> Self {
        Self(dir.join("intact"))
    }

    pub(super) fn is_there(&self) -> bool {
        self.0.exists()
    }

    pub(super) fn make(&self) -> Result<(), JournalError> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(&self.0).map(drop).map_err(at("create", &self.0))
    }

    pub(super) fn remove(&self) -> Result<(), JournalError> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(at("delete", &self.0)),
        }
    }
}
