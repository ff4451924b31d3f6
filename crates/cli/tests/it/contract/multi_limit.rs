//! `ratelimit.multiLimit`: all or nothing, in the order of the request.

use serde_json::{Value, json};

use crate::world::{Client, World, ask, keys};

fn multi(client: &mut Client, entries: &[Value]) -> Value {
    client.data("ratelimit.multiLimit", &json!(entries))
}

fn used(client: &mut Client, namespace: &str, identifier: &str) -> Value {
    client.data("limits.peek", &ask(namespace, identifier, 100))["used"].take()
}

#[test]
fn a_bundle_that_fits_is_charged_everywhere_and_answered_in_order() {
    let world = World::new();
    let mut client = world.client();
    let entries = [ask("b", "two", 5), ask("a", "one", 9), ask("b", "one", 7)];
    let data = multi(&mut client, &entries);
    assert_eq!(keys(&data), ["limits", "passed"]);
    assert_eq!(data["passed"], true);
    let lines = data["limits"].as_array().unwrap();
    assert_eq!(lines.len(), 3);
    for (line, entry) in lines.iter().zip(&entries) {
        assert_eq!(
            keys(line),
            ["identifier", "limit", "namespace", "passed", "remaining", "reset"]
        );
        for same in ["namespace", "identifier", "limit"] {
            assert_eq!(line[same], entry[same]);
        }
        assert_eq!(line["remaining"], json!(entry["limit"].as_u64().unwrap() - 1));
        assert!(line["reset"].is_u64() && line["passed"] == true);
    }
}

#[test]
fn a_denied_bundle_spends_nothing_anywhere() {
    let world = World::new();
    let mut client = world.client();
    client.limit(&ask("a", "full", 1));
    for position in 0..3 {
        let mut entries = vec![ask("a", "x", 5), ask("b", "y", 5)];
        entries.insert(position, ask("a", "full", 1));
        let data = multi(&mut client, &entries);
        assert_eq!(data["passed"], false);
        let lines = data["limits"].as_array().unwrap();
        for (at, line) in lines.iter().enumerate() {
            assert_eq!(line["passed"], at != position, "{data}");
            assert_eq!(line["remaining"], if at == position { 0 } else { 5 }, "{data}");
        }
        assert!(lines[position]["retryAfterMs"].is_u64());
    }
    for (namespace, identifier) in [("a", "x"), ("b", "y")] {
        assert_eq!(used(&mut client, namespace, identifier), 0);
    }
}

#[test]
fn an_entry_that_comes_twice_is_charged_twice_or_not_at_all() {
    let world = World::new();
    let mut client = world.client();
    let twice = [ask("a", "x", 3), ask("a", "x", 3)];
    assert_eq!(multi(&mut client, &twice)["passed"], true);
    assert_eq!(used(&mut client, "a", "x"), 2);
    assert_eq!(multi(&mut client, &twice)["passed"], false, "only one of two fits");
    assert_eq!(used(&mut client, "a", "x"), 2);
    assert_eq!(multi(&mut client, &twice[..1])["passed"], true);
}

#[test]
fn algorithms_and_peeks_mix_in_one_bundle_of_a_hundred() {
    let world = World::new();
    let mut client = world.client();
    let entry = |at: usize| {
        let mut entry = ask("mixed", &format!("id-{}", at % 50), 1000);
        entry["algorithm"] = json!(crate::world::ALGORITHMS[at % 4]);
        entry["cost"] = json!(at % 3);
        entry
    };
    let entries: Vec<_> = (0..100).map(entry).collect();
    let data = multi(&mut client, &entries);
    assert_eq!((&data["passed"], data["limits"].as_array().unwrap().len()), (&json!(true), 100));
    for (line, entry) in data["limits"].as_array().unwrap().iter().zip(&entries) {
        assert_eq!(line["identifier"], entry["identifier"]);
    }
}

#[test]
fn a_deleted_namespace_in_a_bundle_refuses_the_whole_of_it() {
    let world = World::new();
    let mut client = world.client();
    multi(&mut client, &[ask("gone", "x", 5), ask("kept", "x", 5)]);
    client.data("ratelimit.deleteNamespace", &json!({"namespace": "gone"}));
    let bundle = json!([ask("kept", "x", 5), ask("gone", "x", 5)]);
    assert_eq!(client.post("ratelimit.multiLimit", &bundle).status(), 410);
    assert_eq!(used(&mut client, "kept", "x"), 1);
}
