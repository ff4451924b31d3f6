//! A key's text is in the answer that shows it and nowhere else: not on disk, not in a database, not in a log, a metric or
//! a refusal.

use std::fs;
use std::path::Path;

use serde_json::json;
use tollkeeper_testkit::{Postgres, Tollkeeper};

use super::fleet::Fleet;
use super::{api, create, text_of, verify};
use crate::world::{Client, World};

/// A text that came from elsewhere, and its SHA-256.
const FOREIGN: &str = "canary-from-elsewhere-0123456789abcdef";
const FOREIGN_HASH: &str = "f1b3044eb0897c8d0f9d8d3816d0801f766a965eebe8f649b5c1fff5f2586067";

/// What was used, and what the server said of it where it was not content.
struct Traces {
    /// Without prefix and checksum: no part of a secret may be found either.
    secrets: Vec<String>,
    refusals: Vec<String>,
}

/// Uses keys in every way that could leave a trace, right and wrong.
fn leave_traces(client: &mut Client) -> Traces {
    let api = api(client);
    let plain = create(client, &api, json!({"prefix": "canary"}));
    let kept = create(client, &api, json!({"recoverable": true, "credits": {"remaining": 5}}));
    client.data("keys.getKey", &json!({"keyId": kept.id, "decrypt": true}));
    let new = client.data("keys.rerollKey", &json!({"keyId": kept.id, "expiration": 0}));
    let root = client.data("rootKeys.createKey", &json!({"permissions": ["api.*.verify_key"]}));
    let import = json!({"migrationId": "m", "apiId": api, "keys": [{"hash": FOREIGN_HASH}]});
    assert_eq!(client.data("keys.migrateKeys", &import)["failed"], json!([]));
    assert_eq!(verify(client, FOREIGN, json!({}))["code"], "VALID");
    let texts =
        [plain.text, kept.text, text_of(&new["key"]), text_of(&root["key"]), FOREIGN.to_owned()];
    let mut refusals = Vec::new();
    for text in &texts {
        verify(client, text, json!({"permissions": "a"}));
        let mistyped = format!("{text}x");
        verify(client, &mistyped, json!({}));
        for (method, wrong) in [
            ("keys.verifyKey", json!({"key": text, "more": 1})),
            ("keys.verifyKey", json!({"key": text, "tags": 7})),
            ("keys.verifyKey", json!({"key": text, "permissions": "a AND (b"})),
            ("keys.verifyKey", json!({"key": [text]})),
            ("keys.whoami", json!({"key": text, "more": 1})),
            ("keys.whoami", json!({"key": mistyped})),
            (
                "keys.migrateKeys",
                json!({"migrationId": "m", "apiId": api, "keys": [{"hash": text}]}),
            ),
        ] {
            let answer = client.post(method, &wrong);
            assert!(answer.status() >= 400, "{method} {wrong}: {}", answer.json);
            refusals.push(answer.json.to_string());
        }
    }
    let secret = |text: String| text[text.len() - 27..text.len() - 6].to_owned();
    Traces { secrets: texts.map(secret).to_vec(), refusals }
}

pub(super) fn assert_nowhere_below(folder: &Path, secret: &str) {
    for entry in fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            assert_nowhere_below(&path, secret);
            continue;
        }
        let bytes = fs::read(&path).expect("readable");
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{} holds a key", path.display());
    }
}

/// After the server has ended, so that all is written that ever will be.
fn assert_no_trace(traces: &Traces, server: &Tollkeeper, folder: &Path, texts: &[&str]) {
    for secret in &traces.secrets {
        assert_nowhere_below(folder, secret);
        // PostgreSQL shows bytes as hexadecimal digits.
        let digits: Vec<_> = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        let digits = digits.concat();
        let refusals = traces.refusals.iter().map(String::as_str);
        for text in texts.iter().copied().chain(refusals) {
            assert!(!text.contains(secret) && !text.contains(&digits), "{text}");
        }
        assert!(!server.stderr().contains(secret) && !server.stdout().contains(secret));
    }
}

#[test]
fn no_key_leaves_a_trace_even_in_the_most_talkative_log() {
    let mut world = World::with(&[("TOLLKEEPER_LOG", "trace")]);
    let traces = leave_traces(&mut world.client());
    let metrics = world.client().get("/metrics").text();
    world.server.terminate().expect("it ends");
    assert_no_trace(&traces, &world.server, world.data_dir(), &[&metrics]);
    assert!(world.server.stderr().len() > 1000, "the log was talkative");
}

#[test]
fn no_key_leaves_a_trace_in_postgresql_either() {
    let server = Postgres::start().expect("a database server");
    let mut fleet = Fleet::on(server, 1, &[("TOLLKEEPER_LOG", "trace")]);
    let traces = leave_traces(&mut fleet.client());
    let metrics = fleet.client().get("/metrics").text();
    let dump = fleet.postgres.dump(&fleet.database.name).expect("a dump");
    assert!(dump.contains("canary_"), "what may be shown of a key is there");
    let (mut node, folder) = fleet.nodes.remove(0);
    node.terminate().expect("it ends");
    assert_no_trace(&traces, &node, folder.path(), &[&metrics, &dump]);
}
