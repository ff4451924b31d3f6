//! A database with audit rows in it and a place to archive them to, for one test.

use std::collections::BTreeSet;
use std::path::PathBuf;

use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tempfile::TempDir;
use tollkeeper_archive::{
    ArchiveError, Archived, Outcome, Place, Progress, Target, archive, restore,
};
use tollkeeper_core::{Millis, Month};
use tollkeeper_store::{PastDecision, Store};
use tollkeeper_testkit::{Database, Postgres};

/// The end of June: May and June 2026 are over.
pub(crate) const JULY: Millis = Millis(1_782_864_000_000);

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) place: Place,
    pub(crate) folder: TempDir,
    pub(crate) database: Option<Database>,
}

// === impl World ===

impl World {
    pub(crate) async fn on_sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("tollkeeper.db")).await.unwrap();
        Self::with(folder, store, None)
    }

    pub(crate) async fn on_postgres() -> Self {
        let database = Postgres::shared().unwrap().database().unwrap();
        let store = Store::connect(&database.url, None).await.unwrap();
        Self::with(tempfile::tempdir().unwrap(), store, Some(database))
    }

    fn with(folder: TempDir, store: Store, database: Option<Database>) -> Self {
        let place = folder.path().join("archive");
        let place = Place::open(&format!("file://{}", place.display()), &[]).unwrap();
        Self { store, place, folder, database }
    }

    /// Puts rows where they belong; partitions of past months are made as the running nodes once made them.
    pub(crate) async fn put(&self, rows: &[PastDecision]) {
        let months: BTreeSet<Month> = rows.iter().map(month_of).collect();
        for month in months {
            self.make_partition(month).await;
        }
        self.store.put_past(rows).await.unwrap();
    }

    async fn make_partition(&self, month: Month) {
        let (start, end) = (month.start().0, month.end().0);
        if let Some(database) = &self.database {
            let mut beside = sqlx::PgConnection::connect(&database.url).await.unwrap();
            let make = AssertSqlSafe(format!(
                "CREATE TABLE IF NOT EXISTS decision_audit_{month} PARTITION OF decision_audit
                 FOR VALUES FROM ({start}) TO ({end})"
            ));
            sqlx::query(make).execute(&mut beside).await.unwrap();
        }
    }

    /// How many columns the table has.
    pub(crate) async fn columns(&self) -> i64 {
        const LITE: &str = "SELECT COUNT(*) FROM pragma_table_info('decision_audit')";
        const PG: &str =
            "SELECT COUNT(*) FROM information_schema.columns WHERE table_name = 'decision_audit'";
        if let Some(database) = &self.database {
            let mut beside = sqlx::PgConnection::connect(&database.url).await.unwrap();
            return sqlx::query_scalar(PG).fetch_one(&mut beside).await.unwrap();
        }
        let path = self.folder.path().join("tollkeeper.db");
        let mut beside =
            sqlx::sqlite::SqliteConnectOptions::new().filename(path).connect().await.unwrap();
        sqlx::query_scalar(LITE).fetch_one(&mut beside).await.unwrap()
    }

    pub(crate) async fn archive(&self) -> Vec<Archived> {
        self.try_archive(&mut |_| {}).await.unwrap()
    }

    /// Waits for the database to notice that an earlier run has died.
    pub(crate) async fn try_archive(
        &self,
        tell: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Vec<Archived>, ArchiveError> {
        loop {
            match archive(&self.store, &self.place, JULY, tell).await? {
                Outcome::Done(done) => return Ok(done),
                Outcome::Busy => tokio::task::yield_now().await,
            }
        }
    }

    /// The rows of a month that the database still has.
    pub(crate) async fn stored(&self, month: Month) -> Vec<PastDecision> {
        let mut rows: Vec<PastDecision> = Vec::new();
        loop {
            let page = self.store.past_page(month, rows.last()).await.unwrap();
            if page.is_empty() {
                return rows;
            }
            rows.extend(page);
        }
    }

    /// The rows of a month that the archive gives back; none where it has no object.
    pub(crate) async fn archived(&self, month: Month) -> Vec<String> {
        let to = self.folder.path().join("restored.ndjson");
        let _ = std::fs::remove_file(&to);
        let restored =
            restore(&self.place, label(month), &Target::Ndjson(to.clone()), &mut |_| {}).await;
        match restored {
            Ok(_) => std::fs::read_to_string(to).unwrap().lines().map(str::to_owned).collect(),
            Err(ArchiveError::NoSuchMonth(_)) => Vec::new(),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) fn object(&self, month: Month) -> PathBuf {
        let folder = format!("archive/{:04}/{:02}", month.year(), month.month());
        self.folder.path().join(folder).join("decision_audit.parquet")
    }

    pub(crate) fn unchecked(&self, month: Month) -> PathBuf {
        self.object(month).with_file_name("_decision_audit.parquet.unchecked")
    }
}

pub(crate) fn label(month: Month) -> tollkeeper_archive::Label {
    tollkeeper_archive::Label(month)
}

pub(crate) fn month(text: &str) -> Month {
    Month::parse(text).unwrap()
}

pub(crate) fn month_of(row: &PastDecision) -> Month {
    Month::of(Millis(u64::try_from(row.at).unwrap()))
}

/// So many rows of three tenants, spread over a month, no two alike and with every column empty now and then.
pub(crate) fn rows(month: Month, count: u32) -> Vec<PastDecision> {
    let length = month.end().0 - month.start().0;
    (0..count)
        .map(|n| {
            let at = month.start().0 + length * u64::from(n) / u64::from(count);
            let some = |text: String, every: u32| (n % every != 0).then_some(text);
            PastDecision {
                tenant_id: format!("ten_{}", n % 3),
                at: i64::try_from(at).unwrap(),
                request_id: format!("req_{month}_{n}"),
                decision: ["allowed", "throttled", "blocked"][n as usize % 3].to_owned(),
                code: ["VALID", "RATE_LIMITED", "DISABLED"][n as usize % 3].to_owned(),
                status: [200, 429, 403][n as usize % 3],
                key_id: some(format!("key_{}", n % 1000), 7),
                external_id: some(format!("Zoë {}", n % 50), 2),
                ip: some(format!("2001:db8::{n:x}"), 5),
                method: some("GET".to_owned(), 11),
                endpoint: some("/v1/{id}".to_owned(), 3),
                path: some(format!("/v1/{n}"), 4),
                rule: some("rule_a".to_owned(), 6),
                limit_name: some("requests".to_owned(), 8),
                count: (n % 9 != 0).then_some(i64::from(n)),
                retry_after_ms: (n % 3 == 1).then_some(i64::from(n) * 10),
                node: "node-a".to_owned(),
                region: some("eu".to_owned(), 10),
                latency_us: i64::from(n % 400),
                degraded: n % 100 == 0,
            }
        })
        .collect()
}

/// In the order in which they are kept.
pub(crate) fn sorted(mut rows: Vec<PastDecision>) -> Vec<PastDecision> {
    rows.sort();
    rows
}

/// The request ids in lines that were restored.
pub(crate) fn requests(lines: &[String]) -> BTreeSet<String> {
    lines
        .iter()
        .map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            row["requestId"].as_str().unwrap().to_owned()
        })
        .collect()
}
