//! Files that one process at a time holds, and the one beside a SQLite file that a server holds for as long as it lives. It never
//! touches the database itself: closing a second handle on that would drop SQLite's own locks.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::{Fault, StoreError};

/// A SQLite file, kept from every other server whatever data directory that brings: each would admit all of every limit. The
/// kernel lets go of it however the process ends. Commands that only look beside a server open the file without it.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

// === impl FileLock ===

impl FileLock {
    pub fn take(database: &Path) -> Result<Self, StoreError> {
        let taken = Self::beside(database).and_then(|path| lock(&path));
        match taken {
            Ok(Some(file)) => Ok(Self { _file: file }),
            Ok(None) => Err(StoreError::FileInUse { path: database.to_owned() }),
            Err(fault) => Err(StoreError::Unopenable { path: database.to_owned(), fault }),
        }
    }

    /// Where the lock is: beside the file itself, by whichever links it was named.
    pub fn beside(database: &Path) -> Result<PathBuf, Fault> {
        let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty());
        let itself = match database.canonicalize() {
            Ok(itself) => itself,
            // It is yet to be made.
            Err(_) => folder
                .unwrap_or(Path::new("."))
                .canonicalize()?
                .join(database.file_name().ok_or(Fault::NotADatabase)?),
        };
        let mut name = itself.file_name().unwrap_or_default().to_owned();
        name.push(".lock");
        Ok(itself.with_file_name(name))
    }
}

/// Holds a file, which is made where there is none. Nothing where another process holds it.
pub(crate) fn lock(path: &Path) -> Result<Option<File>, Fault> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}
