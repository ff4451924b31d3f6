//! The root key is nobody's business but its owner's: it is shown once, and stands nowhere else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::world::{Client, World, ask};

fn assert_nowhere_below(folder: &Path, secret: &str) {
    for entry in fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            assert_nowhere_below(&path, secret);
            continue;
        }
        let bytes = fs::read(&path).expect("readable");
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{} holds the root key", path.display());
    }
}

/// Uses the key in every way that could leave a trace, also over HTTP/2 and with a mistake beside it.
fn use_up(world: &World, key: &str) {
    let mut client = Client::new(world.server.url(), key);
    client.limit(&ask("api", "ann", 5));
    client.post("limits.peek", &serde_json::json!({"namespace": "nowhere", "identifier": "x"}));
    client.post_bytes("ratelimit.limit", b"{").expect("an answer");
    let mut wrong = Client::new(world.server.url(), &format!("{key}-not"));
    wrong.post("ratelimit.limit", &ask("api", "ann", 5));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let http2 = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let request = http2.post(format!("{}/v2/ratelimit.limit", world.server.url()));
    let sent = runtime.block_on(request.bearer_auth(key).json(&ask("api", "ann", 5)).send());
    assert_eq!(sent.unwrap().status(), 200);
}

#[test]
fn a_given_root_key_leaves_no_trace_even_in_the_most_talkative_log() {
    let mut world = World::with(&[("TOLLKEEPER_LOG", "trace")]);
    let key = world.server.root_key().to_owned();
    use_up(&world, &key);
    assert!(!world.client().get("/metrics").text().contains(&key));
    assert_nowhere_below(world.data_dir(), &key);
    world.server.terminate().expect("it ends");
    assert_nowhere_below(world.data_dir(), &key);
    assert!(world.server.stderr().len() > 1000, "the log was talkative");
    assert!(!world.server.stderr().contains(&key) && !world.server.stdout().contains(&key));
}

#[test]
fn a_generated_root_key_stands_in_the_first_greeting_and_nowhere_else() {
    let mut world = World::with(&[("TOLLKEEPER_ROOT_KEY", ""), ("TOLLKEEPER_LOG", "trace")]);
    let said = world.server.stdout();
    let key = said.split_whitespace().find(|word| word.starts_with("tk_root_")).expect("a key");
    use_up(&world, key);
    assert_nowhere_below(world.data_dir(), key);
    world.server.terminate().expect("it ends");
    assert_nowhere_below(world.data_dir(), key);
    assert_eq!(world.server.stdout().matches(key).count(), 2, "alone, and in the line to try");
    assert!(!world.server.stderr().contains(key));
}

fn modes_below(folder: &Path, seen: &mut Vec<(String, u32)>) {
    for entry in fs::read_dir(folder).expect("readable") {
        let entry = entry.expect("readable");
        let (path, about) = (entry.path(), entry.metadata().expect("there"));
        if about.is_dir() {
            modes_below(&path, seen);
        } else {
            seen.push((path.display().to_string(), about.permissions().mode() & 0o777));
        }
    }
}

#[test]
fn nobody_but_its_owner_may_read_any_file_of_the_data_directory() {
    let mut world = World::new();
    world.client().spend("ann", "sliding_window", 1);
    world.restart();
    world.client().spend("ann", "sliding_window", 1);
    let mut seen = Vec::new();
    modes_below(world.data_dir(), &mut seen);
    for part in ["lock", ".tkj", "secret"] {
        assert!(seen.iter().any(|(path, _)| path.contains(part)), "{part}: {seen:?}");
    }
    let open: Vec<_> = seen.iter().filter(|(_, mode)| *mode != 0o600).collect();
    assert!(open.is_empty(), "{open:?}");
}
