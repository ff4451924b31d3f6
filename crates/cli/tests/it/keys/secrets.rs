//! A key's text is in the answer that shows it and nowhere else: not on disk, not in a log, not in a metric.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{api, create, text_of, verify};
use crate::world::World;

fn assert_nowhere_below(folder: &Path, secret: &str) {
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

#[test]
fn no_key_leaves_a_trace_even_in_the_most_talkative_log() {
    let mut world = World::with(&[("TOLLKEEPER_LOG", "trace")]);
    let mut client = world.client();
    let api = api(&mut client);
    let plain = create(&mut client, &api, json!({"prefix": "canary"}));
    let kept = create(&mut client, &api, json!({"recoverable": true, "credits": {"remaining": 5}}));
    client.data("keys.getKey", &json!({"keyId": kept.id, "decrypt": true}));
    let new = client.data("keys.rerollKey", &json!({"keyId": kept.id, "expiration": 0}));
    let texts = [plain.text, kept.text, text_of(&new["key"])];
    for text in &texts {
        verify(&mut client, text, json!({"permissions": "a"}));
        client.data("keys.whoami", &json!({"key": text}));
        for wrong in [
            json!({"key": text, "more": 1}),
            json!({"key": text, "tags": text}),
            json!({"keyId": text}),
        ] {
            client.post("keys.verifyKey", &wrong);
            client.post("keys.whoami", &wrong);
        }
        let mistyped = format!("{text}x");
        verify(&mut client, &mistyped, json!({}));
        client.post("keys.whoami", &json!({"key": mistyped}));
    }
    let metrics = client.get("/metrics").text();
    world.server.terminate().expect("it ends");
    for text in &texts {
        // Without prefix and checksum: no part of the secret either.
        let secret = &text[text.len() - 27..text.len() - 6];
        assert_nowhere_below(world.data_dir(), secret);
        assert!(!metrics.contains(secret));
        assert!(!world.server.stderr().contains(secret) && !world.server.stdout().contains(secret));
    }
    assert!(world.server.stderr().len() > 1000, "the log was talkative");
}
