//! A bucket that is refilled at a rate of its own is shown as its rule is written: in bodies and headers, after a restart,
//! and by every node of a fleet.

use serde_json::{Value, json};

use super::{answered, apply, check, explain, key, left, project};
use crate::fleet::Fleet;
use crate::world::{Client, World};

/// Twenty at once, and one comes back every thousand seconds: nothing does while this runs.
fn rules() -> Value {
    json!([{"name": "slow", "scope": "global", "algorithm": "token_bucket", "refillRate": 0.001,
        "limits": [{"limit": 20, "window": "1m"}]}])
}

/// Spends one, and looks at everything that is said about the limit. Returns what is left.
fn asked(client: &mut Client) -> u64 {
    let answer = answered(client, &json!({}));
    let data = &answer.json["data"];
    let limit = &data["limits"][0];
    assert_eq!((&limit["name"], &limit["limit"]), (&json!("slow/1m"), &json!(20)), "{data}");
    assert_eq!(limit["algorithm"], "token_bucket");
    assert_eq!(answer.response.header("ratelimit-policy"), Some("\"slow/1m\";q=20;w=60"));
    assert_eq!(answer.response.header("x-ratelimit-limit"), Some("20"));
    let told = explain(client, &json!({}));
    assert_eq!(
        (&told["matched"][0]["limit"], &told["matched"][0]["name"]),
        (&json!(20), &json!("1m"))
    );
    left(data, "slow/1m")
}

#[test]
fn limit_and_window_are_shown_as_the_rule_says_also_after_a_restart() {
    let mut world = World::new();
    let mut client = world.client();
    apply(&mut client, &rules());
    assert_eq!(asked(&mut client), 19);
    world.restart();
    let mut client = world.client();
    assert_eq!(asked(&mut client), 18);
    let api = project(&mut client);
    let (_, text) = key(&mut client, &api, json!({}));
    let verified = client.data("keys.verifyKey", &json!({"key": text}));
    let limit = &verified["ratelimits"][0];
    assert_eq!((&limit["limit"], &limit["duration"]), (&json!(20), &json!(60_000)), "{verified}");
    assert_eq!(limit["remaining"], 17);
}

#[test]
fn an_identitys_own_limit_takes_the_place_of_the_one_of_its_window() {
    let world = World::new();
    let mut client = world.client();
    let mut plan = rules()[0].clone();
    (plan["scope"], plan["tiers"]) = (json!("user"), json!(["free"]));
    apply(&mut client, &json!([plan]));
    client.data("quotas.set", &json!({"externalId": "ann", "perMinute": 2}));
    let ask = json!({"externalId": "ann"});
    for remaining in [1, 0] {
        assert_eq!(left(&check(&mut client, &ask), "slow/1m"), remaining);
    }
    let denied = answered(&mut client, &ask);
    assert_eq!(denied.json["data"]["code"], "RATE_LIMITED", "{}", denied.json);
    assert_eq!(denied.response.header("ratelimit-policy"), Some("\"slow/1m\";q=2;w=60"));
    let wait_ms = denied.json["data"]["retryAfterMs"].as_u64().expect("a time");
    assert!(wait_ms > 900_000 && wait_ms <= 1_000_000, "the refill is the rule's: {wait_ms}");
    assert_eq!(left(&check(&mut client, &json!({"externalId": "ben"})), "slow/1m"), 19);
}

#[test]
fn every_node_of_a_fleet_shows_the_same() {
    let fleet = Fleet::of(2);
    let mut clients = fleet.clients();
    for client in &mut clients {
        apply(client, &rules());
    }
    for _ in 0..3 {
        for client in &mut clients {
            assert!(asked(client) < 20);
        }
    }
    let mut got = 6;
    for _ in 0..40 {
        for client in &mut clients {
            got += u64::from(check(client, &json!({}))["allowed"] == true);
        }
    }
    assert!(got <= 20, "{got} of 20");
}
