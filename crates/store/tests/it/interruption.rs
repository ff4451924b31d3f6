//! A process that dies in the middle of a write, and a caller that walks away from one:
//! what was answered is there, what was not left no trace.

use std::future::poll_fn;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::task::Poll;

use sqlx::Connection;
use tollkeeper_core::{FixedWindow, Millis, State};
use tollkeeper_decide::{CellKey, Directory, Loading, OriginError, ParkedCell, Shelf};
use tollkeeper_store::{By, KeyOrigin, KeyTerms, NewKey, NewProject, Store};

use crate::{Fresh, NOW, limit_named, secret, texts};

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
    let log = fresh.folder().path().join("tollkeeper.db-wal");
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
        std::fs::copy(fresh.folder().path().join(file), killed.path().join(file)).unwrap();
    }
    unfinished.rollback().await.unwrap();

    let store = Store::open(&killed.path().join("tollkeeper.db")).await.unwrap();
    assert_eq!(store.sweep(Millis(0)).await.unwrap().len(), 1000);
    assert!(Directory::root_key(&store, crate::FIRST_KEY).await.unwrap().is_some());
    store.close().await;
    let path = killed.path().join("tollkeeper.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let mut reader = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    let check: String =
        sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut reader).await.unwrap();
    assert_eq!(check, "ok");
}

/// Walks away after the first step, then after the second, until a put finishes before that. How many there are is up to who
/// is the faster, the file or whoever waits for it, so it is done several times.
#[tokio::test]
async fn a_caller_that_walks_away_at_any_step_leaves_all_of_its_cells_or_none() {
    let fresh = Fresh::new().await;
    let mut most = 0;
    for time in 1..=8 {
        for steps in 1.. {
            let cells: Vec<_> =
                (0..1200).map(|i| cell((time * 100 + steps) * 10_000 + i)).collect();
            let keys = cells.iter().map(|cell| cell.key).collect();
            let finished = abandoned_after(steps, fresh.store.put(cells)).await;
            let kept = fresh.store.find(keys).await.unwrap().len();
            assert!(kept == 0 || kept == 1200, "{kept} after {steps} steps");
            most = most.max(steps);
            if let Some(put) = finished {
                put.unwrap();
                assert_eq!(kept, 1200);
                break;
            }
        }
    }
    assert!(most > 3, "walked away at {most} steps only");
}

async fn abandoned_after<T>(steps: u64, mut work: Loading<T>) -> Option<Result<T, OriginError>> {
    let mut taken = 0;
    poll_fn(|context| {
        taken += 1;
        if taken > steps { Poll::Ready(None) } else { work.as_mut().poll(context).map(Some) }
    })
    .await
}

/// Where the process that is to be killed finds its database.
const VICTIM: &str = "TOLLKEEPER_TEST_VICTIM";

const KILLS: usize = 50;

/// Each time after another number of keys, so that it is hit at other points of its work.
#[tokio::test]
async fn a_process_killed_while_it_makes_keys_leaves_whole_keys_only_and_all_it_told_of() {
    let fresh = Fresh::new().await;
    fresh.store.close().await;
    let mut told = Vec::new();
    for kill_after in 1..=KILLS {
        told.extend(killed_after(kill_after, &fresh));
    }
    let mut reader = fresh.beside().await;
    let check: String =
        sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut reader).await.unwrap();
    assert_eq!(check, "ok");
    let keys: Vec<String> =
        sqlx::query_scalar("SELECT id FROM keys").fetch_all(&mut reader).await.unwrap();
    assert!(
        told.len() == KILLS * (KILLS + 1) / 2 && told.iter().all(|id| keys.contains(id)),
        "{}",
        told.len()
    );
    let halves = "SELECT COUNT(*) FROM keys k
        WHERE (SELECT COUNT(*) FROM limits l WHERE l.owner_id = k.id) <> 2
           OR (SELECT COUNT(*) FROM key_permissions p WHERE p.key_id = k.id) <> 2
           OR (SELECT COUNT(*) FROM outbox o WHERE o.subject_id = k.id) <> 1
           OR (SELECT COUNT(*) FROM admin_audit a WHERE a.target = k.id) <> 1";
    assert_eq!(fresh.count(halves).await, 0);
    let strays = "SELECT COUNT(*) FROM limits WHERE owner_id NOT IN (SELECT id FROM keys)";
    assert_eq!(fresh.count(strays).await, 0);
}

fn killed_after(keys: usize, fresh: &Fresh) -> Vec<String> {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args([
            "interruption::makes_keys_until_it_is_killed",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env(VICTIM, fresh.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let ids =
        lines.map(Result::unwrap).filter_map(|line| line.strip_prefix("made ").map(str::to_owned));
    let told: Vec<_> = ids.take(keys).collect();
    victim.kill().unwrap();
    victim.wait().unwrap();
    told
}

#[tokio::test]
#[ignore = "it runs until it is killed, by the test above"]
#[allow(clippy::print_stdout, reason = "its parent listens there")]
async fn makes_keys_until_it_is_killed() {
    #[allow(clippy::disallowed_methods, reason = "set by its parent only")]
    let Some(path) = std::env::var_os(VICTIM) else { return };
    let store = Store::open(path.as_ref()).await.unwrap();
    let made = store.bootstrap(crate::FIRST_KEY, 1, KeyOrigin::Generated, NOW).await.unwrap();
    let by = By { tenant_id: &made.tenant_id, root_key_id: &made.root_key_id, now: NOW };
    let project = NewProject { name: "p".to_owned(), ..NewProject::default() };
    let project_id = store.create_project(by, project).await.unwrap().value.id;
    println!();
    loop {
        let id = Store::fresh_key_id().unwrap();
        let mut hash = [0; 32];
        hash[..24].copy_from_slice(id.as_bytes());
        let terms = KeyTerms {
            limits: vec![limit_named("a", 1), limit_named("b", 2)],
            permissions: texts(&["x", "y"]),
            ..KeyTerms::default()
        };
        let secret = secret(tollkeeper_decide::KeyHash(hash));
        let new = NewKey { id: Some(id), project_id: project_id.clone(), secret, terms };
        println!("made {}", store.create_key(by, new).await.unwrap().value);
    }
}
