//! What others read in our files: pyarrow, which shares no code with us.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tollkeeper_store::PastDecision;
use tollkeeper_testkit::python;

use crate::world::{World, month, rows, sorted};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pyarrow_reads_every_value_as_it_was_stored() {
    let world = World::on_sqlite().await;
    let may = month("202605");
    let all = rows(may, 70_000);
    world.put(&all).await;
    world.archive().await;
    read_with_pyarrow(&world.object(may), all);
}

pub(crate) fn read_with_pyarrow(file: &Path, rows: Vec<PastDecision>) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/read_back.py");
    let ran = Command::new(python().unwrap()).arg(script).arg(file).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let printed = String::from_utf8(ran.stdout).unwrap();
    let mut lines = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let about = lines.next().unwrap();
    assert_eq!(about["rows"], rows.len());
    assert_eq!(about["compressions"], json!(["SNAPPY"]));
    assert_eq!(about["types"]["at"], "int64");
    assert_eq!(about["types"]["degraded"], "bool");
    let mut read = 0;
    for (line, row) in lines.zip(sorted(rows)) {
        assert_eq!(line, as_json(&row));
        read += 1;
    }
    assert_eq!(about["rows"], read);
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
