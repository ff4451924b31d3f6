//! How a SQLite file is opened: one writer, a few readers, and the schema brought up to date.
//! Nothing here knows what is in the tables.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::time::Duration;

use sqlx::Connection;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use crate::Fault;

/// How long a statement waits for another process, such as a backup, to let go of the file.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a caller waits for a connection: as long as the one before it may wait for the file.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// The first of two first starts is done after a few flushes of the disk.
const FIRST_START_RETRY: Duration = Duration::from_millis(20);

/// SQLite has one writer at a time. With one connection the queue for it is ours, in order
/// and without polling, instead of SQLite's.
const WRITERS: u32 = 1;

/// Reads are short and off the hot path; four serve the burst of misses after a start.
const READERS: u32 = 4;

/// A large batch may leave a large write-ahead log; it is cut back to this afterwards.
const LOG_BYTES_KEPT: &str = "67108864";

/// A write transaction takes the lock at its start: one that reads first and asks for the
/// lock later is refused without waiting when somebody else wrote in between.
pub(crate) const BEGIN: &str = "BEGIN IMMEDIATE";

pub(crate) static SCHEMA: Migrator = sqlx::migrate!("migrations/sqlite");

/// Makes the file where there is none. Only its owner may read it: it holds the hashes of keys.
/// A file that is there is left to SQLite, because closing a second handle of our own would
/// drop the locks of every connection this process has on it.
pub(crate) fn make_file(path: &Path) -> Result<(), Fault> {
    if path.is_dir() {
        return Err(Fault::NotADatabase);
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(()),
    }
}

/// `FULL`: a change that was answered is on the disk, also after a power cut. Writes are rare
/// enough here for one flush each.
///
/// Turning a new file to write-ahead logging is the one lock SQLite does not wait for, and there
/// is nothing to be woken by; of two first starts, the second tries until the first has done it.
pub(crate) async fn writer(path: &Path) -> Result<SqlitePool, Fault> {
    let options = common(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("journal_size_limit", LOG_BYTES_KEPT);
    let mut turns = tokio::time::interval(FIRST_START_RETRY);
    let tries = async {
        loop {
            turns.tick().await;
            match pool(WRITERS).connect_with(options.clone()).await.map_err(Fault::from) {
                Err(Fault::Busy) => {}
                settled => return settled,
            }
        }
    };
    tokio::time::timeout(BUSY_TIMEOUT, tries).await.unwrap_or(Err(Fault::Busy))
}

pub(crate) fn readers(path: &Path) -> SqlitePool {
    pool(READERS).connect_lazy_with(common(path).read_only(true))
}

/// All steps in one transaction: two processes that start at once take turns, and the second
/// finds nothing left to do. A step that fails leaves the file as it was.
pub(crate) async fn migrate(writer: &SqlitePool) -> Result<(), Fault> {
    let mut change = writer.begin_with(BEGIN).await?;
    // `run` asks for more than a borrowed connection can give inside a future that is `Send`.
    SCHEMA.run_direct(None, &mut *change, false).await?;
    Ok(change.commit().await?)
}

fn common(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(path).busy_timeout(BUSY_TIMEOUT).foreign_keys(true)
}

/// Connections to a file do not go stale: none is tested before use, none is closed for its age.
///
/// One is of no use any more: where the disk fails a write, SQLite rolls back by itself, and the ROLLBACK that follows finds
/// nothing to end. The connection then counts itself in a transaction for good, and nothing could begin on it again.
fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .after_release(|connection, _| {
            Box::pin(async move {
                // A transaction that was dropped is rolled back behind our back; the answer to this comes after it.
                connection.ping().await?;
                Ok(!connection.is_in_transaction())
            })
        })
}
