//! One statement for both databases: the text and its values are given once, and sent to whichever is there.
//! The only place where a query is written per database; everything else says what it asks, not whom.

use std::time::Duration;

use sqlx::postgres::{PgExecutor, PgRow};
use sqlx::sqlite::{SqliteExecutor, SqliteRow};
use sqlx::{AssertSqlSafe, FromRow, Postgres, SqlSafeStr, Sqlite};

use crate::patience::{AT_LEISURE, Patient, within};
use crate::{Bind, StoreError};

/// The same thing of either database: two pools, two connections, two transactions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Each<Lite, Pg> {
    Lite(Lite),
    Pg(Pg),
}

/// A row that both databases can fill.
pub(crate) trait Stored:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

impl<T> Stored for T where
    T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

/// A value's type has to be told also where there is no value: PostgreSQL asks for it.
macro_rules! bound {
    ($query:expr, $binds:expr) => {{
        let mut query = $query;
        for bind in $binds {
            query = match *bind {
                Bind::Text(text) => query.bind(text),
                Bind::Int(number) => query.bind(number),
                Bind::Bytes(bytes) => query.bind(bytes),
                Bind::Flag(flag) => query.bind(flag),
            };
        }
        query
    }};
}

// === impl Each ===

impl<Lite, Pg> Each<Lite, Pg> {
    /// Of a statement that has to be said in two ways, the one for this database.
    pub(crate) fn which(&self, [lite, pg]: [&'static str; 2]) -> &'static str {
        match self {
            Self::Lite(_) => lite,
            Self::Pg(_) => pg,
        }
    }

    /// How many rows it touched.
    pub(crate) async fn run<'c>(
        self,
        sql: impl SqlSafeStr + Send,
        binds: &[Bind<'_>],
    ) -> Result<u64, StoreError>
    where
        Lite: SqliteExecutor<'c>,
        Pg: PgExecutor<'c> + Patient,
    {
        self.run_within(Pg::PATIENCE, sql, binds).await
    }

    /// The same, for a statement that was allowed to take long.
    pub(crate) async fn run_at_leisure<'c>(
        self,
        sql: impl SqlSafeStr + Send,
        binds: &[Bind<'_>],
    ) -> Result<u64, StoreError>
    where
        Lite: SqliteExecutor<'c>,
        Pg: PgExecutor<'c>,
    {
        self.run_within(AT_LEISURE, sql, binds).await
    }

    async fn run_within<'c>(
        self,
        patience: Duration,
        sql: impl SqlSafeStr + Send,
        binds: &[Bind<'_>],
    ) -> Result<u64, StoreError>
    where
        Lite: SqliteExecutor<'c>,
        Pg: PgExecutor<'c>,
    {
        let touched = match self {
            Each::Lite(to) => {
                bound!(sqlx::query::<Sqlite>(sql), binds).execute(to).await?.rows_affected()
            }
            Each::Pg(to) => {
                let answer = bound!(sqlx::query::<Postgres>(sql), binds).execute(to);
                within(patience, answer).await?.rows_affected()
            }
        };
        Ok(touched)
    }

    pub(crate) async fn all<'c, T: Stored>(
        self,
        sql: impl SqlSafeStr + Send,
        binds: &[Bind<'_>],
    ) -> Result<Vec<T>, StoreError>
    where
        Lite: SqliteExecutor<'c>,
        Pg: PgExecutor<'c> + Patient,
    {
        Ok(match self {
            Each::Lite(to) => bound!(sqlx::query_as::<Sqlite, T>(sql), binds).fetch_all(to).await?,
            Each::Pg(to) => {
                let answer = bound!(sqlx::query_as::<Postgres, T>(sql), binds).fetch_all(to);
                within(Pg::PATIENCE, answer).await?
            }
        })
    }

    /// A statement over many rows: `{}` in it stands for the values of all of them, and nothing else is bound.
    pub(crate) async fn run_rows<'c>(
        self,
        template: &'static str,
        columns: usize,
        binds: &[Bind<'_>],
    ) -> Result<u64, StoreError>
    where
        Lite: SqliteExecutor<'c>,
        Pg: PgExecutor<'c> + Patient,
    {
        let list = self.rows(columns, binds.len() / columns);
        self.run(listed(template, &list), binds).await
    }

    /// The same, for what it returns.
    pub(crate) async fn all_rows<'c, T: Stored>(
        self,
        template: &'static str,
        columns: usize,
        binds: &[Bind<'_>],
    ) -> Result<Vec<T>, StoreError>
    where
        Lite: SqliteExecutor<'c>,
        Pg: PgExecutor<'c> + Patient,
    {
        let list = self.rows(columns, binds.len() / columns);
        self.all(listed(template, &list), binds).await
    }

    /// SQLite looks for a place with a number among all that have one, so thousands of them take seconds; without
    /// numbers they are taken in their order. PostgreSQL wants numbers.
    fn rows(&self, columns: usize, rows: usize) -> String {
        match self {
            Self::Lite(_) => {
                let row = format!("({})", vec!["?"; columns].join(", "));
                vec![row; rows].join(", ")
            }
            Self::Pg(_) => rows_of_places(columns, rows),
        }
    }

    pub(crate) async fn optional<'c, T: Stored>(
        self,
        sql: impl SqlSafeStr + Send,
        binds: &[Bind<'_>],
    ) -> Result<Option<T>, StoreError>
    where
        Lite: SqliteExecutor<'c>,
        Pg: PgExecutor<'c> + Patient,
    {
        Ok(match self {
            Each::Lite(to) => {
                bound!(sqlx::query_as::<Sqlite, T>(sql), binds).fetch_optional(to).await?
            }
            Each::Pg(to) => {
                let answer = bound!(sqlx::query_as::<Postgres, T>(sql), binds).fetch_optional(to);
                within(Pg::PATIENCE, answer).await?
            }
        })
    }

    pub(crate) async fn one<'c, T: Stored>(
        self,
        sql: impl SqlSafeStr + Send,
        binds: &[Bind<'_>],
    ) -> Result<T, StoreError>
    where
        Lite: SqliteExecutor<'c>,
        Pg: PgExecutor<'c> + Patient,
    {
        self.one_within(Pg::PATIENCE, sql, binds).await
    }

    /// The same, for a statement that was allowed to take long.
    pub(crate) async fn one_at_leisure<'c, T: Stored>(
        self,
        sql: impl SqlSafeStr + Send,
        binds: &[Bind<'_>],
    ) -> Result<T, StoreError>
    where
        Lite: SqliteExecutor<'c>,
        Pg: PgExecutor<'c>,
    {
        self.one_within(AT_LEISURE, sql, binds).await
    }

    async fn one_within<'c, T: Stored>(
        self,
        patience: Duration,
        sql: impl SqlSafeStr + Send,
        binds: &[Bind<'_>],
    ) -> Result<T, StoreError>
    where
        Lite: SqliteExecutor<'c>,
        Pg: PgExecutor<'c>,
    {
        Ok(match self {
            Each::Lite(to) => bound!(sqlx::query_as::<Sqlite, T>(sql), binds).fetch_one(to).await?,
            Each::Pg(to) => {
                let answer = bound!(sqlx::query_as::<Postgres, T>(sql), binds).fetch_one(to);
                within(patience, answer).await?
            }
        })
    }
}

/// A statement of ours with this list in place of every `{}`. The list is made of placeholders, never of values.
pub(crate) fn listed(template: &'static str, list: &str) -> AssertSqlSafe<String> {
    AssertSqlSafe(template.replace("{}", list))
}

/// `$3, $4, $5` for three values after the second.
pub(crate) fn places(after: usize, count: usize) -> String {
    let places: Vec<_> = (after + 1..=after + count).map(|number| format!("${number}")).collect();
    places.join(", ")
}

/// `($1, $2), ($3, $4)` for two rows of two values.
fn rows_of_places(columns: usize, rows: usize) -> String {
    let rows: Vec<_> =
        (0..rows).map(|row| format!("({})", places(row * columns, columns))).collect();
    rows.join(", ")
}
