//! What only a server can do to us: be slow, be locked, be away, be late, be cancelled in the middle.

use std::future::poll_fn;
use std::pin::pin;
use std::process::Command;
use std::task::Poll;
use std::time::Duration;

use sqlx::{Connection, PgConnection};
use tollkeeper_decide::{Directory, KeyHashes};
use tollkeeper_store::{Fault, Grant, KeyTerms, Store, StoreError};
use tollkeeper_testkit::{Fault as Trouble, FaultProxy, Postgres};

use crate::{Fresh, NOBODY, NOW};

async fn beside(url: &str) -> PgConnection {
    PgConnection::connect(url).await.unwrap()
}

async fn quiet(how_long: Duration) {
    tokio::time::timeout(how_long, std::future::pending::<()>()).await.unwrap_err();
}

#[tokio::test]
async fn a_lock_that_is_held_is_given_up_on_soon_and_told_as_worth_another_try() {
    let fresh = Fresh::on_postgres().await;
    let (key, _) = fresh.key(KeyTerms::default()).await;
    let mut other = beside(fresh.url()).await;
    let mut held = other.begin().await.unwrap();
    sqlx::query("LOCK TABLE keys IN ACCESS EXCLUSIVE MODE").execute(&mut *held).await.unwrap();
    let refused = tokio::time::timeout(
        Duration::from_secs(2),
        fresh.store.revoke_key(fresh.by(), &key, None),
    );
    let error = refused.await.unwrap().unwrap_err();
    assert!(matches!(error, StoreError::Fault(Fault::Busy)) && error.is_transient(), "{error:?}");
    held.rollback().await.unwrap();
    fresh.store.revoke_key(fresh.by(), &key, None).await.unwrap();
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_ended_by_the_server() {
    let fresh = Fresh::on_postgres().await;
    let mut other = beside(fresh.url()).await;
    // Every read of a tenant now takes longer than any statement may.
    for step in [
        "ALTER TABLE tenants RENAME TO tenants_quick",
        "CREATE VIEW tenants AS SELECT * FROM tenants_quick WHERE pg_sleep(30) IS NOT NULL",
    ] {
        sqlx::query(step).execute(&mut other).await.unwrap();
    }
    let slow = tokio::time::timeout(Duration::from_secs(4), fresh.store.list_tenants(None, 1));
    let error = slow.await.unwrap().unwrap_err();
    assert!(matches!(error, StoreError::Fault(Fault::Slow)) && error.is_transient(), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stuck_admins_leave_room_for_keys_that_are_looked_up() {
    let fresh = Fresh::on_postgres().await;
    let (key, hash) = fresh.key(KeyTerms::default()).await;
    let mut other = beside(fresh.url()).await;
    let mut held = other.begin().await.unwrap();
    sqlx::query("LOCK TABLE admin_audit IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *held)
        .await
        .unwrap();
    let stuck = async {
        let revoke = || fresh.store.revoke_key(fresh.by(), &key, None);
        tokio::join!(revoke(), revoke(), revoke(), revoke(), revoke(), revoke())
    };
    let looked_up = async {
        for _ in 0..50 {
            assert!(fresh.verified(hash).await.is_some());
        }
    };
    let (stuck, ()) = tokio::join!(stuck, looked_up);
    assert!(stuck.0.is_err() && stuck.5.is_err());
}

/// Given up after so many steps, if it takes more.
async fn abandoned_after<T>(steps: u32, work: impl Future<Output = T>) -> Option<T> {
    let (mut work, mut taken) = (pin!(work), 0);
    poll_fn(|context| {
        taken += 1;
        if taken > steps { Poll::Ready(None) } else { work.as_mut().poll(context).map(Some) }
    })
    .await
}

/// At every point at which a request can be cancelled: a change, a lookup, and usage on its way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_request_leaves_no_open_transaction() {
    let fresh = Fresh::on_postgres().await;
    let (key, hash) = fresh.key(KeyTerms::default()).await;
    let hashes = KeyHashes { ours: hash, imported: NOBODY };
    let mut cancelled = [0; 3];
    for steps in 1..60 {
        let slug = [format!("p{steps}")];
        let change = fresh.store.change_key_permissions(fresh.by(), &key, Grant::Add, &slug);
        let change = abandoned_after(steps, change).await;
        let used = [crate::usage::told([7; 16], NOW.0, "api_1", "key_1", u64::from(steps))];
        let usage = abandoned_after(steps, fresh.store.apply_usage(&used, NOW)).await;
        let lookup = abandoned_after(steps, fresh.store.key(hashes)).await;
        let ended = [change.map(|done| drop(done.unwrap())), usage.map(drop), lookup.map(drop)];
        for (count, ended) in cancelled.iter_mut().zip(ended) {
            *count += u32::from(ended.is_none());
        }
    }
    // How many steps a call takes is for the scheduler to say: a quick server answers several of them in one.
    assert!(cancelled[0] > 1 && cancelled[1] > 1 && cancelled[2] > 0, "{cancelled:?}");
    let idle = "SELECT COUNT(*) FROM pg_stat_activity
        WHERE state LIKE 'idle in transaction%' AND datname = current_database()";
    let mut left = i64::MAX;
    for _ in 0..100 {
        left = fresh.count(idle).await;
        if left == 0 {
            break;
        }
        quiet(Duration::from_millis(20)).await;
    }
    assert_eq!(left, 0);
    // And the connections are of use.
    for _ in 0..20 {
        let slug = ["after".to_owned()];
        fresh.store.change_key_permissions(fresh.by(), &key, Grant::Add, &slug).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_went_away_is_told_as_away_and_used_again_when_it_is_back() {
    let mut server = Postgres::start().unwrap();
    let database = server.database().unwrap();
    let store = Store::connect(&database.url, None).await.unwrap();
    let fresh = Fresh::on(crate::Home::Server(database), store).await;
    let (key, hash) = fresh.key(KeyTerms::default()).await;
    let mut changes = fresh.store.changes(fresh.store.current_revision().await.unwrap());
    server.stop();
    let hashes = KeyHashes { ours: hash, imported: NOBODY };
    let unknown = fresh.store.key(hashes).await;
    assert!(unknown.is_err(), "away is not the same as unknown");
    let error = fresh.store.revoke_key(fresh.by(), &key, None).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    server.again().unwrap();
    let mut tries = 0;
    while fresh.store.revoke_key(fresh.by(), &key, None).await.is_err() {
        tries += 1;
        assert!(tries < 20, "not back after {tries} tries");
    }
    let told = tokio::time::timeout(Duration::from_secs(10), async {
        loop {
            if let Ok(told) = changes.next().await {
                return told;
            }
        }
    });
    assert_eq!(told.await.unwrap().at, NOW);
    assert!(fresh.verified(hash).await.unwrap().revoked_at.is_some());
}

/// No connection is closed, and no answer comes: as where a machine or the way to it is gone in the middle of a call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_falls_silent_in_the_middle_is_given_up_and_used_again_when_it_answers() {
    let server = Postgres::shared().unwrap();
    let database = server.database().unwrap();
    let proxy = FaultProxy::start(server.port()).unwrap();
    let through = format!("postgres://postgres@{}/{}", proxy.address(), database.name);
    let store = Store::connect(&through, None).await.unwrap();
    let fresh = Fresh::on(crate::Home::Server(database), store).await;
    let (_, hash) = fresh.key(KeyTerms::default()).await;
    let hashes = KeyHashes { ours: hash, imported: NOBODY };
    let used = [crate::usage::told([7; 16], NOW.0, &fresh.project("q").await, "key_1", 3)];
    // Usage is in the middle of its transaction when the way is lost.
    let mut other = beside(fresh.url()).await;
    let mut held = other.begin().await.unwrap();
    sqlx::query("LOCK TABLE usage_record IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *held)
        .await
        .unwrap();
    fresh.store.key(hashes).await.unwrap().unwrap();
    let lost = async {
        quiet(Duration::from_millis(300)).await;
        proxy.set(Trouble::DropReplies);
        held.rollback().await.unwrap();
        fresh.store.key(hashes).await.map(drop).unwrap_err();
    };
    let both = async { tokio::join!(fresh.store.apply_usage(&used, NOW), lost).0 };
    let error = tokio::time::timeout(Duration::from_secs(20), both).await.unwrap().unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    proxy.set(Trouble::Pass);
    let healed = async {
        while fresh.store.apply_usage(&used, NOW).await.is_err() {}
        while fresh.store.key(hashes).await.is_err() {}
    };
    tokio::time::timeout(Duration::from_secs(10), healed).await.unwrap();
    let sum = "SELECT CAST(SUM(requests) AS BIGINT) FROM usage_record";
    assert_eq!(fresh.count(sum).await, 3, "though the first was maybe committed");
}

/// Every connection of every pool is dead then, and none of them knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_of_the_server_the_very_first_change_and_the_very_first_read_succeed() {
    let mut server = Postgres::start().unwrap();
    let database = server.database().unwrap();
    let store = Store::connect(&database.url, None).await.unwrap();
    let fresh = Fresh::on(crate::Home::Server(database), store).await;
    let (key, hash) = fresh.key(KeyTerms::default()).await;
    let mut used = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let store = fresh.store.clone();
        used.spawn(async move {
            store.list_tenants(None, 1).await.unwrap();
            store.key(KeyHashes { ours: hash, imported: NOBODY }).await.unwrap().unwrap();
        });
    }
    used.join_all().await;
    server.stop();
    server.again().unwrap();
    fresh.store.revoke_key(fresh.by(), &key, None).await.unwrap();
    assert!(fresh.verified(hash).await.unwrap().revoked_at.is_some());
}

/// A replica so late that it stands still: a copy of the database from before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_replica_hides_no_new_key_and_shows_no_revoked_one_as_good() {
    let mut fresh = Fresh::on_postgres().await;
    let (known, known_hash) = fresh.key(KeyTerms::default()).await;
    let late = copy_of(&mut fresh).await;
    let store = Store::connect(fresh.url(), Some(&late)).await.unwrap();
    let find = async |hash| store.key(KeyHashes { ours: hash, imported: NOBODY }).await.unwrap();
    assert!(find(known_hash).await.unwrap().revoked_at.is_none());
    let project = fresh.project("q").await;
    let (_, new_hash) = fresh.key_in(&project, KeyTerms::default()).await;
    assert!(find(new_hash).await.is_some(), "made a moment ago, on another node");
    let mut changes = store.changes(store.current_revision().await.unwrap());
    fresh.store.revoke_key(fresh.by(), &known, None).await.unwrap();
    changes.next().await.unwrap();
    assert!(find(known_hash).await.unwrap().revoked_at.is_some(), "the replica does not know yet");
    let listed = store.list_projects(&fresh.tenant_id, None, 10).await.unwrap();
    assert_eq!(listed.rows.len(), 2);
    // A replica that is away costs nothing but the detour.
    let nowhere = "postgres://postgres@127.0.0.1:1/none";
    let store = Store::connect(fresh.url(), Some(nowhere)).await.unwrap();
    let found = store.key(KeyHashes { ours: new_hash, imported: NOBODY }).await.unwrap();
    assert!(found.is_some());
}

/// Only a database that nobody uses can be copied.
async fn copy_of(fresh: &mut Fresh) -> String {
    fresh.store.close().await;
    let url = fresh.url().to_owned();
    let (server, name) = url.rsplit_once('/').unwrap();
    let mut admin = beside(&format!("{server}/postgres")).await;
    let copy = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}_late TEMPLATE {name}"));
    sqlx::query(copy).execute(&mut admin).await.unwrap();
    fresh.store = fresh.another().await;
    format!("{server}/{name}_late")
}

#[tokio::test]
async fn what_cannot_be_connected_to_is_told_with_what_to_do_and_without_the_password() {
    let fresh = Fresh::on_postgres().await;
    let (server, _) = fresh.url().rsplit_once('/').unwrap();
    let none = format!("{}/none", server.replace("postgres@", "postgres:hunter2@"));
    for (url, expected) in [
        (none.as_str(), "NotLetIn"),
        ("postgres://u:hunter2@127.0.0.1:1/x", "Away"),
        ("postgres://u:hunter2@[::bad/x", "BadUrl"),
    ] {
        let error = Store::connect(url, None).await.map(drop).unwrap_err();
        let StoreError::Unreachable { at, fault } = &error else { panic!("{error:?}") };
        assert!(format!("{fault:?}").starts_with(expected), "{fault:?}");
        assert!(!format!("{error} {at} {fault}").contains("hunter2"));
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_by_number() {
    let fresh = Fresh::on_postgres().await;
    let mut other = beside(fresh.url()).await;
    let newer = "INSERT INTO _sqlx_migrations VALUES (9000, 'later', now(), TRUE, ''::bytea, 0)";
    sqlx::query(newer).execute(&mut other).await.unwrap();
    let error = Store::connect(fresh.url(), None).await.map(drop).unwrap_err();
    let StoreError::Unreachable { fault, .. } = error else { panic!("{error:?}") };
    assert!(matches!(fault, Fault::NewerSchema { found: 9000, known: 2.. }), "{fault:?}");
}

#[tokio::test]
async fn a_text_that_the_server_cannot_store_is_told_as_such() {
    let fresh = Fresh::on_postgres().await;
    let error = fresh.store.create_namespace(&fresh.tenant_id, "a\u{0}b").await.unwrap_err();
    assert!(error.to_string().contains("U+0000"), "{error}");
}

/// The process that would tell of changes stands still: the connection is open, and silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_made_a_change_hears_of_it_at_once_also_without_notices() {
    let fresh = Fresh::on_postgres().await;
    let (key, _) = fresh.key(KeyTerms::default()).await;
    let mut other = beside(fresh.url()).await;
    let listeners = "SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND query ILIKE 'LISTEN %'";
    let (listener,): (i32,) = sqlx::query_as(listeners).fetch_one(&mut other).await.unwrap();
    let mut changes = fresh.store.changes(fresh.store.current_revision().await.unwrap());
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &listener.to_string()]).status();
        assert!(sent.unwrap().success());
    };
    // Read to its end: what comes now is news, or is not heard of.
    assert!(changes.read().await.unwrap().is_none());
    signal("-STOP");
    let revoked = fresh.store.revoke_key(fresh.by(), &key, None).await;
    let heard = tokio::time::timeout(Duration::from_secs(5), changes.next()).await;
    signal("-CONT");
    assert_eq!(heard.unwrap().unwrap().revision, revoked.unwrap().revision);
}
