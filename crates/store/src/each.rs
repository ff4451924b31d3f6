//! One statement for both databases: the text and its values are given once, and sent to whichever is there.
//! The only place where a query is written per database; everything else says what it asks, not whom.

use sqlx::postgres::{PgExecutor, PgRow};
use sqlx::sqlite::{SqliteExecutor, SqliteRow};
use sqlx::{AssertSqlSafe, FromRow, SqlSafeStr};

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

/// Expands the body once per database; `$db` is its type there and `$to` its executor.
macro_rules! on_each {
    ($either:expr, |$to:ident, $db:ident| $body:expr) => {
        match $either {
            Each::Lite($to) => {
                type $db = sqlx::Sqlite;
                $body
            }
            Each::Pg($to) => {
                type $db = sqlx::Postgres;
                $body
            }
        }
    };
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
    /// How many rows it touched.
    pub(crate) async fn run<'c>(
        self,
        sql: impl SqlSafeStr + Send,
        binds: &[Bind<'_>],
    ) -> Result<u64, StoreError>
    where
        Lite: SqliteExecutor<'c>,
        Pg: PgExecutor<'c>,
    {
        Ok(on_each!(self, |to, Db| bound!(sqlx::query::<Db>(sql), binds)
            .execute(to)
            .await?
            .rows_affected()))
    }

    pub(crate) async fn all<'c, T: Stored>(
        self,
        sql: impl SqlSafeStr + Send,
        binds: &[Bind<'_>],
    ) -> Result<Vec<T>, StoreError>
    where
        Lite: SqliteExecutor<'c>,
        Pg: PgExecutor<'c>,
    {
        Ok(on_each!(self, |to, Db| bound!(sqlx::query_as::<Db, T>(sql), binds)
            .fetch_all(to)
            .await?))
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
        Pg: PgExecutor<'c>,
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
        Pg: PgExecutor<'c>,
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
        Pg: PgExecutor<'c>,
    {
        Ok(on_each!(self, |to, Db| bound!(sqlx::query_as::<Db, T>(sql), binds)
            .fetch_optional(to)
            .await?))
    }

    pub(crate) async fn one<'c, T: Stored>(
        self,
        sql: impl SqlSafeStr + Send,
        binds: &[Bind<'_>],
    ) -> Result<T, StoreError>
    where
        Lite: SqliteExecutor<'c>,
        Pg: PgExecutor<'c>,
    {
        Ok(on_each!(self, |to, Db| bound!(sqlx::query_as::<Db, T>(sql), binds)
            .fetch_one(to)
            .await?))
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
