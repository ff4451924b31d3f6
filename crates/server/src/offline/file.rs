//! Files that have their name only when they are whole, and what they hash to.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::OfflineError;

/// The path with something behind its name.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

/// Where a file is made; nothing is there, and nothing is at its final place.
pub(super) fn unfinished(path: &Path) -> Result<PathBuf, OfflineError> {
    if path.exists() {
        return Err(OfflineError::Exists(path.to_owned()));
    }
    let unfinished = beside(path, ".unfinished");
    remove(&unfinished).map_err(OfflineError::file(&unfinished))?;
    Ok(unfinished)
}

/// Only its owner may read it: backups hold hashes and secrets.
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// On the disk, for its owner only, and under its name.
pub(super) fn finish(unfinished: &Path, path: &Path) -> Result<(), OfflineError> {
    let finished = || {
        fs::set_permissions(unfinished, fs::Permissions::from_mode(0o600))?;
        File::open(unfinished)?.sync_all()?;
        fs::rename(unfinished, path)?;
        sync_folder_of(path)
    };
    finished().map_err(OfflineError::file(path))
}

pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Nothing there is fine.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub(super) fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&buffer[..read]),
        }
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
