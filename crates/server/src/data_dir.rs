//! The data directory: made if missing, locked for one server, and home of the generated secret.
//! Every failure says which path, what is wrong and what to do.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::redacted::Redacted;

/// 32 random bytes as hex.
const SECRET_CHARS: usize = 64;

/// There while a restore puts things in place.
pub const HALF_RESTORED: &str = "restoring";

#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    /// Held as long as the server lives; the kernel lets go of it however the process ends.
    _lock: File,
}

#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    #[error("cannot use the data directory {path}: {hint}")]
    Unusable { path: PathBuf, hint: String, source: io::Error },
    #[error(
        "the data directory {path} is in use by another server: stop that one, or give this one its own \
         directory with TOLLKEEPER_DATA_DIR"
    )]
    Locked { path: PathBuf },
    #[error(
        "a restore of the data directory {path} was interrupted: run `tollkeeper restore` once more"
    )]
    HalfRestored { path: PathBuf },
    #[error(
        "{path} does not hold a secret any more: restore it from a backup. Without it no stored key and no \
         counter can be found again; delete it only together with the whole data directory"
    )]
    SecretBroken { path: PathBuf },
    #[error(
        "the data directory {path} was written under another secret: with this one no stored key and no counter \
         in it can be found. Give the TOLLKEEPER_SECRET it was made with (or none, if it was none), or start \
         with an empty data directory"
    )]
    OtherSecret { path: PathBuf },
}

// === impl DataDir ===

impl DataDir {
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        let held = Self::hold(path)?;
        if path.join(HALF_RESTORED).exists() {
            return Err(DataDirError::HalfRestored { path: path.into() });
        }
        Ok(held)
    }

    /// Keeps servers out of it.
    pub fn hold(path: &Path) -> Result<Self, DataDirError> {
        let unusable = |at: &Path, source| DataDirError::unusable(at, source);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|e| unusable(path, e))?;
        let lock_path = path.join("lock");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(&lock_path).map_err(|e| unusable(&lock_path, e))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.into(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(DataDirError::Locked { path: path.into() }),
            Err(TryLockError::Error(source)) => Err(unusable(&lock_path, source)),
        }
    }

    pub fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    /// How many nodes were counted last.
    pub fn head_count(&self) -> PathBuf {
        self.path.join("nodes")
    }

    /// Refuses a secret that is not the one this directory was written under.
    pub fn hold_to(&self, fingerprint: [u8; 16]) -> Result<(), DataDirError> {
        match self.fingerprint()? {
            Some(known) if known != hex(&fingerprint) => {
                Err(DataDirError::OtherSecret { path: self.path.clone() })
            }
            _ => Ok(()),
        }
    }

    /// The secret that this directory is written under from here on, once everything else has accepted it: a wrong one that
    /// was remembered would keep the right one out.
    pub fn remember(&self, fingerprint: [u8; 16]) -> Result<(), DataDirError> {
        if self.fingerprint()?.is_some() {
            return Ok(());
        }
        let path = self.fingerprint_path();
        write_whole(&path, &hex(&fingerprint)).map_err(|e| DataDirError::unusable(&path, e))
    }

    fn fingerprint(&self) -> Result<Option<String>, DataDirError> {
        let path = self.fingerprint_path();
        match fs::read_to_string(&path) {
            Ok(known) => Ok(Some(known.trim_end().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(DataDirError::unusable(&path, source)),
        }
    }

    fn fingerprint_path(&self) -> PathBuf {
        self.path.join("secret.fingerprint")
    }

    /// The secret of this data directory, made at the first start.
    pub fn secret(&self) -> Result<Redacted<String>, DataDirError> {
        let path = self.path.join("secret");
        match File::open(&path) {
            Ok(file) => read_secret(&path, file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_secret(&path).map_err(|source| DataDirError::unusable(&path, source))
            }
            Err(source) => Err(DataDirError::unusable(&path, source)),
        }
    }
}

fn read_secret(path: &Path, file: File) -> Result<Redacted<String>, DataDirError> {
    let mut text = String::new();
    let broken = || DataDirError::SecretBroken { path: path.into() };
    file.take(4096).read_to_string(&mut text).map_err(|_| broken())?;
    let text = text.trim_end().to_owned();
    if text.len() == SECRET_CHARS { Ok(Redacted::new(text)) } else { Err(broken()) }
}

fn make_secret(path: &Path) -> io::Result<Redacted<String>> {
    let mut bytes = [0; SECRET_CHARS / 2];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let text = hex(&bytes);
    write_whole(path, &text)?;
    Ok(Redacted::new(text))
}

/// Written beside its place and moved there, so that a crash leaves either no file or a whole one.
pub fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    // The name must last as surely as what was hashed under it.
    File::open(path.parent().unwrap_or(path))?.sync_all()
}

fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

// === impl DataDirError ===

impl DataDirError {
    fn unusable(path: &Path, source: io::Error) -> Self {
        let hint = match source.kind() {
            io::ErrorKind::PermissionDenied => {
                "no permission; run the server as the directory's owner, or give it another TOLLKEEPER_DATA_DIR"
            }
            io::ErrorKind::ReadOnlyFilesystem => {
                "it is on a read-only file system; give the server another TOLLKEEPER_DATA_DIR"
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "the disk is full; free some space"
            }
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                "something that is no directory is in its place"
            }
            _ => "see the reason below",
        };
        Self::Unusable { path: path.into(), hint: hint.to_owned(), source }
    }
}
