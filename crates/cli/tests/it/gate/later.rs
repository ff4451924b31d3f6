//! `gate.explain` for a later moment: what was used up is free again once its time has come, here and in a fleet.

use serde_json::{Value, json};

use super::{apply, check, explain, rule, with};
use crate::fleet::Fleet;
use crate::world::{Client, World};

const MINUTE_MS: u64 = 60_000;

fn rules() -> Value {
    let of = |name: &str, algorithm: &str| {
        json!({"name": name, "scope": "user", "algorithm": algorithm, "endpoints": [format!("/{name}")],
            "limits": [{"limit": 10, "window": "1h"}]})
    };
    json!([
        of("fixed", "fixed_window"),
        of("sliding", "sliding_window"),
        of("bucket", "token_bucket"),
        of("log", "sliding_log"),
        rule("long", &json!("user"), 10, json!({"endpoints": ["/long"]})),
    ])
}

/// What is left of the rule's limit at that moment, and whether a request would pass.
fn ahead(client: &mut Client, name: &str, at: u64) -> (u64, bool) {
    left(client, &json!({"externalId": "ann", "path": format!("/{name}"), "at": at}))
}

fn left(client: &mut Client, ask: &Value) -> (u64, bool) {
    let told = explain(client, ask);
    (told["matched"][0]["remaining"].as_u64().expect("a count"), told["allowed"] == true)
}

fn used_up_and_foreseen(client: &mut Client, other: &mut Client) {
    for name in ["fixed", "sliding", "bucket", "log", "long"] {
        let ask = json!({"externalId": "ann", "path": format!("/{name}"), "cost": 10});
        let made = check(client, &ask);
        assert_eq!(made["allowed"], true, "{name}: {made}");
        let denied = check(other, &with(ask, json!({"cost": 1})));
        assert_eq!(denied["allowed"], false, "{name}: {denied}");
        let now = json!({"externalId": "ann", "path": format!("/{name}")});
        assert_eq!(left(other, &now), (0, false), "{name}: as it is");
        // At its reset a window is over, and what flows back has done so; where it slides, one window later.
        let reset = denied["limits"][0]["reset"].as_u64().expect("a moment");
        for client in [&mut *client, &mut *other] {
            let later = reset + 61 * MINUTE_MS;
            assert!(name == "long" || ahead(client, name, later) == (10, true), "{name}");
        }
    }
    // Half an hour before it is whole, a bucket is half full.
    let bucket = json!({"externalId": "ann", "path": "/bucket"});
    let whole = check(other, &bucket)["limits"][0]["reset"].as_u64().expect("a moment");
    let (left, passes) = ahead(other, "bucket", whole - 30 * MINUTE_MS);
    assert!((4..=6).contains(&left) && passes, "{left}");
    let ten = with(bucket, json!({"cost": 10, "at": whole - 30 * MINUTE_MS}));
    let told = explain(other, &ten);
    assert_eq!((&told["allowed"], &told["rule"]), (&json!(false), &json!("bucket")), "{told}");
    let wait_ms = told["retryAfterMs"].as_u64().expect("a time");
    assert!(wait_ms.abs_diff(30 * MINUTE_MS) < MINUTE_MS, "from that moment on: {wait_ms}");
    let month = json!({"externalId": "ann", "path": "/long", "at": whole});
    assert_eq!(explain(other, &month)["allowed"], false, "its window is not over by then");
}

#[test]
fn a_node_alone_tells_what_will_be() {
    let world = World::new();
    let mut client = world.client();
    apply(&mut client, &rules());
    used_up_and_foreseen(&mut client, &mut world.client());
}

#[test]
fn shared_limits_are_told_by_what_redis_said_of_them() {
    let fleet = Fleet::of(2);
    let [one, other] = &mut fleet.clients()[..] else { panic!("two nodes") };
    for client in [&mut *one, &mut *other] {
        apply(client, &rules());
    }
    used_up_and_foreseen(one, other);
}
