//! A backup in one file: a copy of the database, made while others use it, and the files that belong to it.
//! The copy is a database itself; what belongs to it lies in a table of its own, which a restore takes out again.

use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use crate::bind::unsigned;
use crate::sqlite::BUSY_TIMEOUT;
use crate::{Fault, StoreError};

/// A file is kept in parts of this size: far below what one value may have, and what is in memory of it at once.
pub const PART_BYTES: usize = 4 << 20;

/// One file that is open for reading and changing.
#[derive(Debug)]
pub struct BackupFile(SqliteConnection);

// === impl BackupFile ===

impl BackupFile {
    /// Copies a database as it is at this moment. Whoever writes to it goes on meanwhile. The new file must be empty, or not there.
    pub async fn copy(database: &Path, to: &Path) -> Result<Self, StoreError> {
        let to_text = to.to_string_lossy().into_owned();
        let mut from = connect(database, None).await?;
        sqlx::query("VACUUM INTO $1").bind(to_text).execute(&mut from).await?;
        from.close().await?;
        Self::open(to).await
    }

    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        // One file and nothing beside it, so that it can be moved as one.
        Ok(Self(connect(path, Some(SqliteJournalMode::Delete)).await?))
    }

    /// Whether the database has no damage that SQLite can see; an error says what it saw first.
    pub async fn check(&mut self) -> Result<Result<(), String>, StoreError> {
        let (found,): (String,) =
            sqlx::query_as("PRAGMA integrity_check(1)").fetch_one(&mut self.0).await?;
        if found != "ok" {
            return Ok(Err(found));
        }
        let dangling = sqlx::query("PRAGMA foreign_key_check").fetch_optional(&mut self.0).await?;
        Ok(if dangling.is_some() { Err("a row without its owner".to_owned()) } else { Ok(()) })
    }

    /// The step of the schema it was made with.
    pub async fn schema(&mut self) -> Result<u64, StoreError> {
        const NEWEST: &str = "SELECT COALESCE(MAX(version), 0) FROM _sqlx_migrations";
        let (schema,): (i64,) = sqlx::query_as(NEWEST).fetch_one(&mut self.0).await?;
        Ok(unsigned(schema))
    }

    /// How many rows each table has.
    pub async fn rows(&mut self) -> Result<Vec<(String, u64)>, StoreError> {
        const TABLES: &str = "SELECT name FROM sqlite_master
            WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
        let names: Vec<(String,)> = sqlx::query_as(TABLES).fetch_all(&mut self.0).await?;
        let mut counted = Vec::with_capacity(names.len());
        for (name,) in names {
            let count = AssertSqlSafe(format!("SELECT COUNT(*) FROM \"{name}\""));
            let (rows,): (i64,) = sqlx::query_as(count).fetch_one(&mut self.0).await?;
            counted.push((name, unsigned(rows)));
        }
        Ok(counted)
    }

    /// Keeps a part of a file that belongs to the database.
    pub async fn put(&mut self, name: &str, part: u32, content: &[u8]) -> Result<(), StoreError> {
        const MAKE: &str = "CREATE TABLE IF NOT EXISTS backup_files (name TEXT NOT NULL,
            part BIGINT NOT NULL, content BLOB NOT NULL, PRIMARY KEY (name, part))";
        const PUT: &str = "INSERT INTO backup_files (name, part, content) VALUES ($1, $2, $3)";
        sqlx::query(MAKE).execute(&mut self.0).await?;
        sqlx::query(PUT)
            .bind(name)
            .bind(i64::from(part))
            .bind(content)
            .execute(&mut self.0)
            .await?;
        Ok(())
    }

    /// Names of the files that belong to the database, and how many parts each has.
    pub async fn files(&mut self) -> Result<Vec<(String, u32)>, StoreError> {
        const THERE: &str = "SELECT COUNT(*) FROM sqlite_master WHERE name = 'backup_files'";
        const FILES: &str = "SELECT name, COUNT(*) FROM backup_files GROUP BY name ORDER BY name";
        let (there,): (i64,) = sqlx::query_as(THERE).fetch_one(&mut self.0).await?;
        if there == 0 {
            return Ok(Vec::new());
        }
        let files: Vec<(String, i64)> = sqlx::query_as(FILES).fetch_all(&mut self.0).await?;
        Ok(files
            .into_iter()
            .map(|(name, parts)| (name, u32::try_from(parts).unwrap_or(0)))
            .collect())
    }

    pub async fn part(&mut self, name: &str, part: u32) -> Result<Vec<u8>, StoreError> {
        const PART: &str = "SELECT content FROM backup_files WHERE name = $1 AND part = $2";
        let found: Option<(Vec<u8>,)> = sqlx::query_as(PART)
            .bind(name)
            .bind(i64::from(part))
            .fetch_optional(&mut self.0)
            .await?;
        found.map(|(content,)| content).ok_or(Fault::Unreadable("file of a backup").into())
    }

    /// Leaves the database alone in the file, as it was when it was copied.
    pub async fn strip(&mut self) -> Result<(), StoreError> {
        sqlx::query("DROP TABLE IF EXISTS backup_files").execute(&mut self.0).await?;
        sqlx::query("VACUUM").execute(&mut self.0).await?;
        Ok(())
    }

    pub async fn close(self) -> Result<(), StoreError> {
        Ok(self.0.close().await?)
    }
}

async fn connect(
    path: &Path,
    mode: Option<SqliteJournalMode>,
) -> Result<SqliteConnection, StoreError> {
    let options = SqliteConnectOptions::new().filename(path).busy_timeout(BUSY_TIMEOUT);
    let options = match mode {
        Some(mode) => options.journal_mode(mode),
        None => options,
    };
    Ok(options.connect().await?)
}
