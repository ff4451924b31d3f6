//! What comes back from an archive.

use tollkeeper_archive::{ArchiveError, Target, restore};
use tollkeeper_store::Store;

use crate::world::{World, label, month, rows, sorted};

#[tokio::test]
async fn a_month_comes_back_as_a_database_of_its_own() {
    let world = World::on_sqlite().await;
    let may = month("202605");
    let all = rows(may, 9_000);
    world.put(&all).await;
    world.archive().await;
    let path = world.folder.path().join("may.db");
    let to = Target::Sqlite(path.clone());
    assert_eq!(restore(&world.place, label(may), &to, &mut |_| {}).await.unwrap(), 9_000);
    let store = Store::open(&path).await.unwrap();
    let found = World { store, ..World::on_sqlite().await };
    assert_eq!(found.stored(may).await, sorted(all));
    let again = restore(&world.place, label(may), &to, &mut |_| {}).await.unwrap_err();
    assert!(matches!(again, ArchiveError::Exists { .. }), "{again}");
}

#[tokio::test]
async fn lines_are_named_as_in_answers_and_hold_what_is_there() {
    let world = World::on_sqlite().await;
    let may = month("202605");
    let mut row = rows(may, 2).pop().unwrap();
    row.external_id = None;
    world.put(std::slice::from_ref(&row)).await;
    world.archive().await;
    let expected = serde_json::json!({
        "at": row.at, "tenantId": "ten_1", "requestId": "req_202605_1", "decision": "throttled",
        "code": "RATE_LIMITED", "status": 429, "keyId": "key_1", "ip": "2001:db8::1", "method": "GET",
        "endpoint": "/v1/{id}", "path": "/v1/1", "rule": "rule_a", "limit": "requests", "count": 1,
        "retryAfterMs": 10, "node": "node-a", "region": "eu", "latencyUs": 1, "degraded": false,
    });
    let lines = world.archived(may).await;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&lines[0]).unwrap(), expected);
}

#[tokio::test]
async fn a_month_that_is_not_there_is_told() {
    let world = World::on_sqlite().await;
    let to = Target::Ndjson(world.folder.path().join("none"));
    let told = restore(&world.place, label(month("202605")), &to, &mut |_| {}).await.unwrap_err();
    assert!(told.to_string().contains("no archive of 2026-05"), "{told}");
}
