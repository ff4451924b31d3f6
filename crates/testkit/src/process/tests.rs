//! The harness against a stand-in: `/bin/sh serve` runs the script named `serve` in the data folder.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use super::{ROOT_KEY, StartFailure, Tollkeeper};

fn start(script: &str, env: &[(&str, &str)]) -> Result<Tollkeeper, StartFailure> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("serve"), script).unwrap();
    Tollkeeper::start("/bin/sh", folder.path(), env)
}

const LISTENS: &str = "echo hello; echo listening on http://127.0.0.1:4242/ now; ";

#[test]
fn the_address_is_taken_from_the_line_that_the_server_prints() {
    let server = start(&format!("{LISTENS} exec /bin/sleep 60"), &[]).unwrap();
    assert_eq!(server.url(), "http://127.0.0.1:4242");
    assert_eq!(server.root_key(), ROOT_KEY);
    assert!(server.stdout().starts_with("hello\n"));
}

#[test]
fn the_server_sees_only_the_variables_of_the_test() {
    let script = "export -p >&2; exit 1";
    let failure = start(script, &[("TOLLKEEPER_NODE", "n1")]).expect_err("it ends");
    let ours = |line: &&str| line.contains("TOLLKEEPER_");
    assert_eq!(failure.stderr.lines().filter(ours).count(), 4, "{failure}");
    assert!(!failure.stderr.contains("CARGO"), "{failure}");
}

#[test]
fn an_empty_value_takes_a_variable_away() {
    let failure = start("export -p >&2; exit 1", &[("TOLLKEEPER_ROOT_KEY", "")]);
    let failure = failure.expect_err("it ends");
    assert!(!failure.stderr.contains("TOLLKEEPER_ROOT_KEY"), "{failure}");
}

#[test]
fn a_server_that_ends_early_is_reported_with_status_and_words() {
    let failure = start("echo no such luck >&2; exit 2", &[]).expect_err("it ends");
    assert_eq!(failure.status.and_then(|status| status.code()), Some(2));
    assert!(format!("{failure:?}").contains("no such luck"), "{failure}");
}

#[test]
fn terminate_lets_the_server_end_by_itself() {
    let script =
        format!("trap 'echo bye; exit 7' TERM; {LISTENS} while :; do /bin/sleep 0.01; done");
    let mut server = start(&script, &[]).unwrap();
    assert_eq!(server.terminate().unwrap().code(), Some(7));
    assert!(server.stdout().ends_with("bye\n"), "{}", server.stdout());
    assert_eq!(server.terminate().unwrap().code(), Some(7));
}

#[test]
fn kill9_gives_the_server_no_last_word() {
    use std::os::unix::process::ExitStatusExt;
    let script = format!("trap 'echo bye' TERM EXIT; {LISTENS} while :; do /bin/sleep 0.01; done");
    let mut server = start(&script, &[("TOLLKEEPER_ROOT_KEY", "another-root-key")]).unwrap();
    assert_eq!(server.root_key(), "another-root-key");
    assert_eq!(server.kill9().unwrap().signal(), Some(9));
    assert!(!server.stdout().contains("bye"));
}
