//! What was decided, written in batches long after the request. A batch that is written twice counts once.

mod search;

use sqlx::postgres::PgPool;
use tollkeeper_core::{AuditRow, Millis, Month};

use crate::bind::signed;
use crate::db::{Db, Purpose};
use crate::partitions::{DECISIONS, lacks_a_month, months};
use crate::patience::{Patient, within};
use crate::{Bind, Store, StoreError};

pub use search::DecisionFilter;

/// Rows of one statement on a server: a thousand take about ten milliseconds, of the two seconds that one may take.
const SERVER_ROWS: usize = 1_000;

/// Twenty values a row, far below the 32,766 that SQLite may bind.
const FILE_ROWS: usize = 200;
const COLUMNS: usize = 20;

// === impl Store ===

impl Store {
    /// How many of them were not there yet.
    pub async fn write_decisions(&self, rows: &[AuditRow]) -> Result<u64, StoreError> {
        match &self.db {
            Db::Lite { .. } => self.write_to_file(rows).await,
            Db::Pg(pools) => {
                let mut written = 0;
                for chunk in rows.chunks(SERVER_ROWS) {
                    written += self.write_to_server(&pools.background, chunk).await?;
                }
                Ok(written)
            }
        }
    }

    /// All rows in one transaction: a flush of the disk costs more than the rows.
    async fn write_to_file(&self, rows: &[AuditRow]) -> Result<u64, StoreError> {
        const ADD: &str = "INSERT INTO decision_audit (at, tenant_id, request_id, decision, code,
                status, key_id, external_id, ip, method, endpoint, path, rule, limit_name, count,
                retry_after_ms, node, region, latency_us, degraded)
            VALUES {} ON CONFLICT (tenant_id, at, request_id) DO NOTHING";
        let mut begun = self.db.begin(Purpose::Background).await?;
        let mut written = 0;
        for chunk in rows.chunks(FILE_ROWS) {
            let binds: Vec<Bind<'_>> = chunk.iter().flat_map(columns).collect();
            written += begun.conn().run_rows(ADD, COLUMNS, &binds).await?;
        }
        begun.commit().await?;
        Ok(written)
    }

    /// A row of a month without a partition, as the first one after a long sleep is, has it made.
    async fn write_to_server(&self, pool: &PgPool, rows: &[AuditRow]) -> Result<u64, StoreError> {
        match insert(pool, rows).await {
            Err(error) if lacks_a_month(&error) => {
                self.make_months(DECISIONS, &months(rows.iter().map(|row| row.at))).await?;
                insert(pool, rows).await
            }
            written => written,
        }
    }

    /// Forgets what is older than this; on a server by whole months.
    pub async fn prune_decisions(&self, before: Millis) -> Result<u64, StoreError> {
        self.forget(DECISIONS, before).await
    }

    /// The months that there is room for, oldest first; none for a file.
    pub async fn decision_months(&self) -> Result<Vec<Month>, StoreError> {
        self.months_of(DECISIONS).await
    }
}

fn columns(row: &AuditRow) -> [Bind<'_>; COLUMNS] {
    [
        Bind::from(row.at),
        Bind::from(&*row.tenant_id),
        Bind::from(&*row.request_id),
        Bind::from(row.decision.word()),
        Bind::from(&*row.code),
        Bind::from(i64::from(row.status)),
        Bind::from(row.key_id.as_deref()),
        Bind::from(row.external_id.as_deref()),
        Bind::from(row.ip.as_deref()),
        Bind::from(row.method.as_deref()),
        Bind::from(row.endpoint.as_deref()),
        Bind::from(row.path.as_deref()),
        Bind::from(row.rule.as_deref()),
        Bind::from(row.limit.as_deref()),
        Bind::from(row.count.map(signed)),
        Bind::from(row.retry_after_ms.map(signed)),
        Bind::from(&*row.node),
        Bind::from(row.region.as_deref()),
        Bind::from(signed(row.latency_us)),
        Bind::from(row.degraded),
    ]
}

/// One array per column: the statement stays the same however many rows there are, and is parsed once.
async fn insert(pool: &PgPool, rows: &[AuditRow]) -> Result<u64, StoreError> {
    const ADD: &str = "INSERT INTO decision_audit (at, tenant_id, request_id, decision, code,
            status, key_id, external_id, ip, method, endpoint, path, rule, limit_name, count,
            retry_after_ms, node, region, latency_us, degraded)
        SELECT * FROM UNNEST($1::BIGINT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[],
            $6::BIGINT[], $7::TEXT[], $8::TEXT[], $9::TEXT[], $10::TEXT[], $11::TEXT[],
            $12::TEXT[], $13::TEXT[], $14::TEXT[], $15::BIGINT[], $16::BIGINT[], $17::TEXT[],
            $18::TEXT[], $19::BIGINT[], $20::BOOLEAN[])
        ON CONFLICT (tenant_id, at, request_id) DO NOTHING";
    let added = sqlx::query(ADD)
        .bind(column(rows, |row| signed(row.at.0)))
        .bind(column(rows, |row| &*row.tenant_id))
        .bind(column(rows, |row| &*row.request_id))
        .bind(column(rows, |row| row.decision.word()))
        .bind(column(rows, |row| &*row.code))
        .bind(column(rows, |row| i64::from(row.status)))
        .bind(column(rows, |row| row.key_id.as_deref()))
        .bind(column(rows, |row| row.external_id.as_deref()))
        .bind(column(rows, |row| row.ip.as_deref()))
        .bind(column(rows, |row| row.method.as_deref()))
        .bind(column(rows, |row| row.endpoint.as_deref()))
        .bind(column(rows, |row| row.path.as_deref()))
        .bind(column(rows, |row| row.rule.as_deref()))
        .bind(column(rows, |row| row.limit.as_deref()))
        .bind(column(rows, |row| row.count.map(signed)))
        .bind(column(rows, |row| row.retry_after_ms.map(signed)))
        .bind(column(rows, |row| &*row.node))
        .bind(column(rows, |row| row.region.as_deref()))
        .bind(column(rows, |row| signed(row.latency_us)))
        .bind(column(rows, |row| row.degraded))
        .execute(pool);
    let added = within(<&PgPool>::PATIENCE, added).await?;
    Ok(added.rows_affected())
}

fn column<'a, T>(rows: &'a [AuditRow], of: impl Fn(&'a AuditRow) -> T) -> Vec<T> {
    rows.iter().map(of).collect()
}
