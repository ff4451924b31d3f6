//! What contradicts itself: spans of time that end before they begin, a burst without a bucket, rules that nobody has.

use serde_json::{Value, json};

use crate::world::World;

#[test]
fn no_call_takes_a_span_that_ends_before_it_begins() {
    let world = World::new();
    let mut client = world.client();
    for method in [
        "usage.query",
        "usage.export",
        "stats.query",
        "limits.stats",
        "audit.search",
        "audit.changes",
    ] {
        let answer = client.post(method, &json!({"from": 2, "to": 1}));
        answer.assert_refused(method);
        assert_eq!((answer.status(), answer.places()), (400, vec!["body.to"]), "{method}");
        let empty = client.post(method, &json!({"from": 2, "to": 2}));
        assert_eq!(empty.status(), 200, "{method}: an empty span is one");
    }
    let both = json!({"namespace": "a", "rule": "b", "from": 2, "to": 1});
    assert_eq!(client.post("limits.stats", &both).places(), ["body.rule", "body.to"]);
}

#[test]
fn the_counts_of_a_rule_that_nobody_has_are_404() {
    let world = World::new();
    let mut client = world.client();
    let rule = json!({"name": "few", "scope": "global", "limits": [{"limit": 9, "window": "1h"}]});
    client.data("rules.apply", &json!({"rules": [rule]}));
    let ask = |rule: &str| json!({"rule": rule, "from": 0, "to": 4_000_000_000_000_u64});
    assert_eq!(client.data("limits.stats", &ask("few")), json!([]), "it was not asked yet");
    let unknown = client.post("limits.stats", &ask("nope"));
    unknown.assert_refused("nope");
    assert_eq!((unknown.status(), unknown.code()), (404, "rule_not_found"));
}

#[test]
fn a_burst_without_a_bucket_is_refused_wherever_limits_are_taken() {
    let world = World::new();
    let mut client = world.client();
    client.spend("ann", "token_bucket", 1);
    let made = client.data("apis.createApi", &json!({"name": "payments"}));
    let limit = |algorithm: Option<&str>| {
        let mut limit = json!({"name": "few", "limit": 5, "duration": 60_000, "burst": 10});
        if let Some(word) = algorithm {
            limit["algorithm"] = json!(word);
        }
        limit
    };
    let asks = |limit: Value| {
        let mut plain = limit.clone();
        plain.as_object_mut().unwrap().remove("name");
        (plain["namespace"], plain["identifier"]) = (json!("api"), json!("bob"));
        let listed = json!([limit]);
        [
            ("ratelimit.limit", plain.clone(), "body.burst"),
            ("ratelimit.multiLimit", json!([plain]), "body[0].burst"),
            ("limits.peek", plain, "body.burst"),
            (
                "keys.verifyKey",
                json!({"key": "x", "ratelimits": listed}),
                "body.ratelimits[0].burst",
            ),
            ("gate.check", json!({"ratelimits": listed}), "body.ratelimits[0].burst"),
            (
                "keys.createKey",
                json!({"apiId": made["apiId"], "ratelimits": listed}),
                "body.ratelimits[0].burst",
            ),
            (
                "identities.createIdentity",
                json!({"externalId": "ann", "ratelimits": listed}),
                "body.ratelimits[0].burst",
            ),
        ]
    };
    for algorithm in [None, Some("sliding_window"), Some("fixed_window"), Some("sliding_log")] {
        for (method, body, place) in asks(limit(algorithm)) {
            let answer = client.post(method, &body);
            answer.assert_refused(method);
            assert_eq!(
                (answer.status(), answer.places()),
                (400, vec![place]),
                "{method} {algorithm:?}"
            );
        }
    }
    for (method, body, _) in asks(limit(Some("token_bucket"))) {
        assert_eq!(client.post(method, &body).status(), 200, "{method}");
    }
}
