//! Starts that must not happen: each ends with exit code 2, names everything that is wrong, and touches nothing.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use tollkeeper_testkit::StartFailure;

use crate::world::{World, start};

fn refused(folder: &Path, env: &[(&str, &str)]) -> StartFailure {
    let failure = start(folder, env).expect_err("it must not start");
    assert_eq!(failure.status.and_then(|status| status.code()), Some(2), "{failure}");
    assert!(!failure.stderr.contains("panicked"), "{failure}");
    failure
}

fn assert_says(failure: &StartFailure, words: &[&str]) {
    for words in words {
        assert!(failure.stderr.contains(words), "{words:?} is missing: {failure}");
    }
}

fn assert_empty(folder: &Path) {
    assert_eq!(fs::read_dir(folder).expect("readable").count(), 0);
}

#[test]
fn wrong_settings_are_all_named_with_what_is_expected_and_no_secret_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let failure = refused(
        folder.path(),
        &[
            ("TOLLKEEPER_HTTP_LISTEN", "nowhere"),
            ("TOLLKEEPER_MAX_CELLS", "-1"),
            ("TOLLKEEPER_MAX_CONNECTIONS", "many"),
            ("TOLLKEEPER_ROOT_KEY", "hunter2"),
            ("TOLLKEEPER_SECRET", "swordfish"),
            ("TOLLKEEPER_DATABASE_URL", "mysql://me:letmein@db/x"),
            ("TOLLKEEPER_CACHE_FRESH_SECONDS", "90"),
            ("TOLLKEEPER_MODE", "quantum"),
            ("TOLLKEEPER_LOG", "loud"),
            ("TOLLKEEPER_MAX_CELS", "5"),
        ],
    );
    assert_says(
        &failure,
        &[
            "10 settings are wrong",
            "http_listen",
            "max_cells",
            "max_connections",
            "root_key",
            "secret",
            "database_url",
            "cache_fresh_seconds",
            "mode",
            "log",
            "TOLLKEEPER_MAX_CELS",
            "did you mean TOLLKEEPER_MAX_CELLS",
            "expected 16 to 512 printable ASCII characters",
        ],
    );
    for secret in ["hunter2", "swordfish", "letmein"] {
        assert!(!failure.stderr.contains(secret), "{failure}");
    }
    assert_empty(folder.path());
}

#[test]
fn a_mode_that_needs_redis_is_refused_where_none_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for mode in ["redis", "shadow"] {
        let failure = refused(folder.path(), &[("TOLLKEEPER_MODE", mode)]);
        assert_says(&failure, &["mode", mode, "redis_url"]);
        assert_empty(folder.path());
    }
}

#[test]
fn a_port_that_is_taken_is_named_before_any_data_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let failure = refused(folder.path(), &[("TOLLKEEPER_HTTP_LISTEN", &address)]);
    assert_says(
        &failure,
        &[&address, "in use by another program", "TOLLKEEPER_HTTP_LISTEN", "tollkeeper doctor"],
    );
    assert_empty(folder.path());
}

#[test]
fn an_address_of_another_machine_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let failure = refused(folder.path(), &[("TOLLKEEPER_HTTP_LISTEN", "192.0.2.1:7700")]);
    assert_says(&failure, &["192.0.2.1:7700", "TOLLKEEPER_HTTP_LISTEN"]);
}

#[test]
fn a_folder_that_is_none_or_takes_no_files_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("taken");
    fs::write(&file, "a file").unwrap();
    let below = file.join("below");
    // Nobody makes folders there, not even root.
    let read_only = Path::new("/sys/tollkeeper-data");
    for wanted in [&*file, &*below, read_only] {
        let wanted = wanted.to_str().unwrap();
        let failure = refused(folder.path(), &[("TOLLKEEPER_DATA_DIR", wanted)]);
        assert_says(&failure, &["cannot use the data directory", wanted, "tollkeeper doctor"]);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "a file");
}

#[test]
fn a_broken_secret_or_database_is_named_and_left_alone() {
    for (name, expected) in
        [("secret", "does not hold a secret"), ("tollkeeper.db", "tollkeeper.db")]
    {
        let mut world = World::new();
        world.server.terminate().unwrap();
        let path = world.data_dir().join(name);
        fs::write(&path, "not what it was, at a length that no page of a database has").unwrap();
        let failure = refused(world.data_dir(), &[]);
        assert_says(&failure, &[expected, path.to_str().unwrap()]);
        assert!(fs::read_to_string(&path).unwrap().starts_with("not what it was"));
    }
}

#[test]
fn settings_of_parts_that_are_not_built_yet_are_named_at_the_start() {
    let world = World::with(&[
        ("TOLLKEEPER_ROLLBACK", "on"),
        ("TOLLKEEPER_GRPC_LISTEN", "127.0.0.1:0"),
        ("TOLLKEEPER_RESP_LISTEN", "off"),
    ]);
    let said = world.server.stdout();
    let name = "TOLLKEEPER_GRPC_LISTEN";
    let named = said.lines().any(|line| line.starts_with(name) && line.contains("no effect"));
    assert!(named, "{name}: {said}");
    assert!(!said.contains("TOLLKEEPER_RESP_LISTEN"), "off asks for nothing: {said}");
    assert!(!said.contains("TOLLKEEPER_ROLLBACK"), "it is built: {said}");
}
