//! A process that dies in the middle of a write, and a caller that walks away from one:
//! what was answered is there, what was not left no trace.

use std::future::poll_fn;
use std::task::Poll;

use sqlx::Connection;
use tollkeeper_core::{FixedWindow, Millis, State};
use tollkeeper_decide::{CellKey, Loading, OriginError, ParkedCell, Shelf};
use tollkeeper_store::Store;

use crate::Fresh;

fn cell(subject: u64) -> ParkedCell {
    ParkedCell {
        key: CellKey { subject, exact: subject },
        namespace: 1,
        idle_at_s: u32::MAX,
        fill: 1,
        state: State::Fixed(FixedWindow { start: Millis(1), used: subject }),
    }
}

/// The files as a killed process leaves them are the files as they are at that instant.
#[tokio::test]
async fn a_process_killed_in_the_middle_of_a_write_leaves_what_was_committed_and_nothing_else() {
    let fresh = Fresh::new().await;
    fresh.store.put((0..1000).map(cell).collect()).await.unwrap();
    let log = fresh.folder.path().join("tollkeeper.db-wal");
    let committed = log.metadata().unwrap().len();

    let mut writer = fresh.beside().await;
    // So small a cache makes SQLite write pages of the unfinished change to the log.
    sqlx::query("PRAGMA cache_size = 5").execute(&mut writer).await.unwrap();
    let mut unfinished = writer.begin_with("BEGIN IMMEDIATE").await.unwrap();
    sqlx::query("DELETE FROM parked_cells").execute(&mut *unfinished).await.unwrap();
    sqlx::query("UPDATE tenants SET slug = hex(zeroblob(100000))")
        .execute(&mut *unfinished)
        .await
        .unwrap();

    assert!(log.metadata().unwrap().len() > committed, "the unfinished change is in the files");

    let killed = tempfile::tempdir().unwrap();
    for file in ["tollkeeper.db", "tollkeeper.db-wal"] {
        std::fs::copy(fresh.folder.path().join(file), killed.path().join(file)).unwrap();
    }
    unfinished.rollback().await.unwrap();

    let store = Store::open(&killed.path().join("tollkeeper.db")).await.unwrap();
    assert_eq!(store.sweep(Millis(0)).await.unwrap().len(), 1000);
    assert!(store.has_generated_key().await.unwrap());
    store.close().await;
    let path = killed.path().join("tollkeeper.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let mut reader = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    let check: String =
        sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut reader).await.unwrap();
    assert_eq!(check, "ok");
}

/// Walks away after the first step, then after the second, until a put finishes before that.
#[tokio::test]
async fn a_caller_that_walks_away_at_any_step_leaves_all_of_its_cells_or_none() {
    let fresh = Fresh::new().await;
    for steps in 1.. {
        let cells: Vec<_> = (0..1200).map(|i| cell(steps * 10_000 + i)).collect();
        let keys = cells.iter().map(|cell| cell.key).collect();
        let finished = abandoned_after(steps, fresh.store.put(cells)).await;
        let kept = fresh.store.find(keys).await.unwrap().len();
        assert!(kept == 0 || kept == 1200, "{kept} after {steps} steps");
        if let Some(put) = finished {
            put.unwrap();
            assert_eq!(kept, 1200);
            assert!(steps > 4, "walked away at {steps} steps only");
            return;
        }
    }
}

async fn abandoned_after<T>(steps: u64, mut work: Loading<T>) -> Option<Result<T, OriginError>> {
    let mut taken = 0;
    poll_fn(|context| {
        taken += 1;
        if taken > steps { Poll::Ready(None) } else { work.as_mut().poll(context).map(Some) }
    })
    .await
}
