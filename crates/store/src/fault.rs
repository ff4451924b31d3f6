//! Why the database did not do what it was asked, told apart by what a person has to do about it.
//! The only place that knows SQLite's result codes and PostgreSQL's states.

use std::io;

use sqlx::migrate::MigrateError;
use sqlx::postgres::PgDatabaseError;
use sqlx::sqlite::SqliteError;

use crate::sqlite::SCHEMA;

#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error(
        "its folder does not exist: create it, or name one that does in TOLLKEEPER_DATABASE_URL or TOLLKEEPER_DATA_DIR"
    )]
    FolderMissing,
    #[error(
        "the file or its folder cannot be written: give this user write access, or name a folder that it may write in TOLLKEEPER_DATABASE_URL or TOLLKEEPER_DATA_DIR"
    )]
    NotWritable,
    #[error("the disk is full: free some space and try again; nothing was written by halves")]
    Full,
    #[error("the disk failed a read or a write: see that it is well and has room, then try again")]
    Disk(#[source] sqlx::Error),
    #[error(
        "it is not a database, or a damaged one: restore a backup, or move it away to start empty"
    )]
    NotADatabase,
    #[error(
        "its schema is version {found} and this program knows {known}: run the newer program that last opened it"
    )]
    NewerSchema { found: i64, known: i64 },
    #[error(
        "step {0} of its schema is not the one this program knows: run the build that made it, or restore a backup"
    )]
    OtherSchema(i64),
    #[error("it was busy for longer than anybody may wait: try again, or stop who holds it")]
    Busy,
    #[error(
        "no connection to it was to be had in time: see that it runs and can be reached from here; if so, it is busy"
    )]
    NoConnection,
    #[error(
        "it took longer for one statement than any may take: try again; look for what slows it if this stays"
    )]
    Slow,
    #[error("it does not answer: see that it runs and can be reached from here")]
    Away(#[source] sqlx::Error),
    #[error("it does not let us in: check user, password and database of TOLLKEEPER_DATABASE_URL")]
    NotLetIn,
    #[error("it only takes reads: TOLLKEEPER_DATABASE_URL must name the primary, not a replica")]
    ReadOnly,
    #[error(
        "TOLLKEEPER_DATABASE_URL is no URL of a database: write postgres://user:password@host:5432/name"
    )]
    BadUrl,
    #[error("a text holds the character NUL, which PostgreSQL cannot store: leave it out")]
    NulText,
    #[error("the database was closed: the server is stopping")]
    Closed,
    #[error("a stored {0} cannot be read, something else changed it: restore a backup")]
    Unreadable(&'static str),
    #[error("the system gave no random bytes")]
    NoRandomness,
    #[error("the database failed")]
    Database(#[source] sqlx::Error),
}

// === impl Fault ===

impl Fault {
    /// Waiting alone can cure it. A full disk does not count: somebody has to make room.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Busy | Self::NoConnection | Self::Slow | Self::Away(_))
    }

    /// It has no room, or fails. Somebody has to look after it; until then nothing can be written.
    pub fn is_of_the_disk(&self) -> bool {
        matches!(self, Self::Full | Self::Disk(_))
    }

    /// What was to be written will be refused as often as it is tried.
    pub fn is_of_the_rows(&self) -> bool {
        use sqlx::Error::{Database, Encode};
        matches!(self, Self::NulText | Self::Database(Database(_) | Encode(_)))
    }

    fn of_state(state: &str) -> Option<Self> {
        match state {
            // Lock time-out, serialization, deadlock, too many connections; and what was pointed at went away in between:
            // whoever tries again is told so.
            "55P03" | "40001" | "40P01" | "53300" | "23503" => Some(Self::Busy),
            "57014" => Some(Self::Slow),
            "53100" => Some(Self::Full),
            "28000" | "28P01" | "3D000" => Some(Self::NotLetIn),
            "25006" => Some(Self::ReadOnly),
            "22021" => Some(Self::NulText),
            _ => None,
        }
    }

    /// The server is stopping, starting or gone.
    fn is_away(error: &sqlx::Error) -> bool {
        match error {
            // The last three are of a connection that is of no use any more. The next one is a fresh one.
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::WorkerCrashed
            | sqlx::Error::BeginFailed
            | sqlx::Error::InvalidSavePointStatement => true,
            sqlx::Error::Database(from) => {
                from.try_downcast_ref::<PgDatabaseError>().is_some_and(|from| {
                    from.code().starts_with("57P0") || from.code().starts_with("08")
                })
            }
            _ => false,
        }
    }

    /// SQLite's family of faults that the system reported.
    fn is_of_io(error: &sqlx::Error) -> bool {
        const IOERR: i32 = 10;
        let from = error
            .as_database_error()
            .filter(|from| from.try_downcast_ref::<SqliteError>().is_some());
        let code = from.and_then(|from| from.code()?.parse::<i32>().ok());
        code.is_some_and(|code| code & 0xff == IOERR && Self::of_code(code).is_none())
    }

    /// The low byte is the family; the bits above it tell its members apart.
    fn of_code(code: i32) -> Option<Self> {
        // A full disk shows here first: the shared memory of the write-ahead log cannot grow.
        const IOERR_SHMSIZE: i32 = 4874;
        const FOREIGN_KEY: i32 = 787;
        match (code, code & 0xff) {
            (IOERR_SHMSIZE, _) | (_, 13) => Some(Self::Full),
            (FOREIGN_KEY, _) | (_, 5 | 6) => Some(Self::Busy),
            (_, 3 | 8 | 14) => Some(Self::NotWritable),
            (_, 11 | 26) => Some(Self::NotADatabase),
            _ => None,
        }
    }
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        let known = match &error {
            away if Self::is_away(away) => return Self::Away(error),
            failed if Self::is_of_io(failed) => return Self::Disk(error),
            sqlx::Error::Database(from) => match from.try_downcast_ref::<PgDatabaseError>() {
                Some(from) => Self::of_state(from.code()),
                None => from.code().and_then(|code| code.parse().ok()).and_then(Self::of_code),
            },
            // A server that refuses is asked until the time is up, so this is what that looks like too.
            sqlx::Error::PoolTimedOut => Some(Self::NoConnection),
            sqlx::Error::PoolClosed => Some(Self::Closed),
            _ => None,
        };
        known.unwrap_or(Self::Database(error))
    }
}

impl From<MigrateError> for Fault {
    fn from(error: MigrateError) -> Self {
        let known = SCHEMA.iter().map(|step| step.version).max().unwrap_or(0);
        match error {
            MigrateError::VersionMissing(found) if found > known => {
                Self::NewerSchema { found, known }
            }
            MigrateError::VersionMissing(step) | MigrateError::VersionMismatch(step) => {
                Self::OtherSchema(step)
            }
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
            other => Self::Database(sqlx::Error::Migrate(Box::new(other))),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::NotFound | Kind::NotADirectory => Self::FolderMissing,
            Kind::PermissionDenied | Kind::ReadOnlyFilesystem => Self::NotWritable,
            Kind::StorageFull | Kind::QuotaExceeded => Self::Full,
            Kind::IsADirectory => Self::NotADatabase,
            _ => Self::Database(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_of_a_family_of_result_codes_is_told_as_the_family() {
        for (code, text) in [
            (5, "Busy"),
            (517, "Busy"),
            (8, "NotWritable"),
            (1544, "NotWritable"),
            (14, "NotWritable"),
            (13, "Full"),
            (4874, "Full"),
            (11, "NotADatabase"),
            (26, "NotADatabase"),
        ] {
            let fault = Fault::of_code(code).map(|fault| format!("{fault:?}"));
            assert_eq!(fault.as_deref(), Some(text), "{code}");
        }
        assert!(Fault::of_code(1).is_none());
    }

    #[test]
    fn only_a_held_database_is_worth_another_try() {
        assert!(Fault::from(sqlx::Error::PoolTimedOut).is_transient());
        assert!(!Fault::from(sqlx::Error::PoolClosed).is_transient());
        assert!(!Fault::from(io::Error::from(io::ErrorKind::StorageFull)).is_transient());
    }

    #[test]
    fn what_the_database_said_is_in_the_source_and_not_in_the_text() {
        let fault = Fault::from(sqlx::Error::Protocol("near SELECT".into()));
        assert!(!fault.to_string().contains("SELECT"));
        let source = std::error::Error::source(&fault).map(ToString::to_string);
        assert!(source.is_some_and(|text| text.contains("SELECT")));
    }
}
