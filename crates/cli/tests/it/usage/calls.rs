//! `usage.*` and `tollkeeper usage`: what they answer and print.

use serde_json::{Value, json};

use super::{DAY_MS, Keys, now_ms, usage};
use crate::program::Program;
use crate::start::terminal::on_a_terminal;
use crate::world::{Client, World};

fn counted() -> (World, Keys) {
    let world = World::new();
    let keys = Keys::make(&mut world.client(), 3);
    let mut client = world.client();
    for number in 0..25 {
        client.data("keys.verifyKey", &json!({"key": keys.ask(number).0}));
    }
    // Neither is usage: no key was found, and this is no key at all.
    client.data("keys.verifyKey", &json!({"key": "nobody"}));
    client.spend("ann", "sliding_window", 1);
    client.data("usage.flush", &json!({}));
    (world, keys)
}

fn export(client: &mut Client, body: &Value) -> (String, Option<String>) {
    let answer = client.post("usage.export", body);
    assert_eq!(answer.status(), 200, "{}", answer.json);
    let next = answer.response.header("x-tollkeeper-cursor").map(str::to_owned);
    (answer.response.text(), next)
}

#[test]
fn admitted_and_denied_are_counted_for_the_key_that_was_found() {
    let (world, _) = counted();
    for by in ["minute", "hour", "day", "month"] {
        let rows = usage(&mut world.client(), by);
        let sum = |field: &str| rows.iter().map(|row| row[field].as_u64().unwrap()).sum::<u64>();
        assert_eq!(
            (sum("requests"), sum("denied"), sum("bytes"), sum("credits")),
            (20, 5, 0, 0),
            "{by}"
        );
        let keys: std::collections::HashSet<_> =
            rows.iter().map(|row| row["keyId"].to_string()).collect();
        assert_eq!(keys.len(), 4, "{by}");
        assert!(rows.is_sorted_by_key(|row| (row["time"].as_u64(), row["keyId"].to_string())));
    }
}

#[test]
fn what_was_refused_moved_no_bytes() {
    let world = World::new();
    let mut client = world.client();
    let api = client.data("apis.createApi", &json!({"name": "moving"}));
    let once = json!([{"name": "once", "limit": 1, "duration": 86_400_000, "autoApply": true}]);
    let made = client.data("keys.createKey", &json!({"apiId": api["apiId"], "ratelimits": once}));
    for allowed in [true, false, false] {
        let asked = json!({"key": made["key"], "bytes": 1_000});
        assert_eq!(client.data("gate.check", &asked)["allowed"], allowed);
    }
    client.data("usage.flush", &json!({}));
    let rows = usage(&mut client, "day");
    let sum = |field: &str| rows.iter().map(|row| row[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("requests"), sum("denied"), sum("bytes")), (1, 2, 1_000));
}

#[test]
fn spent_credits_are_usage_too() {
    let world = World::new();
    let mut client = world.client();
    let api = client.data("apis.createApi", &json!({"name": "metered"}));
    let credits = json!({"apiId": api["apiId"], "credits": {"remaining": 10}});
    let key = client.data("keys.createKey", &credits);
    for cost in [3, 4, 5] {
        client.data("keys.verifyKey", &json!({"key": key["key"], "credits": {"cost": cost}}));
    }
    client.data("usage.flush", &json!({}));
    let rows = usage(&mut client, "day");
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!(
        (&row["requests"], &row["denied"], &row["credits"]),
        (&json!(2), &json!(1), &json!(7))
    );
    let body = json!({"from": 0, "to": now_ms() + DAY_MS, "keyId": key["keyId"]});
    assert_eq!(client.data("usage.query", &body).as_array().map(Vec::len), Some(1));
    let body = json!({"from": 0, "to": now_ms() + DAY_MS, "externalId": "nobody"});
    assert_eq!(client.data("usage.query", &body), json!([]));
}

#[test]
fn an_export_in_parts_is_the_same_as_in_one() {
    let (world, _) = counted();
    let mut client = world.client();
    let body = |format: &str, limit: u64| json!({"from": now_ms() - DAY_MS, "to": now_ms() + DAY_MS, "format": format, "limit": limit});
    let (csv, next) = export(&mut client, &body("csv", 100));
    assert_eq!(next, None);
    assert!(csv.starts_with("time,apiId,keyId,requests,bytes,denied,credits\n"), "{csv}");
    for format in ["csv", "ndjson"] {
        let (whole, _) = export(&mut client, &body(format, 100));
        let (mut parts, mut ask) = (String::new(), body(format, 1));
        loop {
            let (part, next) = export(&mut client, &ask);
            parts += &part;
            let Some(next) = next else { break };
            ask["cursor"] = json!(next);
        }
        assert_eq!(parts, whole);
    }
    let (lines, _) = export(&mut client, &body("ndjson", 100));
    let rows: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows, usage(&mut client, "day"));
}

#[test]
fn a_query_without_a_range_or_with_a_bad_one_is_refused() {
    let world = World::new();
    let mut client = world.client();
    for body in [json!({}), json!({"from": 1}), json!({"from": 1, "to": 2, "by": "week"})] {
        let answer = client.post("usage.query", &body);
        assert_eq!(answer.status(), 400, "{}", answer.json);
    }
}

#[test]
fn the_commands_print_what_the_server_says() {
    let (world, _) = counted();
    let run = |arguments: &[&str]| {
        let ran = Program::new(arguments)
            .env("TOLLKEEPER_URL", world.server.url())
            .env("TOLLKEEPER_ROOT_KEY", world.server.root_key())
            .run();
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    };
    let lines = run(&["usage", "query", "--since", "1d", "--by", "hour"]);
    assert_eq!(
        lines.lines().filter(|line| line.contains("requests=")).count(),
        lines.lines().count()
    );
    let rows: Vec<Value> = run(&["usage", "query", "--json"])
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(rows.iter().map(|row| row["requests"].as_u64().unwrap()).sum::<u64>(), 20);
    let csv = run(&["usage", "export", "--since", "1d"]);
    assert_eq!(csv.lines().count(), 5, "{csv}");
    assert!(run(&["usage", "flush"]).starts_with("buckets="));
}

#[test]
fn a_person_who_sees_no_usage_is_told_that_the_last_minute_may_be_under_way() {
    let world = World::new();
    let env =
        [("TOLLKEEPER_URL", world.server.url()), ("TOLLKEEPER_ROOT_KEY", world.server.root_key())];
    let (code, screen) = on_a_terminal(&["usage", "query"], &env);
    assert!(code == Some(0) && screen.contains("tollkeeper usage flush"), "{screen}");
    assert_eq!(on_a_terminal(&["usage", "query", "--json"], &env), (Some(0), String::new()));
}
