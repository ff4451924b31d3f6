//! What others read in our files: pyarrow and `DuckDB`, which share no code with us.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tollkeeper_store::PastDecision;
use tollkeeper_testkit::python;

use crate::world::{World, month, rows, sorted};

/// More than one row group, and every column empty now and then.
const ROWS: u32 = 70_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pyarrow_and_duckdb_read_every_value_as_it_was_stored() {
    let world = World::on_sqlite().await;
    let may = month("202605");
    let all = rows(may, ROWS);
    world.put(&all).await;
    world.archive().await;
    for reader in [Reader::Pyarrow, Reader::DuckDb] {
        read_with(reader, &world.object(may), all.clone());
    }
}

/// As the manual has it: the months of a folder are one table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duckdb_reads_all_months_of_an_archive_at_once() {
    let world = World::on_sqlite().await;
    let months = [month("202605"), month("202606")];
    let all: Vec<_> = months.into_iter().flat_map(|month| rows(month, 500)).collect();
    world.put(&all).await;
    world.archive().await;
    let (about, read) = printed(Reader::DuckDb, &world.folder.path().join("archive/**/*.parquet"));
    assert_eq!(about["rows"], all.len());
    let read: BTreeSet<_> = read.iter().map(|row| row["request_id"].to_string()).collect();
    assert_eq!(read, all.iter().map(|row| json!(row.request_id).to_string()).collect());
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Reader {
    Pyarrow,
    DuckDb,
}

// === impl Reader ===

impl Reader {
    fn name(self) -> &'static str {
        match self {
            Self::Pyarrow => "pyarrow",
            Self::DuckDb => "duckdb",
        }
    }

    /// How it calls the types of a number, a flag and a text.
    fn types(self) -> [&'static str; 3] {
        match self {
            Self::Pyarrow => ["int64", "bool", "string"],
            Self::DuckDb => ["BIGINT", "BOOLEAN", "VARCHAR"],
        }
    }
}

pub(crate) fn read_with(reader: Reader, file: &Path, rows: Vec<PastDecision>) {
    let (about, read) = printed(reader, file);
    assert_eq!(about["rows"], rows.len(), "{reader:?}");
    assert_eq!(about["compressions"], json!(["SNAPPY"]), "{reader:?}");
    let types = ["at", "degraded", "path"].map(|column| &about["types"][column]);
    assert_eq!(types, reader.types(), "{reader:?}");
    assert_eq!(about["rows"], read.len(), "{reader:?}");
    for (line, row) in read.iter().zip(sorted(rows)) {
        assert_eq!(*line, as_json(&row), "{reader:?}");
    }
}

/// What it says of the files, and their rows.
fn printed(reader: Reader, files: &Path) -> (Value, Vec<Value>) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/read_back.py");
    let ran = Command::new(python().unwrap()).args([script, reader.name()]).arg(files).output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let printed = String::from_utf8(ran.stdout).unwrap();
    let mut lines = printed.lines().map(|line| serde_json::from_str(line).unwrap());
    (lines.next().unwrap(), lines.collect())
}

fn as_json(row: &PastDecision) -> Value {
    json!({
        "at": row.at, "tenant_id": row.tenant_id, "request_id": row.request_id, "decision": row.decision,
        "code": row.code, "status": row.status, "key_id": row.key_id, "external_id": row.external_id, "ip": row.ip,
        "method": row.method, "endpoint": row.endpoint, "path": row.path, "rule": row.rule,
        "limit_name": row.limit_name, "count": row.count, "retry_after_ms": row.retry_after_ms, "node": row.node,
        "region": row.region, "latency_us": row.latency_us, "degraded": row.degraded,
    })
}
