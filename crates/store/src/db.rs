//! Which database there is, and which of its connections serve which purpose.
//! A flood of one purpose waits for its own connections and leaves the others alone.

use sqlx::postgres::{PgConnection, PgPool};
use sqlx::sqlite::{SqliteConnection, SqlitePool};
use sqlx::{Postgres, Sqlite, Transaction};

use crate::patience::{IN_TRANSACTION, within};
use crate::{Each, StoreError, sqlite};

/// Who waits for the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// A request on its way to a decision: it waits for a moment only.
    Miss,
    /// A person or a program that manages keys.
    Admin,
    /// Nobody.
    Background,
}

#[derive(Clone, Debug)]
pub(crate) enum Db {
    Lite { read: SqlitePool, write: SqlitePool },
    Pg(Box<PgPools>),
}

#[derive(Clone, Debug)]
pub(crate) struct PgPools {
    pub(crate) miss: PgPool,
    pub(crate) admin: PgPool,
    pub(crate) background: PgPool,
    pub(crate) replica: Option<PgPool>,
}

pub(crate) type Pools<'a> = Each<&'a SqlitePool, &'a PgPool>;
pub(crate) type Conn<'a> = Each<&'a mut SqliteConnection, &'a mut PgConnection>;
pub(crate) type Begun = Each<Transaction<'static, Sqlite>, Transaction<'static, Postgres>>;

// === impl Db ===

impl Db {
    /// Reads that have to see everything that was committed.
    pub(crate) fn read(&self, purpose: Purpose) -> Pools<'_> {
        match self {
            Self::Lite { read, .. } => Each::Lite(read),
            Self::Pg(pools) => Each::Pg(pools.of(purpose)),
        }
    }

    /// For a write of one statement.
    pub(crate) fn write(&self, purpose: Purpose) -> Pools<'_> {
        match self {
            Self::Lite { write, .. } => Each::Lite(write),
            Self::Pg(pools) => Each::Pg(pools.of(purpose)),
        }
    }

    pub(crate) fn replica(&self) -> Option<Pools<'_>> {
        match self {
            Self::Lite { .. } => None,
            Self::Pg(pools) => pools.replica.as_ref().map(Each::Pg),
        }
    }

    /// Dropped without a commit, it leaves no trace.
    pub(crate) async fn begin(&self, purpose: Purpose) -> Result<Begun, StoreError> {
        Ok(match self {
            Self::Lite { write, .. } => Each::Lite(write.begin_with(sqlite::BEGIN).await?),
            Self::Pg(pools) => Each::Pg(within(IN_TRANSACTION, pools.of(purpose).begin()).await?),
        })
    }

    pub(crate) async fn close(&self) {
        match self {
            // The last handle folds the write-ahead log into the file, so the readers go first.
            Self::Lite { read, write } => {
                read.close().await;
                write.close().await;
            }
            Self::Pg(pools) => pools.close().await,
        }
    }
}

// === impl PgPools ===

impl PgPools {
    fn of(&self, purpose: Purpose) -> &PgPool {
        match purpose {
            Purpose::Miss => &self.miss,
            Purpose::Admin => &self.admin,
            Purpose::Background => &self.background,
        }
    }

    async fn close(&self) {
        for pool in [&self.miss, &self.admin, &self.background].into_iter().chain(&self.replica) {
            pool.close().await;
        }
    }
}

// === impl Begun ===

impl Begun {
    pub(crate) fn conn(&mut self) -> Conn<'_> {
        match self {
            Self::Lite(begun) => Each::Lite(&mut **begun),
            Self::Pg(begun) => Each::Pg(&mut **begun),
        }
    }

    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        match self {
            Self::Lite(begun) => begun.commit().await?,
            Self::Pg(begun) => within(IN_TRANSACTION, begun.commit()).await?,
        }
        Ok(())
    }
}

// === impl Conn ===

impl Conn<'_> {
    /// For one statement of several.
    pub(crate) fn again(&mut self) -> Conn<'_> {
        match self {
            Self::Lite(conn) => Each::Lite(&mut **conn),
            Self::Pg(conn) => Each::Pg(&mut **conn),
        }
    }
}
