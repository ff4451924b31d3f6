//! A server of PostgreSQL whose disk is full: a batch of usage is applied whole or not at all, whichever of its tables finds
//! no room, and is applied once when there is room again.

use std::sync::Arc;

use tollkeeper_core::{Component, Minute, Usage};
use tollkeeper_store::{Fault, Store, StoreError};
use tollkeeper_testkit::{FaultyDisk, Postgres};

use crate::{Fresh, Home, NOW};

const BATCH: u64 = 40;

/// Each batch has keys of its own: rows that take room in every table.
fn batch(number: u64, project: &str) -> Vec<Component> {
    let one = |key| Component {
        minute: Minute::of(NOW),
        boot: [7; 16],
        project_id: Arc::from(project),
        key_id: format!("key_{number}_{key}").into(),
        usage: Usage { requests: 3, denied: 1, bytes: 0, credits: 0 },
    };
    (0..BATCH).map(one).collect()
}

/// Rows of the ledger and of the sums by minute and by day: as many everywhere, or a batch was torn.
async fn applied(fresh: &Fresh) -> i64 {
    let ledger = fresh.count("SELECT CAST(SUM(requests) AS BIGINT) FROM usage_ledger").await;
    let minutes = fresh.count("SELECT CAST(SUM(requests) AS BIGINT) FROM usage_minute").await;
    let days = fresh.count("SELECT CAST(SUM(requests) AS BIGINT) FROM usage_record").await;
    assert_eq!((minutes, days), (ledger, ledger));
    ledger
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn usage_that_finds_no_room_on_the_servers_disk_is_applied_whole_or_not_at_all() {
    const ROUNDS: u64 = 6;
    let disk = FaultyDisk::new();
    let server = Postgres::start_on(&disk).unwrap();
    let database = server.database().unwrap();
    let store = Store::connect(&database.url, None).await.unwrap();
    let fresh = Fresh::on(Home::Server(database), store).await;
    let project = fresh.project("p").await;
    let each = i64::try_from(BATCH * 3).unwrap();
    let (mut expected, mut next) = (0, 0);
    for _ in 0..ROUNDS {
        disk.fill();
        // Pages have some room left, those of one table more than those of another.
        let refused = loop {
            match fresh.store.apply_usage(&batch(next, &project), NOW).await {
                Ok(_) => expected += each,
                Err(error) => break error,
            }
            next += 1;
            assert!(next < 1_000, "it never runs full");
        };
        assert!(matches!(refused, StoreError::Fault(Fault::Full)), "{refused:?}");
        if expected > 0 {
            assert_eq!(applied(&fresh).await, expected);
        }
        disk.free();
        // Twice, as a worker that was not told of its success does.
        for _ in 0..2 {
            fresh.store.apply_usage(&batch(next, &project), NOW).await.unwrap();
        }
        (expected, next) = (expected + each, next + 1);
        assert_eq!(applied(&fresh).await, expected);
    }
    assert!(server.said().contains("No space left on device"), "{}", server.said());
}
