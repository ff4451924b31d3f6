//! What a backup says of itself, in a small file beside it: how large it is, what it hashes to, what is in it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::OfflineError;
use super::file::{beside, create_private, finish, sha256, unfinished};

const FORMAT: &str = "tollkeeper backup 1";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    format: String,
    pub version: String,
    /// Unix milliseconds.
    pub created_at: u64,
    pub schema: u64,
    pub bytes: u64,
    pub sha256: String,
    /// Rows of each table.
    pub tables: BTreeMap<String, u64>,
    /// What belongs to the database: secret, fingerprint, journal.
    pub files: Vec<String>,
}

// === impl Manifest ===

impl Manifest {
    pub(super) fn of(
        backup: &Path,
        created_at: u64,
        schema: u64,
        tables: BTreeMap<String, u64>,
        files: Vec<String>,
    ) -> Result<Self, OfflineError> {
        let bytes = fs::metadata(backup).map_err(OfflineError::file(backup))?.len();
        let sha256 = sha256(backup).map_err(OfflineError::file(backup))?;
        let (format, version) = (FORMAT.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        Ok(Self { format, version, created_at, schema, bytes, sha256, tables, files })
    }

    /// `FILE.manifest.json`
    pub(super) fn path(backup: &Path) -> PathBuf {
        beside(backup, ".manifest.json")
    }

    pub(super) fn write(&self, backup: &Path) -> Result<(), OfflineError> {
        let path = Self::path(backup);
        let unfinished = unfinished(&path)?;
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        let written = create_private(&unfinished).and_then(|mut file| file.write_all(&text));
        written.map_err(OfflineError::file(&unfinished))?;
        finish(&unfinished, &path)
    }

    /// The manifest of a backup that is as it says.
    pub(super) fn check(backup: &Path) -> Result<Self, OfflineError> {
        let path = Self::path(backup);
        let Ok(text) = fs::read(&path) else {
            let manifest = path;
            return Err(OfflineError::NoManifest { path: backup.to_owned(), manifest });
        };
        let said: Self = serde_json::from_slice(&text)
            .map_err(|_| OfflineError::damaged(&path, "no manifest of ours"))?;
        let found = sha256(backup).map_err(OfflineError::file(backup))?;
        if said.format != FORMAT || found != said.sha256 {
            return Err(OfflineError::damaged(backup, "it is not what its manifest says"));
        }
        Ok(said)
    }
}
