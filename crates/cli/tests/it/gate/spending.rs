//! What is spent, and what is not: a denial, a dry run and an explanation leave every counter as it was.

use serde_json::{Value, json};
use tollkeeper_testkit::RedisServer;

use super::{apply, check, explain, key, left, project, rule, verdict};
use crate::fleet::PATIENT;
use crate::world::World;

fn rules() -> Value {
    json!([
        rule("each", &json!("user"), 5, json!({})),
        rule("all", &json!("global"), 100, json!({})),
        rule("watch", &json!("user"), 2, json!({"action": "log_only"})),
    ])
}

#[test]
fn dry_runs_and_explanations_spend_nothing_however_many_there_are() {
    let world = World::new();
    let mut client = world.client();
    apply(&mut client, &rules());
    let api = project(&mut client);
    let terms = json!({"externalId": "ann", "credits": {"remaining": 10},
        "ratelimits": [{"name": "own", "limit": 50, "duration": 60_000_000, "autoApply": true}]});
    let (id, text) = key(&mut client, &api, terms);
    let ask = json!({"key": text, "cost": 2, "credits": {"cost": 3}});
    let dry = super::with(ask.clone(), json!({"dryRun": true}));
    for _ in 0..20 {
        assert_eq!(verdict(&check(&mut client, &dry)), ("VALID", 200));
        assert_eq!(explain(&mut client, &ask)["allowed"], true);
    }
    let counted = world.metric("tollkeeper_checks_total{kind=\"gate\",outcome=\"valid\"}");
    assert_eq!(counted, 0, "what only looks is not counted either");
    let spent = check(&mut client, &ask);
    assert_eq!(verdict(&spent), ("VALID", 200));
    for (name, remaining) in [("each/30d", 3), ("all/30d", 98), ("own", 48), ("watch/30d", 0)] {
        assert_eq!(left(&spent, name), remaining, "{name}: {spent}");
    }
    assert_eq!(spent["credits"], 7);
    let stored = client.data("keys.getKey", &json!({"keyId": id}));
    assert_eq!(stored["credits"]["remaining"], 7);
    assert_eq!(world.metric("tollkeeper_checks_total{kind=\"gate\",outcome=\"valid\"}"), 1);
}

#[test]
fn dry_runs_and_explanations_spend_nothing_of_shared_limits_either() {
    let redis = RedisServer::start().expect("a Redis");
    let url: &'static str = redis.url().leak();
    let world =
        World::with(&[("TOLLKEEPER_REDIS_URL", url), ("TOLLKEEPER_MODE", "redis"), PATIENT]);
    let mut client = world.client();
    let shared = |name: &str, consistency: &str, more: Value| {
        let more = super::with(more, json!({"consistency": consistency}));
        rule(name, &json!(["user", "ip"]), 50, more)
    };
    apply(
        &mut client,
        &json!([
            shared("exact", "exact", json!({})),
            shared("fast", "fast", json!({})),
            shared("watch", "exact", json!({"action": "log_only"})),
        ]),
    );
    let ask = json!({"externalId": "ann", "ip": "203.0.113.9"});
    let dry = super::with(ask.clone(), json!({"dryRun": true}));
    for used in 1..=3 {
        for _ in 0..20 {
            assert_eq!(verdict(&check(&mut client, &dry)), ("VALID", 200));
            assert_eq!(explain(&mut client, &ask)["allowed"], true);
        }
        let spent = check(&mut client, &ask);
        for name in ["exact/30d", "fast/30d", "watch/30d"] {
            assert_eq!(left(&spent, name), 50 - used, "{name}: {spent}");
        }
    }
}

#[test]
fn a_dry_run_that_names_one_shared_limit_twice_is_told_what_both_come_to() {
    let redis = RedisServer::start().expect("a Redis");
    let [world, _] = two_nodes(&redis);
    let mut client = world.client();
    let asking = |cost: u64| {
        let own = json!({"name": "own", "limit": 3, "duration": 60_000_000, "cost": cost});
        json!({"externalId": "ann", "ratelimits": [own, own], "dryRun": true})
    };
    assert_eq!(verdict(&check(&mut client, &asking(1))), ("VALID", 200));
    assert_eq!(verdict(&check(&mut client, &asking(2))), ("RATE_LIMITED", 429));
}

/// Two nodes that share limits, each with a store of its own.
fn two_nodes(redis: &RedisServer) -> [World; 2] {
    let url: &'static str = redis.url().leak();
    [(); 2].map(|()| {
        World::with(&[("TOLLKEEPER_REDIS_URL", url), ("TOLLKEEPER_MODE", "redis"), PATIENT])
    })
}

#[test]
fn looking_on_one_node_leaves_the_last_unit_for_another() {
    let redis = RedisServer::start().expect("a Redis");
    let [one, other] = two_nodes(&redis);
    let (mut one, mut other) = (one.client(), other.client());
    for client in [&mut one, &mut other] {
        apply(client, &json!([rule("single", &json!("user"), 1, json!({}))]));
    }
    let ask = json!({"externalId": "ann"});
    let dry = super::with(ask.clone(), json!({"dryRun": true}));
    for _ in 0..5 {
        assert_eq!(verdict(&check(&mut one, &dry)), ("VALID", 200));
        assert_eq!(explain(&mut one, &ask)["allowed"], true);
    }
    assert_eq!(verdict(&check(&mut other, &ask)), ("VALID", 200));
    assert_eq!(verdict(&check(&mut one, &dry)), ("RATE_LIMITED", 429));
}

#[test]
fn a_retry_with_the_same_idempotency_key_spends_a_single_shared_limit_once() {
    let redis = RedisServer::start().expect("a Redis");
    let [world, _] = two_nodes(&redis);
    let mut client = world.client();
    apply(&mut client, &json!([rule("single", &json!("user"), 5, json!({}))]));
    let ask = json!({"externalId": "ann"});
    let limit =
        json!({"namespace": "api", "identifier": "ann", "limit": 5, "duration": 60_000_000});
    for _ in 0..4 {
        client.post_once("gate.check", &ask, "one");
        client.post_once("ratelimit.limit", &limit, "one");
        let other = client.post_once("gate.check", &json!({"externalId": "ann", "cost": 2}), "one");
        assert_eq!(other.status(), 409);
    }
    assert_eq!(left(&check(&mut client, &ask), "single/30d"), 3);
    assert_eq!(client.limit(&limit)["remaining"], 3);
}

#[test]
fn a_dry_run_says_what_would_be_denied_and_so_does_an_explanation() {
    let world = World::new();
    let mut client = world.client();
    apply(&mut client, &rules());
    let ask = json!({"externalId": "ann", "cost": 6});
    let dry = check(&mut client, &super::with(ask.clone(), json!({"dryRun": true})));
    assert_eq!((verdict(&dry), &dry["rule"]), (("RATE_LIMITED", 429), &json!("each")));
    let told = explain(&mut client, &ask);
    assert_eq!((verdict(&told), &told["rule"]), (("RATE_LIMITED", 429), &json!("each")));
    assert!(told["reason"].as_str().unwrap().contains("`each/30d`"), "{told}");
    assert_eq!(told["tier"], "free");
    let denies: Vec<_> = told["matched"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["rule"].as_str().unwrap(), row["wouldDeny"].as_bool().unwrap()))
        .collect();
    assert_eq!(denies, [("all", false), ("each", true), ("watch", false)]);
}

#[test]
fn an_explanation_names_every_rule_also_where_the_key_is_refused() {
    let world = World::new();
    let mut client = world.client();
    apply(&mut client, &rules());
    let api = project(&mut client);
    let (_, text) = key(&mut client, &api, json!({"externalId": "ann", "enabled": false}));
    let told = explain(&mut client, &json!({"key": text}));
    assert_eq!(verdict(&told), ("DISABLED", 403));
    assert!(told["reason"].as_str().unwrap().contains("switched off"), "{told}");
    let matched = told["matched"].as_array().unwrap();
    assert_eq!(matched.len(), 3, "{told}");
    for row in matched {
        assert_eq!(row["wouldDeny"], false, "{row}");
        assert!(row["reason"].as_str().unwrap().contains("refused before"), "{row}");
    }
    let unknown = explain(&mut client, &json!({"key": "nobody's"}));
    assert_eq!(verdict(&unknown), ("NOT_FOUND", 401));
}

#[test]
fn a_denied_bundle_spends_nothing_from_any_of_its_limits() {
    let world = World::new();
    let mut client = world.client();
    apply(&mut client, &rules());
    let api = project(&mut client);
    let (_, text) =
        key(&mut client, &api, json!({"externalId": "ann", "credits": {"remaining": 4}}));
    let denied = check(&mut client, &json!({"key": text, "cost": 6}));
    assert_eq!(verdict(&denied), ("RATE_LIMITED", 429));
    assert_eq!((left(&denied, "each/30d"), left(&denied, "all/30d")), (5, 100));
    let poor = check(&mut client, &json!({"key": text, "credits": {"cost": 5}}));
    assert_eq!(verdict(&poor), ("USAGE_EXCEEDED", 429));
    let passed = check(&mut client, &json!({"key": text}));
    assert_eq!((left(&passed, "each/30d"), left(&passed, "all/30d")), (4, 99));
    assert_eq!(passed["credits"], 3);
}

#[test]
fn a_retry_under_the_same_name_spends_once() {
    let world = World::new();
    let mut client = world.client();
    apply(&mut client, &rules());
    let ask = json!({"externalId": "ann"});
    let first = client.post_once("gate.check", &ask, "one");
    for _ in 0..3 {
        assert_eq!(client.post_once("gate.check", &ask, "one").json, first.json);
    }
    assert_eq!(left(&check(&mut client, &ask), "each/30d"), 3);
    let other = client.post_once("gate.check", &json!({"externalId": "bob"}), "one");
    assert_eq!(other.status(), 409);
}

#[test]
fn an_explanation_can_be_had_for_later() {
    let world = World::new();
    let mut client = world.client();
    apply(
        &mut client,
        &json!([{"name": "few", "scope": "user", "algorithm": "fixed_window", "limits": [{"limit": 1, "window": "1h"}]}]),
    );
    let ask = json!({"externalId": "ann"});
    assert_eq!(verdict(&check(&mut client, &ask)), ("VALID", 200));
    let now = explain(&mut client, &ask);
    assert_eq!(verdict(&now), ("RATE_LIMITED", 429));
    let reset = now["limits"][0]["reset"].as_u64().expect("a moment");
    let later = explain(&mut client, &super::with(ask.clone(), json!({"at": reset})));
    assert_eq!(verdict(&later), ("VALID", 200));
    assert_eq!(verdict(&check(&mut client, &ask)), ("RATE_LIMITED", 429), "the counter stays");
}

#[test]
fn a_key_is_judged_for_the_moment_that_an_explanation_is_asked_for() {
    let world = World::new();
    let mut client = world.client();
    let api = project(&mut client);
    let (_, text) = key(&mut client, &api, json!({"expires": 4_000_000_000_000_u64}));
    let at = |moment: u64| json!({"key": text, "at": moment});
    assert_eq!(verdict(&explain(&mut client, &at(3_999_999_999_999))), ("VALID", 200));
    assert_eq!(verdict(&explain(&mut client, &at(4_000_000_000_000))), ("EXPIRED", 401));
}
