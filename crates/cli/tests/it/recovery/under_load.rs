//! A backup that is made while usage is counted: all that was answered before it comes back, and nothing twice.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::{made, run, text};
use crate::time::pause;
use crate::world::{Client, start};

const CLIENTS: usize = 3;
const BACKUPS: usize = 4;

/// Usage of all keys, as the ledger has it.
fn counted(client: &mut Client) -> u64 {
    client.data("usage.flush", &json!({}));
    let range = json!({"from": 0, "to": 4_102_444_800_000_u64, "by": "month"});
    let rows = client.data("usage.query", &range);
    rows.as_array()
        .expect("rows")
        .iter()
        .map(|row| row["requests"].as_u64().expect("a count"))
        .sum()
}

#[test]
fn a_backup_beside_traffic_brings_back_all_usage_that_was_answered_before_it_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    fs::create_dir(&data).expect("a data directory");
    let server = start(&data, &[]).expect("the server starts");
    let key = made(&mut Client::new(server.url(), server.root_key()), &[]);
    let (begun, answered, over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let backups = thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = Client::new(server.url(), server.root_key());
                while !over.load(Ordering::SeqCst) {
                    begun.fetch_add(1, Ordering::SeqCst);
                    let verified = client.data("keys.verifyKey", &json!({"key": key}));
                    assert_eq!(verified["code"], "VALID");
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let backups: Vec<_> = (0..BACKUPS)
            .map(|number| {
                pause(Duration::from_millis(200));
                let file = folder.path().join(format!("{number}.backup"));
                let before = answered.load(Ordering::SeqCst);
                let ran = run(&["backup", text(&file)], &data, &[]);
                assert_eq!(ran.code, Some(0), "{}", ran.stderr);
                (file, before, begun.load(Ordering::SeqCst))
            })
            .collect();
        over.store(true, Ordering::SeqCst);
        backups
    });
    drop(server);
    for (file, before, after) in backups {
        let elsewhere = folder.path().join("elsewhere");
        let restored = run(&["restore", text(&file)], &elsewhere, &[]);
        assert_eq!(restored.code, Some(0), "{}", restored.stderr);
        let server = start(&elsewhere, &[]).expect("it starts on what came back");
        let counted = counted(&mut Client::new(server.url(), server.root_key()));
        assert!((before..=after).contains(&counted), "{counted} of {before} to {after}");
        assert!(before > 0 && !server.stderr().contains("set aside"), "{}", server.stderr());
        drop(server);
        fs::remove_dir_all(&elsewhere).expect("removable");
    }
}
