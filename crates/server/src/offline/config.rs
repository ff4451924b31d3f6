//! A configuration in a file of lines: everything that people have set up, readable, and the same from SQLite and
//! PostgreSQL. Keys are in it as their hashes, so it is of use only under the secret that it was made with.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::file::{create_private, finish, hex, unfinished};
use super::{OfflineError, hold_database, open_store};
use crate::data_dir::DataDir;
use crate::keyring::Keyring;
use crate::settings::{Database, Settings};

const FORMAT: &str = "tollkeeper config 1";

/// The longest row is far below; a file of one endless line is not read into memory whole.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// What went into the file, or came out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigCopied {
    pub rows: u64,
}

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    format: String,
    version: String,
    created_at: u64,
    secret_fingerprint: Option<String>,
}

#[derive(Deserialize)]
struct Line {
    table: String,
    row: Map<String, Value>,
}

/// The last line: without it the file is cut, and with another sum it was changed.
#[derive(Serialize, Deserialize)]
struct End {
    rows: u64,
    sha256: String,
}

/// Writes a new file. A server may run meanwhile.
pub async fn export_config(
    settings: &Settings,
    to: &Path,
    created_at: u64,
) -> Result<ConfigCopied, OfflineError> {
    if let Database::Sqlite { path } = &settings.database
        && !path.exists()
    {
        return Err(OfflineError::NoDatabase(path.clone()));
    }
    let unfinished = unfinished(to)?;
    let file = create_private(&unfinished).map_err(OfflineError::file(&unfinished))?;
    let mut out = Summed { out: BufWriter::new(file), hash: Sha256::new() };
    let head = Head {
        format: FORMAT.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        created_at,
        secret_fingerprint: fingerprint(settings),
    };
    out.line(&json(&head)).map_err(OfflineError::file(&unfinished))?;
    let store = open_store(settings).await?;
    let mut rows = 0;
    let mut sink = |table: &str, row: &str| {
        rows += 1;
        out.line(&format!("{{\"table\":{},\"row\":{row}}}", Value::from(table)))
    };
    let exported = store.export_config(&mut sink).await;
    store.close().await;
    exported?.map_err(OfflineError::file(&unfinished))?;
    let end = End { rows, sha256: hex(&out.hash.clone().finalize()) };
    let ended = out.line(&json(&end)).and_then(|()| out.out.flush());
    ended.map_err(OfflineError::file(&unfinished))?;
    finish(&unfinished, to)?;
    Ok(ConfigCopied { rows })
}

/// Takes a file into an empty store, all of it or nothing.
pub(super) async fn import_config(
    settings: &Settings,
    from: &Path,
) -> Result<ConfigCopied, OfflineError> {
    let head = check(from)?;
    // No server may make the store its own meanwhile. PostgreSQL is guarded by having to be empty.
    let _held = (DataDir::open(&settings.data_dir)?, hold_database(settings)?);
    if head.secret_fingerprint.is_some() && head.secret_fingerprint != fingerprint(settings) {
        return Err(OfflineError::OtherSecret);
    }
    let store = open_store(settings).await?;
    let mut import = store.import_config().await?;
    let mut rows = 0;
    let mut lines = Lines::open(from)?;
    lines.next()?;
    while let Some(text) = lines.next()? {
        let Ok(line) = serde_json::from_str::<Line>(&text) else { break };
        import.put(&line.table, &line.row).await?;
        rows += 1;
    }
    import.commit().await?;
    store.close().await;
    Ok(ConfigCopied { rows })
}

/// Reads the file to its end once, before anything is done with it.
fn check(path: &Path) -> Result<Head, OfflineError> {
    let foreign = || OfflineError::Foreign(path.to_owned());
    let mut lines = Lines::open(path)?;
    let first = lines.next()?.ok_or_else(foreign)?;
    let head: Head = serde_json::from_str(&first).map_err(|_| foreign())?;
    if head.format != FORMAT {
        return Err(foreign());
    }
    let mut hash = Sha256::new();
    hash.update(&first);
    let mut rows = 0;
    while let Some(text) = lines.next()? {
        if let Ok(end) = serde_json::from_str::<End>(&text) {
            let whole = end.rows == rows && end.sha256 == hex(&hash.finalize());
            let last = lines.next()?.is_none();
            let damaged = || OfflineError::damaged(path, "it is not what its last line says");
            return (whole && last).then_some(head).ok_or_else(damaged);
        }
        hash.update(&text);
        rows += 1;
    }
    Err(OfflineError::damaged(path, "its end is missing"))
}

/// What tells secrets apart: of the one in the settings, else of the one in the data directory.
fn fingerprint(settings: &Settings) -> Option<String> {
    let secret = match &settings.secret {
        Some(given) => given.expose().clone(),
        None => {
            std::fs::read_to_string(settings.data_dir.join("secret")).ok()?.trim_end().to_owned()
        }
    };
    Some(hex(&Keyring::derive(&secret)?.fingerprint()))
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Everything that is written is summed too.
struct Summed {
    out: BufWriter<File>,
    hash: Sha256,
}

impl Summed {
    fn line(&mut self, text: &str) -> io::Result<()> {
        self.hash.update(text);
        self.hash.update("\n");
        writeln!(self.out, "{text}")
    }
}

/// Lines with their ends, none longer than a row can be.
struct Lines {
    path: PathBuf,
    file: BufReader<File>,
}

impl Lines {
    fn open(path: &Path) -> Result<Self, OfflineError> {
        let file = File::open(path).map_err(OfflineError::file(path))?;
        Ok(Self { path: path.to_owned(), file: BufReader::new(file) })
    }

    fn next(&mut self) -> Result<Option<String>, OfflineError> {
        use io::Read;
        let mut line = String::new();
        let read = self.file.by_ref().take(LINE_BYTES_MAX).read_line(&mut line);
        match read.map_err(OfflineError::file(&self.path))? {
            0 => Ok(None),
            _ => Ok(Some(line)),
        }
    }
}
