//! Usage in a SQLite file whose process is killed, or whose write-ahead log is cut off anywhere: the file is whole, and the
//! ledger and its sums say the same.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use sqlx::{ConnectOptions, SqliteConnection};
use tollkeeper_core::Component;
use tollkeeper_store::Store;

use crate::usage::told;
use crate::{Fresh, NOW};

/// Where the process that is to be killed finds its database.
const VICTIM: &str = "TOLLKEEPER_TEST_USAGE_VICTIM";
const KILLS: u64 = 25;
const KEYS: u64 = 50;

fn batch(boot: [u8; 16], requests: u64) -> Vec<Component> {
    (0..KEYS).map(|key| told(boot, NOW.0, "api_1", &format!("key_{key}"), requests)).collect()
}

/// What the ledger shows, and all three tables alike, of a file that is whole.
async fn counted(path: &Path) -> u64 {
    const SUMS: &str = "SELECT (SELECT COALESCE(SUM(requests), 0) FROM usage_ledger),
        (SELECT COALESCE(SUM(requests), 0) FROM usage_minute),
        (SELECT COALESCE(SUM(requests), 0) FROM usage_record)";
    const TORN: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM usage_ledger GROUP BY boot
        HAVING COUNT(*) <> 50 OR MIN(requests) <> MAX(requests))";
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let mut file: SqliteConnection = options.connect().await.unwrap();
    let check: String =
        sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut file).await.unwrap();
    assert_eq!(check, "ok");
    let sums: (i64, i64, i64) = sqlx::query_as(SUMS).fetch_one(&mut file).await.unwrap();
    assert_eq!((sums.1, sums.2), (sums.0, sums.0));
    let torn: i64 = sqlx::query_scalar(TORN).fetch_one(&mut file).await.unwrap();
    assert_eq!(torn, 0, "batches that were applied in part");
    u64::try_from(sums.0).unwrap()
}

/// Each time after another number of batches, so that it is hit at other points of its work.
#[tokio::test]
async fn usage_of_a_process_that_is_killed_while_it_is_applied_is_whole_after_every_kill() {
    let fresh = Fresh::new().await;
    fresh.store.close().await;
    let mut told = 0;
    for kill in 0..KILLS {
        let batches = 1 + kill % 7;
        assert_eq!(killed_after(batches, &fresh.path()), batches);
        told += KEYS * batches;
        let counted = counted(&fresh.path()).await;
        // It went on until the signal met it; what it then did counts whole.
        assert!(counted >= told, "{counted} of {told}");
        told = counted;
    }
}

fn killed_after(batches: u64, path: &Path) -> u64 {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["torn::applies_usage_until_it_is_killed", "--exact", "--ignored", "--nocapture"])
        .env(VICTIM, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let applied = lines.map(Result::unwrap).filter(|line| line == "applied");
    let told = applied.take(usize::try_from(batches).unwrap()).count();
    victim.kill().unwrap();
    victim.wait().unwrap();
    told as u64
}

#[tokio::test]
#[ignore = "it runs until it is killed, by the test above"]
#[allow(clippy::print_stdout, reason = "its parent listens there")]
async fn applies_usage_until_it_is_killed() {
    #[allow(clippy::disallowed_methods, reason = "set by its parent only")]
    let Some(path) = std::env::var_os(VICTIM) else { return };
    let store = Store::open(path.as_ref()).await.unwrap();
    let mut boot = [0; 16];
    boot[..4].copy_from_slice(&std::process::id().to_le_bytes());
    println!();
    for requests in 1.. {
        store.apply_usage(&batch(boot, requests), NOW).await.unwrap();
        println!("applied");
    }
}

/// As a disk leaves it that had not written all of it when the power went.
#[tokio::test]
async fn a_log_that_is_cut_off_anywhere_leaves_usage_whole_and_takes_it_again() {
    const CUTS: u64 = 60;
    const BATCHES: u64 = 8;
    let fresh = Fresh::new().await;
    for requests in 1..=BATCHES {
        fresh.store.apply_usage(&batch([7; 16], requests), NOW).await.unwrap();
    }
    let log = fresh.folder().path().join("tollkeeper.db-wal");
    let length = log.metadata().unwrap().len();
    assert!(length > 0, "all of it is in the log");
    let mut found = std::collections::BTreeSet::new();
    for cut in 0..=CUTS {
        let torn = tempfile::tempdir().unwrap();
        let path = torn.path().join("tollkeeper.db");
        fs::copy(fresh.path(), &path).unwrap();
        let copy = torn.path().join("tollkeeper.db-wal");
        fs::copy(&log, &copy).unwrap();
        // Not at the edge of a page.
        let end = (length * cut / CUTS).saturating_sub(cut % 3);
        fs::File::options().write(true).open(&copy).unwrap().set_len(end).unwrap();
        let Ok(store) = Store::open(&path).await else {
            panic!("it does not open, cut at {end} of {length}")
        };
        store.close().await;
        found.insert(counted(&path).await / KEYS);
        let store = Store::open(&path).await.unwrap();
        store.apply_usage(&batch([7; 16], BATCHES), NOW).await.unwrap();
        store.close().await;
        assert_eq!(counted(&path).await, KEYS * BATCHES);
    }
    assert!(found.len() > 3, "cut in front of the first and behind the last only: {found:?}");
}
