//! Tables that grow with time, by month: room is made before a month begins, and it goes when it is too old.
//! A file has no partitions; there, old rows are deleted.

use sqlx::AssertSqlSafe;
use tollkeeper_core::{Millis, Month};

use crate::bind::binds;
use crate::db::{Db, Purpose};
use crate::patience::{IN_TRANSACTION, within};
use crate::{Each, Fault, Store, StoreError};

/// This month and the two after it: a fleet that stands still for a month finds room when it wakes.
const MONTHS_AHEAD: usize = 3;

/// Rows deleted at a time, so that nobody waits long for the one writer of a file.
const DELETED_ROWS: i64 = 5_000;

/// Held while months are made or dropped: two nodes that do it at once would meet in the catalogue.
const LOCK: &str = "SELECT CAST(pg_advisory_xact_lock(8400207313) AS TEXT)";

/// PostgreSQL's word for a row that no partition takes, which it shares with failed checks; none of these tables has
/// any.
const NO_PARTITION: &str = "23514";

/// A table with its column of time, unix ms. Partitions are called like the table and the month: `name_202611`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Monthly {
    pub(crate) table: &'static str,
    pub(crate) time: &'static str,
}

pub(crate) const DECISIONS: Monthly = Monthly { table: "decision_audit", time: "at" };
pub(crate) const MINUTES: Monthly = Monthly { table: "metric_minute", time: "time" };
pub(crate) const HOURS: Monthly = Monthly { table: "metric_hour", time: "time" };
pub(crate) const DAYS: Monthly = Monthly { table: "metric_day", time: "time" };

// === impl Store ===

impl Store {
    /// Makes room for this month and those that follow. Nothing to do where it is there.
    pub async fn prepare_months(&self, now: Millis) -> Result<(), StoreError> {
        let months = std::iter::successors(Some(Month::of(now)), |month| Some(month.next()));
        let months: Vec<_> = months.take(MONTHS_AHEAD).collect();
        for monthly in [DECISIONS, MINUTES, HOURS, DAYS] {
            self.make_months(monthly, &months).await?;
        }
        Ok(())
    }

    /// The months that there are partitions for, oldest first; none for a file.
    pub(crate) async fn months_of(&self, monthly: Monthly) -> Result<Vec<Month>, StoreError> {
        const CHILDREN: &str = "SELECT CAST(c.relname AS TEXT) FROM pg_inherits i
            JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = CAST(CAST($1 AS TEXT) AS REGCLASS)";
        if matches!(self.db, Db::Lite { .. }) {
            return Ok(Vec::new());
        }
        let from = self.db.read(Purpose::Background);
        let names: Vec<(String,)> = from.all(CHILDREN, binds![monthly.table]).await?;
        let month = |name: &str| {
            Month::parse(name.strip_prefix(monthly.table).and_then(|rest| rest.strip_prefix('_'))?)
        };
        let mut months: Vec<_> = names.iter().filter_map(|(name,)| month(name)).collect();
        months.sort_unstable();
        Ok(months)
    }

    pub(crate) async fn make_months(
        &self,
        monthly: Monthly,
        months: &[Month],
    ) -> Result<(), StoreError> {
        if matches!(self.db, Db::Lite { .. }) {
            return Ok(());
        }
        let (there, table) = (self.months_of(monthly).await?, monthly.table);
        for month in months.iter().filter(|month| !there.contains(month)) {
            let (start, end) = (month.start().0, month.end().0);
            let make = format!(
                "CREATE TABLE IF NOT EXISTS {table}_{month} PARTITION OF {table}
                    FOR VALUES FROM ({start}) TO ({end})"
            );
            self.alone(make).await?;
        }
        Ok(())
    }

    /// Forgets what is older than this: whole months of a server, so that a month stays until its last row is old
    /// enough, and single rows of a file. How many rows, or months, went.
    pub(crate) async fn forget(&self, monthly: Monthly, before: Millis) -> Result<u64, StoreError> {
        match self.db {
            Db::Lite { .. } => self.delete_rows(monthly, before).await,
            Db::Pg(_) => self.drop_months(monthly, before).await,
        }
    }

    async fn drop_months(&self, monthly: Monthly, before: Millis) -> Result<u64, StoreError> {
        let mut dropped = 0;
        for month in self.months_of(monthly).await? {
            if month.end() <= before {
                self.alone(format!("DROP TABLE IF EXISTS {}_{month}", monthly.table)).await?;
                dropped += 1;
            }
        }
        Ok(dropped)
    }

    /// One statement about a table itself. The names in it are ours and months, never what somebody gave.
    async fn alone(&self, statement: String) -> Result<(), StoreError> {
        let mut begun = self.db.begin(Purpose::Background).await?;
        begun.conn().one::<(Option<String>,)>(LOCK, &[]).await?;
        if let Each::Pg(begun) = &mut begun {
            let done = sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut **begun);
            within(IN_TRANSACTION, done).await?;
        }
        begun.commit().await
    }

    async fn delete_rows(&self, monthly: Monthly, before: Millis) -> Result<u64, StoreError> {
        let Monthly { table, time } = monthly;
        let delete = format!(
            "DELETE FROM {table} WHERE rowid IN
                (SELECT rowid FROM {table} WHERE {time} < $1 ORDER BY {time} LIMIT $2)"
        );
        let mut deleted = 0;
        loop {
            let write = self.db.write(Purpose::Background);
            let delete = AssertSqlSafe(delete.clone());
            match write.run(delete, binds![before, DELETED_ROWS]).await? {
                0 => return Ok(deleted),
                rows => deleted += rows,
            }
        }
    }
}

/// Whether there is no partition for a row: it is made, and the same is tried again.
pub(crate) fn lacks_a_month(error: &StoreError) -> bool {
    match error {
        StoreError::Fault(Fault::Database(sqlx::Error::Database(error))) => {
            error.code().as_deref() == Some(NO_PARTITION)
        }
        _ => false,
    }
}

/// Each month once.
pub(crate) fn months(moments: impl Iterator<Item = Millis>) -> Vec<Month> {
    let mut months: Vec<_> = moments.map(Month::of).collect();
    months.sort_unstable();
    months.dedup();
    months
}
