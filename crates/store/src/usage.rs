//! Usage in the database: what processes tell in totals becomes sums by minute and by day. The ledger holds the highest
//! totals that were applied and only the difference is added, in the same transaction: telling twice, late, out of order,
//! from two workers at once or again after a restore adds nothing twice.

mod query;
mod retention;
mod rows;

use tollkeeper_core::{Component, Millis, Minute, Usage, boot_of_text};

use crate::bind::unsigned;
use crate::db::{Begun, Db, Purpose};
use crate::{Each, Fault, Store, StoreError};
use rows::{Named, Rows, Statement, highest_of_each, statement};

pub use query::{IdentityTotals, UsageBy, UsageQuery, UsageRow};
pub use retention::USAGE_KEPT_MS;

/// A transaction of so many rows takes some tenths of a second; more would hold up the others who apply.
const APPLY_ROWS: usize = 5_000;

/// So many minutes of one process are a fraction of a second also where each has tens of thousands of keys.
const SUMMED_MINUTES: usize = 16;

/// The rows of the ledger that these are about, where there are any, and only those totals that are more than there.
macro_rules! more_than_known {
    () => {
        "FROM incoming i LEFT JOIN usage_ledger l ON l.minute = i.minute AND l.boot = i.boot
            AND l.project_id = i.project_id AND l.key_id = i.key_id
        WHERE i.requests > COALESCE(l.requests, 0) OR i.denied > COALESCE(l.denied, 0)
            OR i.bytes > COALESCE(l.bytes, 0) OR i.credits > COALESCE(l.credits, 0)"
    };
}

/// By how much.
macro_rules! difference {
    ($total:literal) => {
        concat!(
            "CAST(SUM(CASE WHEN i.",
            $total,
            " > COALESCE(l.",
            $total,
            ", 0) THEN i.",
            $total,
            " - COALESCE(l.",
            $total,
            ", 0) ELSE 0 END) AS BIGINT)"
        )
    };
}

macro_rules! differences {
    () => {
        concat!(
            difference!("requests"),
            ", ",
            difference!("denied"),
            ", ",
            difference!("bytes"),
            ", ",
            difference!("credits"),
            " ",
            more_than_known!()
        )
    };
}

/// Adds to the row that is there.
macro_rules! add_to {
    ($table:literal) => {
        concat!(
            "DO UPDATE SET requests = ",
            $table,
            ".requests + excluded.requests, denied = ",
            $table,
            ".denied + excluded.denied, bytes = ",
            $table,
            ".bytes + excluded.bytes, credits = ",
            $table,
            ".credits + excluded.credits"
        )
    };
}

/// The larger one.
macro_rules! raised {
    ($total:literal) => {
        concat!(
            $total,
            " = CASE WHEN excluded.",
            $total,
            " > usage_ledger.",
            $total,
            " THEN excluded.",
            $total,
            " ELSE usage_ledger.",
            $total,
            " END"
        )
    };
}

const BY_MINUTE: Statement = statement!(
    "INSERT INTO usage_minute (project_id, minute, key_id, requests, denied, bytes, credits)
    SELECT i.project_id, i.minute, i.key_id, ",
    differences!(),
    " GROUP BY i.project_id, i.minute, i.key_id ORDER BY i.project_id, i.minute, i.key_id
    ON CONFLICT (project_id, minute, key_id) ",
    add_to!("usage_minute")
);

const BY_DAY: Statement = statement!(
    "INSERT INTO usage_record (project_id, date, key_id, requests, denied, bytes, credits)
    SELECT i.project_id, i.date, i.key_id, ",
    differences!(),
    " GROUP BY i.project_id, i.date, i.key_id ORDER BY i.project_id, i.date, i.key_id
    ON CONFLICT (project_id, date, key_id) ",
    add_to!("usage_record")
);

const HIGHEST: Statement =
    statement!(
    "INSERT INTO usage_ledger (minute, boot, project_id, key_id, requests, denied, bytes, credits)
    SELECT i.minute, i.boot, i.project_id, i.key_id, i.requests, i.denied, i.bytes, i.credits ",
    more_than_known!(),
    " ORDER BY i.minute, i.boot, i.project_id, i.key_id
    ON CONFLICT (minute, boot, project_id, key_id) DO UPDATE SET ",
    raised!("requests"), ", ", raised!("denied"), ", ", raised!("bytes"), ", ", raised!("credits")
);

const SHOWN: Statement = statement!(
    "SELECT l.minute, l.boot, l.project_id, l.key_id, l.requests, l.denied, l.bytes, l.credits
    FROM incoming i JOIN usage_ledger l ON l.minute = i.minute AND l.boot = i.boot
        AND l.project_id = i.project_id AND l.key_id = i.key_id"
);

/// Minutes of processes, whatever project and key: the first two columns of its key.
const SUMS: Statement = statement!(
    "SELECT l.minute, l.boot, '' AS project_id, '' AS key_id, CAST(SUM(l.requests) AS BIGINT) AS requests,
        CAST(SUM(l.denied) AS BIGINT) AS denied, CAST(SUM(l.bytes) AS BIGINT) AS bytes,
        CAST(SUM(l.credits) AS BIGINT) AS credits
    FROM incoming i JOIN usage_ledger l ON l.minute = i.minute AND l.boot = i.boot
    GROUP BY l.minute, l.boot"
);

#[derive(sqlx::FromRow)]
struct LedgerRow {
    minute: i64,
    boot: String,
    project_id: String,
    key_id: String,
    requests: i64,
    denied: i64,
    bytes: i64,
    credits: i64,
}

// === impl Store ===

impl Store {
    /// Applies totals; repeats are harmless. What is older than the ledger remembers is left out, because nobody could say
    /// whether it was applied before: how many those were is the answer.
    pub async fn apply_usage(&self, told: &[Component], now: Millis) -> Result<u64, StoreError> {
        let oldest = Minute::of(Millis(now.0.saturating_sub(retention::TOLD_MS)));
        let rows = highest_of_each(told.iter().filter(|one| one.minute >= oldest));
        for chunk in rows.chunks(APPLY_ROWS) {
            let rows = self.usage_rows(chunk);
            let mut begun = self.db.begin(Purpose::Background).await?;
            take_turns(&mut begun).await?;
            for step in [BY_MINUTE, BY_DAY, HIGHEST] {
                rows.run(&mut begun, step).await?;
            }
            begun.commit().await?;
        }
        Ok(told.iter().filter(|one| one.minute < oldest).count() as u64)
    }

    /// What the ledger shows of each of these; one that it does not know is not in the answer.
    pub async fn shown_usage(&self, asked: &[Component]) -> Result<Vec<Component>, StoreError> {
        let mut shown = Vec::with_capacity(asked.len());
        for chunk in highest_of_each(asked.iter()).chunks(APPLY_ROWS) {
            let from = self.db.read(Purpose::Background);
            let found: Vec<LedgerRow> = self.usage_rows(chunk).all(from, SHOWN).await?;
            for row in found {
                shown.push(row.try_into()?);
            }
        }
        Ok(shown)
    }

    /// What the ledger shows of whole minutes of processes: of each of these that it knows, the sum over projects and keys.
    pub async fn usage_sums(&self, asked: &[Component]) -> Result<Vec<Component>, StoreError> {
        let mut sums = Vec::with_capacity(asked.len());
        for chunk in highest_of_each(asked.iter()).chunks(SUMMED_MINUTES) {
            let from = self.db.read(Purpose::Background);
            let found: Vec<LedgerRow> = self.usage_rows(chunk).all(from, SUMS).await?;
            for row in found {
                sums.push(row.try_into()?);
            }
        }
        Ok(sums)
    }

    fn usage_rows(&self, rows: &[(Named<'_>, Usage)]) -> Rows {
        if matches!(self.db, Db::Lite { .. }) { Rows::lite(rows) } else { Rows::pg(rows) }
    }
}

/// One at a time, as SQLite has it by itself: what is compared with the ledger must not change before it is written. In
/// PostgreSQL a lock of this transaction, waited for longer than any other, because others may have batches to write too.
async fn take_turns(begun: &mut Begun) -> Result<(), StoreError> {
    const PATIENCE: &str = "SELECT set_config('lock_timeout', '8000', TRUE),
        set_config('statement_timeout', '10000', TRUE)";
    // Any number will do that no other lock of ours has.
    const TURN: &str = "SELECT pg_advisory_xact_lock(8400207315)";
    if matches!(begun, Each::Pg(_)) {
        begun.conn().run(PATIENCE, &[]).await?;
        begun.conn().run(TURN, &[]).await?;
    }
    Ok(())
}

// === impl LedgerRow ===

impl TryFrom<LedgerRow> for Component {
    type Error = Fault;

    fn try_from(row: LedgerRow) -> Result<Self, Fault> {
        Ok(Self {
            minute: Minute::of(Millis(unsigned(row.minute))),
            boot: boot_of_text(&row.boot).ok_or(Fault::Unreadable("usage"))?,
            project_id: row.project_id.into(),
            key_id: row.key_id.into(),
            usage: Usage {
                requests: unsigned(row.requests),
                denied: unsigned(row.denied),
                bytes: unsigned(row.bytes),
                credits: unsigned(row.credits),
            },
        })
    }
}
