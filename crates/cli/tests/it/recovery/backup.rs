//! A node with SQLite, backed up while it serves and brought back.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tollkeeper_testkit::Tollkeeper;

use super::{code, made, run, text};
use crate::world::{BINARY, Client, start};

/// A server whose data directory can be taken away and brought back; settings are none, so the secret is generated.
struct Node {
    folder: TempDir,
    server: Tollkeeper,
}

impl Node {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("data")).expect("a data directory");
        let server = start(&folder.path().join("data"), &[]).expect("the server starts");
        Self { folder, server }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("node.backup")
    }

    fn client(&self) -> Client {
        Client::new(self.server.url(), self.server.root_key())
    }

    fn back_up(&self) {
        let ran = run(&["backup", text(&self.file())], &self.data(), &[]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout.starts_with("file="), "{}", ran.stdout);
    }
}

#[test]
fn a_node_is_as_it_was_when_it_was_backed_up_and_what_came_later_is_kept_aside() {
    let mut node = Node::new();
    let mut client = node.client();
    let early = made(&mut client, &[("credits", json!({"remaining": 100}))]);
    for _ in 0..10 {
        assert_eq!(code(&mut client, &early), "VALID");
    }
    for _ in 0..7 {
        client.spend("ann", "sliding_window", 1);
    }
    // The journal has it within 20 ms; an orderly moment is not needed, only this one.
    crate::time::pause(Duration::from_millis(300));
    node.back_up();
    let late = made(&mut client, &[]);
    assert_eq!(code(&mut client, &late), "VALID");

    let refused = run(&["restore", text(&node.file())], &node.data(), &[]);
    assert_eq!(refused.code, Some(2), "as for serve: {}", refused.stderr);
    assert!(refused.stderr.contains("in use by another server"), "{}", refused.stderr);
    assert_eq!(code(&mut client, &late), "VALID");

    node.server.kill9().expect("it can be killed");
    let restored = run(&["restore", text(&node.file())], &node.data(), &[]);
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    let aside = aside(&node.data());
    assert!(aside.join("tollkeeper.db").exists() && aside.join("journal").exists());
    assert!(restored.stdout.contains(text(&aside)), "{}", restored.stdout);

    node.server = start(&node.data(), &[]).expect("the server starts again");
    let mut client = node.client();
    assert_eq!(code(&mut client, &late), "NOT_FOUND");
    assert_eq!(client.used("ann", "sliding_window"), 7);
    let left = client.data("keys.verifyKey", &json!({"key": early}))["credits"].as_u64();
    assert_eq!(left, Some(89), "ten were spent before and one now");
}

#[test]
fn a_backup_brings_a_node_back_on_a_machine_that_has_nothing() {
    let mut node = Node::new();
    let key = made(&mut node.client(), &[]);
    node.back_up();
    node.server.kill9().expect("it can be killed");
    fs::remove_dir_all(node.data()).expect("all is lost");
    let restored = run(&["restore", text(&node.file())], &node.data(), &[]);
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    assert!(restored.stdout.ends_with("aside=\n"), "{}", restored.stdout);
    node.server = start(&node.data(), &[]).expect("the server starts");
    assert_eq!(code(&mut node.client(), &key), "VALID");
}

#[test]
fn a_damaged_backup_is_refused_and_changes_nothing() {
    let mut node = Node::new();
    let key = made(&mut node.client(), &[]);
    node.back_up();
    node.server.terminate().expect("it ends");
    let whole = fs::read(node.file()).expect("readable");
    let (file, data) = (node.file(), node.data());
    let restore = |more: &[&str]| run(&[&["restore", text(&file)], more].concat(), &data, &[]);
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damaged in [&flipped[..], &whole[..whole.len() - 4096]] {
        fs::write(node.file(), damaged).expect("writable");
        let refused = restore(&[]);
        assert_eq!(refused.code, Some(4), "{}", refused.stderr);
        assert!(refused.stderr.contains("damaged"), "{}", refused.stderr);
    }
    fs::write(node.file(), "neither").expect("writable");
    assert_eq!(restore(&[]).code, Some(2));
    fs::write(node.file(), &whole).expect("writable");
    let manifest = node.folder.path().join("node.backup.manifest.json");
    fs::rename(&manifest, node.folder.path().join("elsewhere")).expect("movable");
    assert_eq!(restore(&[]).code, Some(2));
    assert!(
        fs::read_dir(node.data())
            .expect("readable")
            .flatten()
            .all(|entry| { !entry.file_name().to_string_lossy().starts_with("replaced-") })
    );
    node.server = start(&node.data(), &[]).expect("nothing was changed");
    assert_eq!(code(&mut node.client(), &key), "VALID");
    node.server.terminate().expect("it ends");
    assert_eq!(restore(&["--unchecked"]).code, Some(0));
}

#[test]
fn a_backup_overwrites_nothing_and_is_for_its_owner_only() {
    let node = Node::new();
    node.back_up();
    for name in ["node.backup", "node.backup.manifest.json"] {
        let mode = fs::metadata(node.folder.path().join(name)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let again = run(&["backup", text(&node.file())], &node.data(), &[]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("is there already"), "{}", again.stderr);
    let manifest: serde_json::Value = serde_json::from_slice(
        &fs::read(node.folder.path().join("node.backup.manifest.json")).expect("readable"),
    )
    .expect("JSON");
    assert_eq!(manifest["tables"]["tenants"], 1);
    assert_eq!(manifest["files"][1], "secret");
}

#[test]
fn no_server_starts_on_half_a_restore_and_another_restore_finishes_it() {
    let mut node = Node::new();
    let key = made(&mut node.client(), &[]);
    node.back_up();
    node.server.terminate().expect("it ends");
    // As a restore leaves it that is killed while it puts things in place: one thing is staged, the others have arrived.
    let staged = node.data().join("restoring");
    fs::create_dir(&staged).expect("made");
    fs::rename(node.data().join("secret"), staged.join("secret")).expect("moved");
    let refused = start(&node.data(), &[]).expect_err("it does not start");
    assert!(refused.stderr.contains("tollkeeper restore"), "{refused}");
    let restored = run(&["restore", text(&node.file())], &node.data(), &[]);
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    node.server = start(&node.data(), &[]).expect("the server starts");
    assert_eq!(code(&mut node.client(), &key), "VALID");
}

#[test]
fn a_restore_that_is_killed_at_any_moment_can_be_made_again() {
    let mut node = Node::new();
    let key = made(&mut node.client(), &[]);
    node.back_up();
    node.server.terminate().expect("it ends");
    let (file, data) = (node.file(), node.data());
    for moment_ms in (0..120).step_by(6) {
        let mut restore = Command::new(BINARY);
        restore.args(["restore", text(&file)]).env_clear().env("TOLLKEEPER_DATA_DIR", &data);
        restore.stdout(Stdio::null()).stderr(Stdio::null()).current_dir(node.folder.path());
        let mut restore = restore.spawn().expect("it starts");
        crate::time::pause(Duration::from_millis(moment_ms));
        restore.kill().expect("it can be killed");
        restore.wait().expect("it ends");
    }
    let restored = run(&["restore", text(&file)], &data, &[]);
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    node.server = start(&data, &[]).expect("the server starts");
    assert_eq!(code(&mut node.client(), &key), "VALID");
}

fn aside(data: &Path) -> PathBuf {
    let mut entries = fs::read_dir(data).expect("readable").flatten();
    let found = entries.find(|entry| entry.file_name().to_string_lossy().starts_with("replaced-"));
    found.expect("kept aside").path()
}

#[test]
fn a_backup_and_what_comes_back_from_it_are_told_as_json_to_who_asks() {
    let mut node = Node::new();
    let told = |arguments: &[&str], data: &Path| {
        let ran = run(&[arguments, &["--json"]].concat(), data, &[]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        serde_json::from_str::<serde_json::Value>(&ran.stdout).expect("one document")
    };
    let made = told(&["backup", text(&node.file())], &node.data());
    assert_eq!(made["file"], text(&node.file()));
    assert!(made["bytes"].is_u64() && made["rows"].is_u64() && made["sha256"].is_string());
    let config = node.folder.path().join("config");
    let exported = told(&["backup", "--config-only", text(&config)], &node.data());
    assert!(exported["rows"].as_u64() > Some(0) && exported["file"] == text(&config));
    node.server.terminate().expect("it ends");
    let restored = told(&["restore", text(&node.file())], &node.data());
    assert_eq!(restored["restored"], "backup");
    assert!(restored["madeAt"].is_u64() && restored["aside"].is_string(), "{restored}");
    let empty = node.folder.path().join("empty");
    fs::create_dir(&empty).expect("made");
    fs::copy(node.data().join("secret"), empty.join("secret")).expect("the same secret");
    let taken = told(&["restore", text(&config)], &empty);
    assert_eq!(taken, json!({"restored": "config", "rows": exported["rows"]}));
}
