//! A backup of a node with SQLite, made while its server runs: the database as of one moment, and the files without which
//! it is of no use. The journal is copied first: what it tells of and the database does not have yet is then in the one,
//! and what has gone on into the database meanwhile is in the other. Both are told in totals, so twice does no harm.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use tollkeeper_store::{BackupFile, PART_BYTES};

use super::file::{create_private, finish, unfinished};
use super::{Manifest, OfflineError};
use crate::settings::{Database, Settings};

/// In the data directory, beside the journal.
pub(super) const SECRET: &str = "secret";
pub(super) const FINGERPRINT: &str = "secret.fingerprint";
pub(super) const JOURNAL: &str = "journal";

/// What was made.
#[derive(Clone, Debug)]
pub struct BackedUp {
    pub path: PathBuf,
    pub manifest: Manifest,
}

/// A file that goes along, as it was when it was read.
struct Companion {
    name: String,
    content: Vec<u8>,
}

/// Makes a backup in a new file, and its manifest beside it.
pub async fn back_up(
    settings: &Settings,
    to: &Path,
    created_at: u64,
) -> Result<BackedUp, OfflineError> {
    let Database::Sqlite { path: database } = &settings.database else {
        return Err(OfflineError::NotForPostgres);
    };
    if !database.exists() {
        return Err(OfflineError::NoDatabase(database.clone()));
    }
    let unfinished = unfinished(to)?;
    let companions = companions(&settings.data_dir)?;
    // Nobody else's to read from its first byte on: the secret goes in with the rest.
    create_private(&unfinished).map_err(OfflineError::file(&unfinished))?;
    let mut backup = BackupFile::copy(database, &unfinished).await?;
    if let Err(found) = backup.check().await? {
        return Err(OfflineError::DatabaseDamaged { found });
    }
    let schema = backup.schema().await?;
    let tables: BTreeMap<_, _> = backup.rows().await?.into_iter().collect();
    let mut files = Vec::new();
    for companion in companions {
        // An empty file has one part too, or it would not be there.
        let parts = companion
            .content
            .chunks(PART_BYTES)
            .chain(Some(&[][..]).filter(|_| companion.content.is_empty()));
        for (content, part) in parts.zip(0..) {
            backup.put(&companion.name, part, content).await?;
        }
        files.push(companion.name);
    }
    backup.close().await?;
    let manifest = Manifest::of(&unfinished, created_at, schema, tables, files)?;
    finish(&unfinished, to)?;
    manifest.write(to)?;
    Ok(BackedUp { path: to.to_owned(), manifest })
}

/// The journal's files come and go while a server runs; one that went had nothing left to tell. They are bounded by the
/// journal itself, to some hundred megabytes.
fn companions(data_dir: &Path) -> Result<Vec<Companion>, OfflineError> {
    let mut found = Vec::new();
    for name in names(data_dir)? {
        let path = data_dir.join(&name);
        let mut content = Vec::new();
        let read = File::open(&path).and_then(|mut file| file.read_to_end(&mut content));
        match read {
            Ok(_) => found.push(Companion { name, content }),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(OfflineError::file(&path)(error)),
        }
    }
    Ok(found)
}

fn names(data_dir: &Path) -> Result<Vec<String>, OfflineError> {
    let mut names = vec![FINGERPRINT.to_owned(), SECRET.to_owned()];
    let journal = data_dir.join(JOURNAL);
    let entries = match fs::read_dir(&journal) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(names),
        Err(error) => return Err(OfflineError::file(&journal)(error)),
    };
    for entry in entries.flatten() {
        let plain = entry.file_type().is_ok_and(|kind| kind.is_file());
        if let Some(name) = entry.file_name().to_str().filter(|_| plain) {
            names.push(format!("{JOURNAL}/{name}"));
        }
    }
    names[2..].sort();
    Ok(names)
}
