//! Past months of the decision audit, as the archive takes them: found, read page by page, and removed once they are
//! safe elsewhere. Tenants are read one after the other, since an archive is of the whole installation.

mod packed;

use sqlx::sqlite::SqliteSynchronous;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tollkeeper_core::{Millis, Month};

use crate::bind::{binds, signed, unsigned};
use crate::db::{Conn, Db, PgPools, Pools, Purpose};
use crate::file_lock::lock;
use crate::{Bind, Each, Store, StoreError};

/// Some two megabytes: far below what a statement may take, and few enough statements for millions of rows.
const PAGE_ROWS: usize = 8_192;

/// Twenty values a row, far below the 32,766 that SQLite may bind.
const PUT_ROWS: usize = 200;

/// 64 MiB hold the pages that a transaction touches, and a log of 64 MiB is written back to the file far less often than
/// one of SQLite's usual four.
const REMOVER_CACHE: &str = "-65536";
const REMOVER_LOG_PAGES: &str = "16384";

const PARTITION: &str = "decision_audit_";

/// Any number that nobody else locks by.
const ARCHIVE_LOCK: &str = "SELECT pg_try_advisory_lock(8400207312)";

/// The columns stand in the order of [`PastDecision`], which SQLite's are unpacked by.
const ROWS: &str =
    "SELECT tenant_id, at, request_id, decision, code, status, key_id, external_id, ip, method,
        endpoint, path, rule, limit_name, count, retry_after_ms, node, region, latency_us, degraded
    FROM decision_audit
    WHERE tenant_id = $1 AND at >= $2 AND at < $3 AND (at, request_id) > ($4, $5)
    ORDER BY at, request_id LIMIT $6";

/// One row, as it is stored. Rows are ordered as the archive has them: by tenant, moment and request, which tell
/// them apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, sqlx::FromRow, serde::Deserialize)]
pub struct PastDecision {
    pub tenant_id: String,
    pub at: i64,
    pub request_id: String,
    pub decision: String,
    pub code: String,
    pub status: i64,
    pub key_id: Option<String>,
    pub external_id: Option<String>,
    pub ip: Option<String>,
    pub method: Option<String>,
    pub endpoint: Option<String>,
    pub path: Option<String>,
    pub rule: Option<String>,
    pub limit_name: Option<String>,
    pub count: Option<i64>,
    pub retry_after_ms: Option<i64>,
    pub node: String,
    pub region: Option<String>,
    pub latency_us: i64,
    pub degraded: bool,
}

/// How a month leaves the database.
#[derive(Debug)]
pub enum Removal {
    /// By [`Store::drop_month`].
    Whole,
    ByRow(PastRemover),
}

/// Whether a month is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    Gone,
    /// Nothing was dropped: it holds more rows, or fewer, than the caller has seen.
    Changed {
        rows: u64,
    },
}

/// Held by whoever archives; let go of when dropped, and by the database or the kernel when its process ends.
#[derive(Debug)]
pub struct ArchiveLock(Holding);

/// Rows are safe elsewhere when they are removed, so SQLite does not wait for the disk here: what is back after a power
/// cut is removed by the next run.
#[derive(Debug)]
pub struct PastRemover(sqlx::SqliteConnection);

#[derive(Debug)]
enum Holding {
    /// Beside the database file, whose processes are all on one machine.
    File(#[expect(dead_code, reason = "it is held, not read")] std::fs::File),
    Session(Box<sqlx::PgConnection>),
}

// === impl Store ===

impl Store {
    /// The right to archive, which one process has at a time; `None` while another has it.
    pub async fn lock_archive(&self) -> Result<Option<ArchiveLock>, StoreError> {
        match &self.db {
            Db::Lite { write, .. } => {
                let options = write.connect_options();
                let held = lock(&options.get_filename().with_extension("archive-lock"))?;
                Ok(held.map(|file| ArchiveLock(Holding::File(file))))
            }
            Db::Pg(pools) => lock_session(pools).await,
        }
    }

    /// Months that were over at this moment and are still here, oldest first.
    pub async fn past_months(&self, before: Millis) -> Result<Vec<Month>, StoreError> {
        match self.db.read(Purpose::Background) {
            Each::Pg(_) => self.partitioned_months(before).await,
            Each::Lite(_) => self.months_with_rows(before).await,
        }
    }

    /// How many rows a month has, to tell how far reading it is.
    pub async fn count_month(&self, month: Month) -> Result<u64, StoreError> {
        const COUNT: &str = "SELECT COUNT(*) FROM decision_audit WHERE at >= $1 AND at < $2";
        let binds = binds![month.start(), month.end()];
        let (rows,): (i64,) = match self.db.read(Purpose::Background) {
            Each::Lite(pool) => Pools::Lite(pool).one(COUNT, binds).await?,
            Each::Pg(_) => {
                let mut begun = self.db.begin(Purpose::Background).await?;
                begun.conn().run(WITHOUT_HASTE, &[]).await?;
                begun.conn().one_at_leisure(COUNT, binds).await?
            }
        };
        Ok(unsigned(rows))
    }

    /// The rows of a month that follow this one, in order; none when it was the last.
    pub async fn past_page(
        &self,
        month: Month,
        after: Option<&PastDecision>,
    ) -> Result<Vec<PastDecision>, StoreError> {
        let from = self.db.read(Purpose::Background);
        let (mut tenant, mut position) = match after {
            Some(row) => (Some(row.tenant_id.clone()), Some((row.at, row.request_id.as_str()))),
            None => (next_tenant(from, None).await?, None),
        };
        let mut page = Vec::new();
        while let Some(tenant_id) = tenant {
            let room = PAGE_ROWS - page.len();
            let rows = rows_of(from, &tenant_id, month, position, room).await?;
            let full = rows.len() == room;
            page.extend(rows);
            if full {
                return Ok(page);
            }
            position = None;
            tenant = next_tenant(from, Some(&tenant_id)).await?;
        }
        Ok(page)
    }

    /// How a month leaves the database: as one partition, or row by row.
    pub async fn removal(&self) -> Result<Removal, StoreError> {
        let Db::Lite { write, .. } = &self.db else { return Ok(Removal::Whole) };
        let options = (*write.connect_options())
            .clone()
            .synchronous(SqliteSynchronous::Normal)
            .pragma("cache_size", REMOVER_CACHE)
            .pragma("wal_autocheckpoint", REMOVER_LOG_PAGES);
        Ok(Removal::ByRow(PastRemover(options.connect().await?)))
    }

    /// Drops the partition of a month that holds exactly so many rows. Nobody can add one between the counting and the
    /// dropping; rows are never changed, so as many are the same.
    pub async fn drop_month(&self, month: Month, rows: u64) -> Result<Dropped, StoreError> {
        const THERE: &str = "SELECT to_regclass($1) IS NOT NULL";
        let partition = format!("{PARTITION}{month}");
        let mut begun = self.db.begin(Purpose::Background).await?;
        begun.conn().run(WITHOUT_HASTE, &[]).await?;
        let (there,): (bool,) = begun.conn().one(THERE, binds![&partition]).await?;
        if !there {
            return Ok(Dropped::Gone);
        }
        let lock = AssertSqlSafe(format!("LOCK TABLE {partition} IN SHARE MODE"));
        begun.conn().run_at_leisure(lock, &[]).await?;
        let count = AssertSqlSafe(format!("SELECT COUNT(*) FROM {partition}"));
        let (found,): (i64,) = begun.conn().one_at_leisure(count, &[]).await?;
        if unsigned(found) != rows {
            return Ok(Dropped::Changed { rows: unsigned(found) });
        }
        let drop = AssertSqlSafe(format!("DROP TABLE {partition}"));
        begun.conn().run_at_leisure(drop, &[]).await?;
        begun.commit().await?;
        Ok(Dropped::Gone)
    }

    /// Puts rows of an archive into a database that has none of them, such as a fresh file.
    pub async fn put_past(&self, rows: &[PastDecision]) -> Result<(), StoreError> {
        let mut begun = self.db.begin(Purpose::Background).await?;
        for chunk in rows.chunks(PUT_ROWS) {
            let binds: Vec<Bind<'_>> = chunk.iter().flat_map(PastDecision::binds).collect();
            begun.conn().run_rows(PUT, PUT_COLUMNS, &binds).await?;
        }
        begun.commit().await
    }

    async fn partitioned_months(&self, before: Millis) -> Result<Vec<Month>, StoreError> {
        const NAMES: &str = "SELECT CAST(c.relname AS TEXT) FROM pg_inherits i
            JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = to_regclass('decision_audit') ORDER BY c.relname";
        let names: Vec<(String,)> = self.db.read(Purpose::Background).all(NAMES, &[]).await?;
        let months = names.iter().filter_map(|(name,)| Month::parse(name.strip_prefix(PARTITION)?));
        Ok(months.filter(|month| month.end() <= before).collect())
    }

    async fn months_with_rows(&self, before: Millis) -> Result<Vec<Month>, StoreError> {
        const OLDEST: &str = "SELECT MIN(at) FROM decision_audit WHERE at >= $1 AND at < $2";
        let mut months = Vec::new();
        let mut from = Millis(0);
        loop {
            let pools = self.db.read(Purpose::Background);
            let (oldest,): (Option<i64>,) = pools.one(OLDEST, binds![from, before]).await?;
            let Some(month) = oldest.map(|at| Month::of(Millis(unsigned(at)))) else {
                return Ok(months);
            };
            if month.end() > before {
                return Ok(months);
            }
            from = month.end();
            months.push(month);
        }
    }
}

/// A whole month may take longer than any other statement.
const WITHOUT_HASTE: &str = "SET LOCAL statement_timeout = '15min'";

/// By the index, from one tenant to the next: as many steps as there are tenants.
async fn next_tenant(from: Pools<'_>, after: Option<&str>) -> Result<Option<String>, StoreError> {
    const FIRST: &str = "SELECT MIN(tenant_id) FROM decision_audit";
    const NEXT: &str = "SELECT MIN(tenant_id) FROM decision_audit WHERE tenant_id > $1";
    let (tenant_id,): (Option<String>,) = match after {
        None => from.one(FIRST, &[]).await?,
        Some(after) => from.one(NEXT, binds![after]).await?,
    };
    Ok(tenant_id)
}

async fn rows_of(
    from: Pools<'_>,
    tenant_id: &str,
    month: Month,
    after: Option<(i64, &str)>,
    limit: usize,
) -> Result<Vec<PastDecision>, StoreError> {
    let start = signed(month.start().0);
    let (at, request_id) = after.unwrap_or((start - 1, ""));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    // The bounds leave the index to start at the position, and PostgreSQL to look into one partition only.
    let from_at = at.max(start);
    let binds = binds![tenant_id, from_at, month.end(), at, request_id, limit];
    match from {
        Each::Pg(_) => from.all(ROWS, binds).await,
        Each::Lite(_) => packed::rows(from, binds).await,
    }
}

/// On a connection of its own: it is held for as long as a run takes, and the pool is small.
async fn lock_session(pools: &PgPools) -> Result<Option<ArchiveLock>, StoreError> {
    let options = pools.background.connect_options();
    let mut session = sqlx::PgConnection::connect_with(&options).await?;
    let (locked,): (bool,) = sqlx::query_as(ARCHIVE_LOCK).fetch_one(&mut session).await?;
    Ok(locked.then(|| ArchiveLock(Holding::Session(Box::new(session)))))
}

/// A cross join is done as it stands: each row is looked up by its key. A list of triples would be held against every
/// row of the table. All keys are one value, because SQLite's numbered ones cost more the more there are.
const FORGET: &str = "DELETE FROM decision_audit WHERE rowid IN
    (SELECT d.rowid FROM json_each($1) AS gone CROSS JOIN decision_audit d
     ON d.tenant_id = gone.value ->> 0 AND d.at = gone.value ->> 1 AND d.request_id = gone.value ->> 2)";

// === impl PastRemover ===

impl PastRemover {
    /// Rows of one moment lie all over the indexes by key and identity, and each transaction writes every page that it
    /// touches: fewer of them are far less writing, and more would hold up others for longer.
    pub const ROWS_AT_ONCE: usize = 16_384;

    /// Removes exactly these rows, all at once. Other writers wait meanwhile, for some hundred milliseconds if there are
    /// as many as [`PastRemover::ROWS_AT_ONCE`].
    pub async fn forget(&mut self, rows: &[PastDecision]) -> Result<u64, StoreError> {
        let keys: Vec<_> = rows.iter().map(PastDecision::key).collect();
        let keys = serde_json::json!(keys).to_string();
        Conn::Lite(&mut self.0).run(FORGET, binds![&keys]).await
    }

    pub async fn close(self) -> Result<(), StoreError> {
        Ok(self.0.close().await?)
    }
}

// === impl ArchiveLock ===

impl ArchiveLock {
    /// Whether it is still held: a database that was away has given it to whoever asked next.
    pub async fn holds(&mut self) -> bool {
        match &mut self.0 {
            Holding::File(_) => true,
            Holding::Session(session) => session.ping().await.is_ok(),
        }
    }
}

// === impl PastDecision ===

const PUT_COLUMNS: usize = 20;
const PUT: &str = "INSERT INTO decision_audit (tenant_id, at, request_id, decision, code, status, key_id, external_id, ip,
        method, endpoint, path, rule, limit_name, count, retry_after_ms, node, region, latency_us, degraded)
    VALUES {}";

impl PastDecision {
    /// What tells it from every other.
    pub fn key(&self) -> (&str, i64, &str) {
        (&self.tenant_id, self.at, &self.request_id)
    }

    fn binds(&self) -> [Bind<'_>; PUT_COLUMNS] {
        [
            (&self.tenant_id).into(),
            self.at.into(),
            (&self.request_id).into(),
            (&self.decision).into(),
            (&self.code).into(),
            self.status.into(),
            (&self.key_id).into(),
            (&self.external_id).into(),
            (&self.ip).into(),
            (&self.method).into(),
            (&self.endpoint).into(),
            (&self.path).into(),
            (&self.rule).into(),
            (&self.limit_name).into(),
            self.count.into(),
            self.retry_after_ms.into(),
            (&self.node).into(),
            (&self.region).into(),
            self.latency_us.into(),
            self.degraded.into(),
        ]
    }
}
