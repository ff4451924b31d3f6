//! Opening what is not there, not ours, not writable or not free: each is told apart, and nothing is harmed.

use std::error::Error;
use std::path::Path;

use sqlx::Connection;
use tollkeeper_store::{Fault, Store, StoreError};

use crate::Fresh;

async fn refused(path: &Path) -> Fault {
    let error = Store::open(path).await.map(drop).unwrap_err();
    let texts = format!("{error} {}", error.source().unwrap());
    assert!(texts.contains(&path.display().to_string()), "says where: {texts}");
    assert!(!["SELECT", "INSERT", "CREATE"].iter().any(|sql| texts.contains(sql)), "{texts}");
    match error {
        StoreError::Unopenable { fault, .. } => fault,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_missing_folder_is_told_and_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing").join("tollkeeper.db");
    assert!(matches!(refused(&path).await, Fault::FolderMissing));
    assert!(!folder.path().join("missing").exists());
}

/// A folder that even root cannot write to, so that the test means something for every user.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_folder_that_cannot_be_written_is_told() {
    assert!(matches!(refused(Path::new("/sys/tollkeeper.db")).await, Fault::NotWritable));
}

#[tokio::test]
async fn a_folder_in_place_of_the_file_is_told() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(refused(folder.path()).await, Fault::NotADatabase));
}

#[tokio::test]
async fn a_file_that_is_no_database_is_told_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tollkeeper.db");
    let garbage = b"this was never a database, whatever its name says\n".repeat(100);
    std::fs::write(&path, &garbage).unwrap();
    assert!(matches!(refused(&path).await, Fault::NotADatabase));
    assert_eq!(std::fs::read(&path).unwrap(), garbage);
}

#[tokio::test]
async fn a_damaged_database_is_told() {
    let fresh = Fresh::new().await;
    fresh.store.close().await;
    let mut bytes = std::fs::read(fresh.path()).unwrap();
    bytes[100..4096].fill(0xff);
    std::fs::write(fresh.path(), bytes).unwrap();
    assert!(matches!(refused(&fresh.path()).await, Fault::NotADatabase));
}

#[tokio::test]
async fn a_newer_schema_is_refused_by_number_and_left_as_it_is() {
    let fresh = Fresh::new().await;
    fresh.store.close().await;
    schema_step(&fresh, "INSERT INTO _sqlx_migrations VALUES (9000, 'later', '', TRUE, x'00', 0)")
        .await;
    let fault = refused(&fresh.path()).await;
    assert!(matches!(fault, Fault::NewerSchema { found: 9000, known: 1.. }), "{fault:?}");
}

#[tokio::test]
async fn a_schema_step_of_another_build_is_refused() {
    let fresh = Fresh::new().await;
    fresh.store.close().await;
    schema_step(&fresh, "UPDATE _sqlx_migrations SET checksum = x'00' WHERE version = 1").await;
    assert!(matches!(refused(&fresh.path()).await, Fault::OtherSchema(1)));
}

#[tokio::test]
async fn a_database_that_somebody_holds_is_told_as_worth_another_try() {
    let fresh = Fresh::new().await;
    let mut other = fresh.beside().await;
    let held = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let fault = refused(&fresh.path()).await;
    assert!(matches!(fault, Fault::Busy) && fault.is_transient(), "{fault:?}");
    held.rollback().await.unwrap();
    Store::open(&fresh.path()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_that_start_at_once_both_find_one_finished_schema() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tollkeeper.db");
    let starts: Vec<_> = (0..4)
        .map(|_| {
            let path = path.clone();
            tokio::spawn(async move { Store::open(&path).await })
        })
        .collect();
    for start in starts {
        start.await.unwrap().unwrap().ping().await.unwrap();
    }
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let fresh = Fresh::new().await;
    for file in std::fs::read_dir(fresh.folder().path()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0, "{file:?}");
    }
}

#[tokio::test]
async fn a_closed_store_leaves_one_file() {
    let fresh = Fresh::new().await;
    fresh.store.close().await;
    assert_eq!(std::fs::read_dir(fresh.folder().path()).unwrap().count(), 1);
}

async fn schema_step(fresh: &Fresh, change: &'static str) {
    let mut beside = fresh.beside().await;
    sqlx::query(change).execute(&mut beside).await.unwrap();
    beside.close().await.unwrap();
}
