//! How fast a month moves from a database into an archive, with all of its reading back: one run per database.

use std::fmt::Display;
use std::time::Duration;

use tollkeeper_archive::{Outcome, Place, Progress, Step, archive};
use tollkeeper_core::Month;
use tollkeeper_store::{PastDecision, Store};
use tollkeeper_testkit::Postgres;

use crate::bystanders::Bystanders;
use crate::clock::Stopwatch;
use crate::failure::Failure;
use crate::report::{self, Table, Target};

const ROWS: u64 = 1_000_000;
const ROWS_PER_SECOND: f64 = 50_000.0;
const MONTH: &str = "202605";

/// As many as one statement of SQLite takes, several times.
const PUT_AT_ONCE: u64 = 20_000;

pub(crate) fn run(rows: Option<&str>) -> Result<(), Failure> {
    let rows = match rows {
        None => ROWS,
        Some(text) => text.parse().map_err(|_| Failure::unreadable("a number of rows", text))?,
    };
    let title = format!("Archive of a month of {rows} rows to a disk, read back twice");
    let columns =
        ["from", "rows/s", "target", "writing", "checking", "naming", "dropping", "bytes a row"];
    let table = Table::new(&title, "archive", &columns);
    let bystanders = Bystanders::watch()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::io("threads"))?;
    let folder = tempfile::tempdir().map_err(Failure::io("a folder"))?;
    runtime.block_on(async {
        let store = Store::open(&folder.path().join("tollkeeper.db")).await.map_err(failed)?;
        measure(&table, "SQLite", &store, rows).await?;
        store.close().await;
        let postgres = Postgres::start().map_err(failed)?;
        let database = postgres.database().map_err(failed)?;
        let store = Store::connect(&database.url, None).await.map_err(failed)?;
        let month = month()?;
        let make = format!(
            "CREATE TABLE decision_audit_{month} PARTITION OF decision_audit FOR VALUES FROM ({}) TO ({})",
            month.start().0,
            month.end().0
        );
        postgres.ask(&database.name, &make).map_err(failed)?;
        measure(&table, "PostgreSQL", &store, rows).await?;
        store.close().await;
        Ok(())
    })?;
    report::note_bystanders(&bystanders)
}

async fn measure(table: &Table, from: &str, store: &Store, rows: u64) -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(Failure::io("a folder"))?;
    let place = Place::open(&folder.path().display().to_string(), &[]).map_err(failed)?;
    let month = month()?;
    for first in (0..rows).step_by(usize::try_from(PUT_AT_ONCE).unwrap_or(1)) {
        let some: Vec<_> =
            (first..(first + PUT_AT_ONCE).min(rows)).map(|n| row(month, n)).collect();
        store.put_past(&some).await.map_err(failed)?;
    }
    let watch = Stopwatch::start();
    let mut begun: Vec<(Step, Duration)> = Vec::new();
    let mut tell = |told: Progress| {
        if begun.last().is_none_or(|(step, _)| *step != told.step) {
            begun.push((told.step, watch.elapsed()));
        }
    };
    let outcome = archive(store, &place, month.end(), &mut tell).await.map_err(failed)?;
    let took = watch.elapsed();
    let whole =
        matches!(&outcome, Outcome::Done(done) if done.first().is_some_and(|one| one.rows == rows));
    if !whole {
        return Err(Failure::Invalid(format!("not all rows were archived: {outcome:?}")));
    }
    let object = folder.path().join(format!("{:04}/{:02}", month.year(), month.month()));
    let object = object.join("decision_audit.parquet");
    let bytes =
        std::fs::metadata(&object).map_err(Failure::io(object.display().to_string()))?.len();
    let rate = rows as f64 / took.as_secs_f64();
    let mut cells =
        vec![from.to_owned(), format!("{rate:.0}"), Target::AtLeast(ROWS_PER_SECOND).verdict(rate)];
    let ends = begun.iter().skip(1).map(|(_, at)| *at).chain([took]);
    cells.extend(
        begun
            .iter()
            .zip(ends)
            .map(|((_, at), end)| format!("{:.1} s", end.saturating_sub(*at).as_secs_f64())),
    );
    cells.push(format!("{:.0}", bytes as f64 / rows as f64));
    table.row(&cells);
    Ok(())
}

fn month() -> Result<Month, Failure> {
    Month::parse(MONTH).ok_or_else(|| Failure::unreadable("a month", MONTH))
}

/// As audits are: few tenants, many keys, paths that are all different.
fn row(month: Month, n: u64) -> PastDecision {
    let number = i64::try_from(n).unwrap_or(i64::MAX);
    let moment = month.start().0 + n % (month.end().0 - month.start().0);
    PastDecision {
        tenant_id: format!("ten_{}", n % 5),
        at: i64::try_from(moment).unwrap_or(i64::MAX),
        request_id: format!("req_{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        decision: "throttled".to_owned(),
        code: "RATE_LIMITED".to_owned(),
        status: 429,
        key_id: Some(format!("key_{:04}", n % 10_000)),
        external_id: Some(format!("customer_{}", n % 500)),
        ip: Some(format!("10.{}.{}.{}", (n >> 16) & 255, (n >> 8) & 255, n & 255)),
        method: Some("GET".to_owned()),
        endpoint: Some("/v1/orders/{id}".to_owned()),
        path: Some(format!("/v1/orders/{n}")),
        rule: None,
        limit_name: Some("requests".to_owned()),
        count: Some(number % 100),
        retry_after_ms: Some(number % 60_000),
        node: format!("node-{}", n % 3),
        region: Some("eu".to_owned()),
        latency_us: number % 400,
        degraded: false,
    }
}

fn failed(error: impl Display) -> Failure {
    Failure::Invalid(error.to_string())
}
