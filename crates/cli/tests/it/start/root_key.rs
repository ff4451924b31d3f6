//! The root key over many starts: made once, shown once, replaced by a given one.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tollkeeper_testkit::Tollkeeper;

use crate::time::eventually;
use crate::world::{BINARY, Client, ask, start};

const WITHOUT: [(&str, &str); 1] = [("TOLLKEEPER_ROOT_KEY", "")];

fn shown(server: &Tollkeeper) -> Option<String> {
    let said = server.stdout();
    let key = said.split_whitespace().find(|word| word.starts_with("tk_root_"));
    assert_eq!(key.is_some(), said.contains("shown only this once"), "{said}");
    key.map(str::to_owned)
}

fn status_for(server: &Tollkeeper, key: &str) -> u16 {
    Client::new(server.url(), key).post("ratelimit.limit", &ask("api", "ann", 100)).status()
}

fn started(folder: &Path, env: &[(&str, &str)]) -> Tollkeeper {
    start(folder, env).expect("it starts")
}

/// The command between "try it" and the empty line behind it, as a person would paste it.
fn pasted(server: &Tollkeeper) -> String {
    let command = || {
        let said = server.stdout();
        let (_, behind) = said.split_once("try it:\n\n")?;
        Some(behind.split_once("\n\n")?.0.to_owned())
    };
    // It comes after the address, which is all that a start waits for.
    eventually("a line to try", || command().is_some());
    command().expect("a line to try")
}

/// Runs the command where there is curl, else sends the same request by hand.
fn carried_out(command: &str, server: &Tollkeeper, key: &str) -> Value {
    let has_curl = Command::new("curl").arg("--version").output().is_ok();
    if has_curl {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env("TOLLKEEPER_ROOT_KEY", key);
        let output = shell.output().expect("a shell");
        assert!(output.status.success(), "{command}");
        return serde_json::from_slice(&output.stdout).expect("JSON");
    }
    let quoted = |from: &str| command.split_once(from).and_then(|(_, rest)| rest.split_once('\''));
    let (body, _) = quoted("-d '").expect("a body");
    let words: Vec<_> = command.split_whitespace().collect();
    assert_eq!(words[..2], ["curl", "-s"]);
    assert_eq!(words[2], format!("{}/v2/ratelimit.limit", server.url()));
    assert!(
        command.contains(&format!("Bearer {key}"))
            || command.contains("Bearer $TOLLKEEPER_ROOT_KEY")
    );
    let answer = Client::new(server.url(), key).post_bytes("ratelimit.limit", body.as_bytes());
    answer.expect("an answer").json
}

#[test]
fn a_key_that_was_made_is_shown_although_the_start_fails() {
    let folder = tempfile::tempdir().unwrap();
    // The journal's folder cannot be made where a file is.
    let taken = folder.path().join("journal");
    fs::write(&taken, "a file").unwrap();
    let failure = start(folder.path(), &WITHOUT).expect_err("it must not start");
    let key = failure.stderr.split_whitespace().find(|word| word.starts_with("tk_root_"));
    let key = key.expect("a key").to_owned();

    fs::remove_file(&taken).unwrap();
    let second = started(folder.path(), &WITHOUT);
    assert_eq!((shown(&second), status_for(&second, &key)), (None, 200));
}

/// As in `tollkeeper serve | true`.
#[test]
fn who_closes_its_output_is_served_all_the_same_and_shown_the_key_that_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Command::new(BINARY)
        .arg("serve")
        .env_clear()
        .env("TOLLKEEPER_HTTP_LISTEN", "127.0.0.1:0")
        .env("TOLLKEEPER_DATA_DIR", folder.path())
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(server.stdout.take());
    let (mut url, mut key) = (None, None);
    let lines = BufReader::new(server.stderr.take().unwrap()).lines();
    for line in lines.map_while(Result::ok) {
        let word = |start| line.split_whitespace().find(|word| word.starts_with(start));
        url = url.or(word("http://").map(|url| url.trim_end_matches(';').to_owned()));
        key = key.or(word("tk_root_").map(str::to_owned));
        if url.is_some() && key.is_some() {
            break;
        }
    }
    let (url, key) = (url.expect("an address"), key.expect("a key"));
    let status = Client::new(&url, &key).post("ratelimit.limit", &ask("api", "ann", 9)).status();
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(status, 200);
}

#[test]
fn the_first_start_shows_the_key_once_with_a_line_that_works_when_pasted() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = started(folder.path(), &WITHOUT);
    let key = shown(&first).expect("a key");
    assert!(first.stdout().contains(&format!("listening on {}\n", first.url())));
    assert!(first.stdout().contains(&folder.path().display().to_string()));
    for _ in 0..2 {
        let answer = carried_out(&pasted(&first), &first, &key);
        assert_eq!(answer["data"]["success"], true, "{answer}");
    }
    first.terminate().unwrap();

    let mut second = started(folder.path(), &WITHOUT);
    assert_eq!(shown(&second), None);
    assert!(!second.stdout().contains(&key));
    assert_eq!(status_for(&second, &key), 200);
    second.kill9().unwrap();

    let third = started(folder.path(), &WITHOUT);
    assert_eq!((shown(&third), status_for(&third, &key)), (None, 200));
    let answer = carried_out(&pasted(&third), &third, &key);
    assert_eq!(answer["data"]["success"], true, "the line takes the key from the environment");
}

#[test]
fn a_given_key_replaces_the_one_before_and_is_valid_only_while_given() {
    let folder = tempfile::tempdir().unwrap();
    let given = ["given-key-number-one", "given key: number \"two\" $HOME `x`"];
    let mut server = started(folder.path(), &WITHOUT);
    let made = shown(&server).expect("a key");
    server.terminate().unwrap();
    let mut older = vec![made];
    for key in given {
        let mut server = started(folder.path(), &[("TOLLKEEPER_ROOT_KEY", key)]);
        assert_eq!((shown(&server), status_for(&server, key)), (None, 200));
        assert!(!server.stdout().contains(key));
        for old in &older {
            assert_eq!(status_for(&server, old), 401, "{old}");
        }
        older.push(key.to_owned());
        server.terminate().unwrap();
    }
    let server = started(folder.path(), &WITHOUT);
    let new = shown(&server).expect("a new key, since the given one is gone");
    assert_eq!(status_for(&server, &new), 200);
    for old in &older {
        assert_ne!(*old, new);
        assert_eq!(status_for(&server, old), 401, "{old}");
    }
}

#[test]
fn a_generated_key_that_is_given_back_stays_valid_without_being_given() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = started(folder.path(), &WITHOUT);
    let made = shown(&server).expect("a key");
    server.terminate().unwrap();
    for _ in 0..2 {
        for env in [[("TOLLKEEPER_ROOT_KEY", &*made)], WITHOUT] {
            let mut server = started(folder.path(), &env);
            assert_eq!((shown(&server), status_for(&server, &made)), (None, 200), "{env:?}");
            server.terminate().unwrap();
        }
    }
}

#[test]
fn a_lost_key_is_replaced_the_way_the_server_says() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = started(folder.path(), &WITHOUT);
    let lost = shown(&server).expect("a key");
    server.terminate().unwrap();
    let mut server = started(folder.path(), &WITHOUT);
    pasted(&server);
    let said = server.stdout();
    assert!(said.contains("start with another as\nTOLLKEEPER_ROOT_KEY"), "{said}");
    assert!(said.contains("the next start without it shows a new one"), "{said}");
    server.terminate().unwrap();
    let mut server = started(folder.path(), &[("TOLLKEEPER_ROOT_KEY", "another-root-key-1")]);
    assert_eq!((status_for(&server, "another-root-key-1"), status_for(&server, &lost)), (200, 401));
    server.terminate().unwrap();
    let server = started(folder.path(), &WITHOUT);
    let new = shown(&server).expect("a new key");
    assert_eq!((status_for(&server, &new), status_for(&server, &lost)), (200, 401));
}

#[test]
fn a_key_of_512_characters_is_as_good_as_one_of_16() {
    let folder = tempfile::tempdir().unwrap();
    for length in [16, 512] {
        let key = "~".repeat(length);
        let mut server = started(folder.path(), &[("TOLLKEEPER_ROOT_KEY", &key)]);
        assert_eq!(status_for(&server, &key), 200);
        server.terminate().unwrap();
    }
}

#[test]
fn another_secret_on_the_same_data_is_refused_and_the_right_one_still_works() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut first = started(folder.path(), &WITHOUT);
    let key = shown(&first).expect("a key is made");
    first.terminate().expect("it ends");
    let other =
        [("TOLLKEEPER_ROOT_KEY", ""), ("TOLLKEEPER_SECRET", "another secret of 32 characters!")];
    let refused = start(folder.path(), &other).expect_err("it must not start");
    assert_eq!(refused.status.and_then(|status| status.code()), Some(2));
    assert!(refused.stderr.contains("written under another secret"), "{}", refused.stderr);
    let again = started(folder.path(), &WITHOUT);
    assert_eq!(status_for(&again, &key), 200);
}
