//! How long anybody waits for a server that says nothing. A statement that takes too long is ended by the server, which says
//! so; where the way to it is lost in the middle of a call, nobody says anything, and TCP alone would wait for ever.

use std::io;
use std::time::Duration;

use sqlx::postgres::{PgConnection, PgPool};

/// No statement that stands alone may take longer than two seconds, and the server ends it then.
const ALONE: Duration = Duration::from_secs(5);

/// Some transactions allow their statements up to ten seconds.
pub(crate) const IN_TRANSACTION: Duration = Duration::from_secs(12);

/// Whole months are counted and dropped within a quarter of an hour.
pub(crate) const AT_LEISURE: Duration = Duration::from_mins(16);

/// Where a statement is sent to, and how long its answer may take. SQLite answers in its own time, or is busy.
pub(crate) trait Patient {
    const PATIENCE: Duration;
}

impl Patient for &PgPool {
    const PATIENCE: Duration = ALONE;
}

impl Patient for &mut PgConnection {
    const PATIENCE: Duration = IN_TRANSACTION;
}

/// Given up, the connection is in the middle of something: the pool finds that out and drops it.
pub(crate) async fn within<T>(
    patience: Duration,
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let silent = |_| Err(io::Error::from(io::ErrorKind::TimedOut).into());
    // In a place of its own: a call makes many statements, and its future would have room for each of them.
    tokio::time::timeout(patience, Box::pin(answer)).await.unwrap_or_else(silent)
}
