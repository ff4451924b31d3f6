//! A backup or a configuration brought back. A data directory that a server works in is left alone; what was in it before
//! is kept aside. A restore that was interrupted is made again, and no server starts on half of one.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use tollkeeper_store::BackupFile;

use super::backup::{FINGERPRINT, JOURNAL, SECRET};
use super::file::{beside, create_private, remove, sync_folder_of};
use super::{ConfigCopied, Manifest, OfflineError, config, hold_database};
use crate::data_dir::{DataDir, HALF_RESTORED};
use crate::settings::{Database, Settings};

/// How every file of SQLite begins.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Beside the database, where SQLite keeps what is not in it yet.
const LOGS: [&str; 2] = ["-wal", "-shm"];

/// What was brought back.
#[derive(Clone, Debug)]
pub enum Restored {
    Backup {
        /// Where everything is that was there before; nothing where there was nothing.
        aside: Option<PathBuf>,
        manifest: Option<Manifest>,
    },
    Config(ConfigCopied),
}

/// Brings back a backup of SQLite, or a configuration into an empty store of either kind. A backup is held to its
/// manifest, unless the caller does without.
pub async fn restore(
    settings: &Settings,
    from: &Path,
    checked: Checked,
    now_ms: u64,
) -> Result<Restored, OfflineError> {
    let mut start = [0; SQLITE.len()];
    let file = fs::File::open(from).map_err(OfflineError::file(from))?;
    let read = file.take(SQLITE.len() as u64).read(&mut start).map_err(OfflineError::file(from))?;
    match &start[..read] {
        SQLITE => restore_backup(settings, from, checked, now_ms).await,
        [b'{', ..] => Ok(Restored::Config(config::import_config(settings, from).await?)),
        _ => Err(OfflineError::Foreign(from.to_owned())),
    }
}

/// Whether a backup has to have its manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    ByManifest,
    /// Only by what SQLite itself finds.
    ByContent,
}

async fn restore_backup(
    settings: &Settings,
    from: &Path,
    checked: Checked,
    now_ms: u64,
) -> Result<Restored, OfflineError> {
    let Database::Sqlite { path: database } = &settings.database else {
        return Err(OfflineError::NotForPostgres);
    };
    let _held = (DataDir::hold(&settings.data_dir)?, hold_database(settings)?);
    let manifest = match Manifest::check(from) {
        Ok(manifest) => Some(manifest),
        Err(OfflineError::NoManifest { .. }) if checked == Checked::ByContent => None,
        Err(error) => return Err(error),
    };
    let staged = Staged::make(settings, database, from, now_ms).await?;
    let aside = staged.put_in_place(now_ms)?;
    Ok(Restored::Backup { aside, manifest })
}

/// Everything ready beside its place; while this folder is there, no server starts.
struct Staged<'a> {
    data_dir: &'a Path,
    database: &'a Path,
    folder: PathBuf,
}

/// One thing that a restore replaces.
struct Piece {
    staged: PathBuf,
    place: PathBuf,
    /// What has no meaning without the former content of its place.
    with_it: Vec<PathBuf>,
}

// === impl Staged ===

impl<'a> Staged<'a> {
    async fn make(
        settings: &'a Settings,
        database: &'a Path,
        from: &Path,
        now_ms: u64,
    ) -> Result<Self, OfflineError> {
        let folder = settings.data_dir.join(HALF_RESTORED);
        let preparing = beside(&folder, ".preparing");
        let staged = Self { data_dir: &settings.data_dir, database, folder };
        // A restore that was interrupted on its last steps is finished before another one begins.
        if staged.folder.exists() {
            staged.put_in_place(now_ms)?;
        }
        remove(&preparing).map_err(OfflineError::file(&preparing))?;
        fs::create_dir_all(preparing.join(JOURNAL)).map_err(OfflineError::file(&preparing))?;
        let copy = staged.database();
        remove(&copy).map_err(OfflineError::file(&copy))?;
        fs::copy(from, &copy).map_err(OfflineError::file(&copy))?;
        staged.unpack(&preparing, &copy, from).await?;
        fs::rename(&preparing, &staged.folder).map_err(OfflineError::file(&staged.folder))?;
        sync_folder_of(&staged.folder).map_err(OfflineError::file(&staged.folder))?;
        Ok(staged)
    }

    /// Beside its place, which may be on another disk than the data directory.
    fn database(&self) -> PathBuf {
        beside(self.database, ".restored")
    }

    async fn unpack(&self, to: &Path, copy: &Path, from: &Path) -> Result<(), OfflineError> {
        let mut backup = match BackupFile::open(copy).await {
            Ok(backup) => backup,
            Err(error) => return Err(OfflineError::damaged(from, error.to_string())),
        };
        match backup.check().await {
            Ok(Ok(())) => {}
            Ok(Err(found)) => return Err(OfflineError::damaged(from, found)),
            Err(error) => return Err(OfflineError::damaged(from, error.to_string())),
        }
        for (name, parts) in backup.files().await? {
            if !is_companion(&name) {
                return Err(OfflineError::damaged(from, "a file of another kind is in it"));
            }
            let path = to.join(&name);
            let mut file = create_private(&path).map_err(OfflineError::file(&path))?;
            for part in 0..parts {
                let content = backup.part(&name, part).await?;
                file.write_all(&content).map_err(OfflineError::file(&path))?;
            }
            file.sync_all().map_err(OfflineError::file(&path))?;
        }
        backup.strip().await?;
        backup.close().await?;
        let synced = fs::File::open(copy).and_then(|file| file.sync_all());
        synced.map_err(OfflineError::file(copy))
    }

    /// Piece by piece: what is there goes aside, what is staged goes in. A piece that is no longer staged has arrived, so
    /// this may be done again. Its end is what lets servers start. Returns where the former is.
    fn put_in_place(&self, now_ms: u64) -> Result<Option<PathBuf>, OfflineError> {
        let mut aside = None;
        for Piece { staged, place, with_it } in self.pieces() {
            if !staged.exists() {
                continue;
            }
            for former in with_it.iter().chain([&place]).filter(|former| former.exists()) {
                // One that finishes an interrupted restore first has put something aside in the same moment.
                let name = former.file_name().unwrap_or_default();
                let mut folders =
                    (now_ms..).map(|at| former.with_file_name(format!("replaced-{at}")));
                let Some(folder) = folders.find(|folder| !folder.join(name).exists()) else {
                    continue;
                };
                fs::create_dir_all(&folder).map_err(OfflineError::file(&folder))?;
                let to = folder.join(name);
                fs::rename(former, to).map_err(OfflineError::file(former))?;
                aside = Some(folder);
            }
            fs::rename(&staged, &place).map_err(OfflineError::file(&place))?;
            sync_folder_of(&place).map_err(OfflineError::file(&place))?;
        }
        remove(&self.folder).map_err(OfflineError::file(&self.folder))?;
        sync_folder_of(&self.folder).map_err(OfflineError::file(&self.folder))?;
        Ok(aside)
    }

    fn pieces(&self) -> Vec<Piece> {
        let logs = LOGS.map(|log| beside(self.database, log)).to_vec();
        let database =
            Piece { staged: self.database(), place: self.database.to_owned(), with_it: logs };
        let others = [SECRET, FINGERPRINT, JOURNAL].map(|name| Piece {
            staged: self.folder.join(name),
            place: self.data_dir.join(name),
            with_it: Vec::new(),
        });
        others.into_iter().chain([database]).collect()
    }
}

/// A name from a file that somebody else may have made must not lead out of the folder.
fn is_companion(name: &str) -> bool {
    let in_journal = |name: &str| !name.contains('/') && !matches!(name, "" | "." | "..");
    name == SECRET || name == FINGERPRINT || name.strip_prefix("journal/").is_some_and(in_journal)
}
