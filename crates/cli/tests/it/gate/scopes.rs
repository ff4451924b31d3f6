//! Whose counter a request spends from: one scope, several together, an owner's own quota, or nobody's.

use serde_json::json;

use super::{apply, check, explain, key, left, project, rule, verdict};
use crate::world::World;

#[test]
fn compound_scopes_count_each_combination_apart() {
    let world = World::new();
    let mut client = world.client();
    let endpoints = json!({"endpoints": ["/v1/users/{id}", "/v1/*"]});
    apply(&mut client, &json!([rule("pair", &json!(["user", "endpoint"]), 2, endpoints)]));
    let ask = |user: &str, path: &str| json!({"externalId": user, "path": path});
    for (user, path, remaining) in [
        ("ann", "/v1/users/1", 1),
        ("ann", "/v1/users/2?x=1", 0),
        ("ann", "/v1/orders", 1),
        ("bob", "/v1/users/1", 1),
    ] {
        let data = check(&mut client, &ask(user, path));
        assert_eq!(
            (verdict(&data), left(&data, "pair/30d")),
            (("VALID", 200), remaining),
            "{user} {path}"
        );
    }
    let denied = check(&mut client, &ask("ann", "/v1/users/3"));
    assert_eq!(verdict(&denied), ("RATE_LIMITED", 429));
    let limit = &denied["limits"][0];
    assert_eq!(
        (&limit["scope"], &limit["identifier"]),
        (&json!("user+endpoint"), &json!("ann|/v1/users/{id}"))
    );
}

#[test]
fn every_limit_of_one_request_is_told_with_whose_counter_it_is() {
    let world = World::new();
    let mut client = world.client();
    let endpoints = json!({"endpoints": ["/v1/*"]});
    apply(
        &mut client,
        &json!([
            rule("watch", &json!(["ip", "user"]), 9, json!({"action": "log_only"})),
            rule("pair", &json!(["user", "endpoint"]), 9, endpoints),
            rule("ip", &json!("ip"), 9, json!({})),
            rule("all", &json!("global"), 9, json!({})),
        ]),
    );
    let ask = json!({"externalId": "ann", "path": "/v1/orders", "ip": "203.0.113.9"});
    let data = check(&mut client, &ask);
    let told = |name: &str| {
        let limits = data["limits"].as_array().unwrap();
        let one = limits.iter().find(|limit| limit["name"] == name);
        one.and_then(|limit| limit["identifier"].as_str()).unwrap_or("none").to_owned()
    };
    assert_eq!(
        ["pair/30d", "ip/30d", "watch/30d"].map(told),
        ["ann|/v1/*", "203.0.113.9", "203.0.113.9|ann"],
        "{data}"
    );
    assert_eq!(data["limits"].as_array().unwrap().len(), 4, "{data}");
}

#[test]
fn addresses_count_apart_and_those_of_one_ipv6_network_together() {
    let world = World::new();
    let mut client = world.client();
    apply(&mut client, &json!([rule("ip", &json!("ip"), 2, json!({}))]));
    for (ip, remaining) in [
        ("203.0.113.9", 1),
        ("203.0.113.10", 1),
        ("203.0.113.9", 0),
        ("2001:db8::1", 1),
        ("2001:db8::ffff:2", 0),
        ("2001:db8:0:1::1", 1),
    ] {
        assert_eq!(left(&check(&mut client, &json!({"ip": ip})), "ip/30d"), remaining, "{ip}");
    }
}

#[test]
fn a_rule_whose_scope_the_request_does_not_name_does_not_match() {
    let world = World::new();
    let mut client = world.client();
    apply(
        &mut client,
        &json!([
            rule("by-key", &json!("key"), 1, json!({})),
            rule("by-user", &json!(["user", "ip"]), 1, json!({})),
            rule("for-all", &json!("tenant"), 9, json!({})),
        ]),
    );
    let data = check(&mut client, &json!({}));
    assert_eq!((verdict(&data), left(&data, "for-all/30d")), (("VALID", 200), 8));
    assert_eq!(data["limits"].as_array().map(Vec::len), Some(1), "{data}");
    assert!(data.get("keyId").is_none() && data.get("identity").is_none(), "{data}");
    let told = explain(&mut client, &json!({"externalId": "ann"}));
    let reasons: Vec<_> = told["unmatched"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["rule"].as_str().unwrap(), row["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(
        reasons,
        [
            ("by-key", "the rule counts by key and the request gives none"),
            ("by-user", "the rule counts by ip and the request gives none"),
        ]
    );
}

#[test]
fn a_request_without_a_key_is_judged_by_its_owner_and_tier() {
    let world = World::new();
    let mut client = world.client();
    apply(
        &mut client,
        &json!([
            rule("free", &json!("user"), 1, json!({"tiers": ["free"]})),
            rule("pro", &json!("user"), 3, json!({"tiers": ["pro"]})),
        ]),
    );
    let names = |data: &serde_json::Value| data["limits"][0]["name"].as_str().unwrap().to_owned();
    assert_eq!(names(&check(&mut client, &json!({"externalId": "ann"}))), "free/30d");
    let told = json!({"externalId": "ann", "tier": "pro"});
    assert_eq!(names(&check(&mut client, &told)), "pro/30d");
    client.data("quotas.set", &json!({"externalId": "bob", "tier": "pro"}));
    let bob = check(&mut client, &json!({"externalId": "bob", "tier": "free"}));
    assert_eq!(names(&bob), "pro/30d", "the owner's tier goes before what is told");
    assert_eq!(bob["identity"]["externalId"], "bob");
    let wants = json!({"externalId": "bob", "permissions": "a"});
    assert_eq!(verdict(&check(&mut client, &wants)), ("INSUFFICIENT_PERMISSIONS", 403));
}

#[test]
fn a_limit_of_the_requests_own_belongs_to_whoever_makes_it() {
    let world = World::new();
    let mut client = world.client();
    let api = project(&mut client);
    let (id, text) = key(&mut client, &api, json!({"externalId": "ann"}));
    let own =
        json!({"ratelimits": [{"name": "spot", "limit": 5, "duration": 60_000_000, "cost": 2}]});
    for (who, scope, identifier) in [
        (json!({"key": text}), "key", &*id),
        (json!({"externalId": "ann"}), "user", "ann"),
        (json!({"externalId": "stranger"}), "user", "stranger"),
        (json!({}), "tenant", ""),
    ] {
        let data = check(&mut client, &super::with(who, own.clone()));
        let limit = &data["limits"][0];
        assert_eq!((left(&data, "spot"), &limit["scope"]), (3, &json!(scope)), "{data}");
        assert_eq!(limit["identifier"], identifier, "{data}");
    }
}

#[test]
fn an_owners_quota_replaces_the_limit_of_the_same_window_in_rules_for_tiers() {
    let world = World::new();
    let mut client = world.client();
    let limits = json!({"limits": [{"limit": 2, "window": "1h"}, {"limit": 50, "window": "1d"}], "tiers": ["free"]});
    apply(
        &mut client,
        &json!([
            rule("tiered", &json!("user"), 1, limits),
            rule("flat", &json!("user"), 40, json!({"limits": [{"limit": 40, "window": "1h"}]})),
        ]),
    );
    let api = project(&mut client);
    let (_, one) = key(&mut client, &api, json!({"externalId": "ann"}));
    let (_, two) = key(&mut client, &api, json!({"externalId": "ann"}));
    client.data("quotas.set", &json!({"externalId": "ann", "perHour": 10, "perMinute": 7}));
    let data = check(&mut client, &json!({"key": one}));
    assert_eq!(left(&data, "tiered/1h"), 9, "in the place of the tier's: {data}");
    assert_eq!(left(&data, "tiered/1d"), 49, "no quota of that window: {data}");
    assert_eq!(left(&data, "flat/1h"), 39, "a rule for everybody stays: {data}");
    assert_eq!(
        left(&data, "quota_minute"),
        6,
        "where no rule has that window, it stands alone: {data}"
    );
    let other = check(&mut client, &json!({"key": two}));
    assert_eq!(left(&other, "tiered/1h"), 8, "keys of one owner share one budget");
    let stranger = check(&mut client, &json!({"externalId": "bob"}));
    assert_eq!(left(&stranger, "tiered/1h"), 1, "of others the tier's counts: {stranger}");
}
