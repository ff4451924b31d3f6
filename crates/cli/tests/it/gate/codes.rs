//! Every verdict has its code and the status that a proxy should send, and the answer itself is always a 200.

use serde_json::json;
use tollkeeper_testkit::RedisServer;

use super::{answered, apply, check, key, project, rule, verdict};
use crate::fleet::PATIENT;
use crate::time::eventually;
use crate::world::{LONG_MS, World};

#[test]
fn a_key_that_may_not_pass_says_why_and_which_status_that_is() {
    let world = World::new();
    let mut client = world.client();
    let api = project(&mut client);
    let (id, plain) = key(&mut client, &api, json!({"externalId": "ann"}));
    let data = check(&mut client, &json!({"key": plain}));
    assert_eq!(verdict(&data), ("VALID", 200));
    assert_eq!((&data["keyId"], &data["identity"]["externalId"]), (&json!(id), &json!("ann")));
    assert!(data.get("rule").is_none() && data.get("retryAfterMs").is_none(), "{data}");

    assert_eq!(verdict(&check(&mut client, &json!({"key": "nobody's"}))), ("NOT_FOUND", 401));
    let refused = [
        (json!({"ipAllowlist": ["10.0.0.0/8"]}), json!({"ip": "203.0.113.9"}), ("FORBIDDEN", 403)),
        (
            json!({"permissions": ["a"]}),
            json!({"permissions": "a AND b"}),
            ("INSUFFICIENT_PERMISSIONS", 403),
        ),
        (json!({"enabled": false}), json!({}), ("DISABLED", 403)),
        (json!({"credits": {"remaining": 0}}), json!({}), ("USAGE_EXCEEDED", 429)),
        (
            json!({}),
            json!({"ratelimits": [{"name": "spot", "limit": 0, "duration": 1000}]}),
            ("RATE_LIMITED", 429),
        ),
    ];
    for (terms, request, expected) in refused {
        let (_, text) = key(&mut client, &api, terms);
        let data = check(&mut client, &super::with(json!({"key": text}), request));
        assert_eq!(verdict(&data), expected, "{data}");
        assert!(data["keyId"].is_string(), "whose key it was: {data}");
    }
    let (id, text) = key(&mut client, &api, json!({}));
    client.data("keys.revoke", &json!({"keyId": id}));
    assert_eq!(verdict(&check(&mut client, &json!({"key": text}))), ("REVOKED", 401));
    let (id, text) = key(&mut client, &api, json!({}));
    client.data("keys.updateKey", &json!({"keyId": id, "expires": 1}));
    assert_eq!(verdict(&check(&mut client, &json!({"key": text}))), ("EXPIRED", 401));
}

#[test]
fn a_blocked_owner_is_refused_with_and_without_a_key_until_that_is_lifted() {
    let world = World::new();
    let mut client = world.client();
    let api = project(&mut client);
    let (_, text) = key(&mut client, &api, json!({"externalId": "ann"}));
    client.data("quotas.block", &json!({"externalId": "ann", "reason": "unpaid"}));
    for body in [json!({"key": text}), json!({"externalId": "ann"})] {
        assert_eq!(verdict(&check(&mut client, &body)), ("BLOCKED", 403), "{body}");
    }
    assert_eq!(verdict(&check(&mut client, &json!({"externalId": "bob"}))), ("VALID", 200));
    client.data("quotas.unblock", &json!({"externalId": "ann"}));
    assert_eq!(verdict(&check(&mut client, &json!({"key": text}))), ("VALID", 200));
}

#[test]
fn a_denial_says_when_to_come_back_in_body_and_headers_and_the_status_stays_200() {
    let world = World::new();
    let mut client = world.client();
    apply(&mut client, &json!([rule("few", &json!("user"), 1, json!({}))]));
    let ask = json!({"externalId": "ann"});
    let first = answered(&mut client, &ask);
    let header = |answer: &crate::world::Answer, name: &str| {
        answer.response.header(name).unwrap_or_else(|| panic!("{name}")).to_owned()
    };
    assert_eq!(header(&first, "x-ratelimit-limit"), "1");
    assert_eq!(header(&first, "x-ratelimit-remaining"), "0");
    assert_eq!(header(&first, "ratelimit-policy"), "\"few/30d\";q=1;w=2592000");
    assert!(header(&first, "ratelimit").starts_with("\"few/30d\";r=0;t="));
    assert_eq!(first.response.header("retry-after"), None, "only denials say when to come back");

    let denied = answered(&mut client, &ask);
    let data = &denied.json["data"];
    assert_eq!((verdict(data), &data["rule"]), (("RATE_LIMITED", 429), &json!("few")));
    let wait_ms = data["retryAfterMs"].as_u64().expect("a time");
    assert!(wait_ms > 0 && wait_ms <= 2 * LONG_MS, "{wait_ms}");
    assert_eq!(header(&denied, "retry-after"), wait_ms.div_ceil(1_000).to_string());
    let limit = &data["limits"][0];
    assert_eq!(
        (&limit["scope"], &limit["identifier"], &limit["exceeded"], &limit["algorithm"]),
        (&json!("user"), &json!("ann"), &json!(true), &json!("sliding_window"))
    );
    let huge = check(&mut client, &json!({"externalId": "bob", "cost": 2}));
    assert_eq!(verdict(&huge), ("RATE_LIMITED", 429));
    assert!(huge.get("retryAfterMs").is_none(), "what never fits is not worth waiting for: {huge}");
}

#[test]
fn a_rule_that_denies_without_redis_answers_unavailable_and_never_an_error() {
    let mut redis = RedisServer::start().expect("a Redis");
    let url: &'static str = redis.url().leak();
    let world =
        World::with(&[("TOLLKEEPER_REDIS_URL", url), ("TOLLKEEPER_MODE", "redis"), PATIENT]);
    let mut client = world.client();
    let strict = json!({"consistency": "exact", "onOutage": "deny"});
    apply(&mut client, &json!([rule("strict", &json!("user"), 100, strict)]));
    assert_eq!(verdict(&check(&mut client, &json!({"externalId": "ann"}))), ("VALID", 200));
    redis.kill();
    let mut last = json!(null);
    eventually("the rule denies", || {
        last = check(&mut client, &json!({"externalId": "bob"}));
        last["code"] == "UNAVAILABLE"
    });
    assert_eq!((verdict(&last), &last["degraded"]), (("UNAVAILABLE", 503), &json!(true)));
}

#[test]
fn of_several_limits_that_deny_the_one_that_does_so_longest_is_told_everywhere() {
    let world = World::new();
    let mut client = world.client();
    let of = |name: &str, priority: u64, limit: u64, window: &str, more: serde_json::Value| {
        let limits = json!([{"limit": limit, "window": window}]);
        super::with(
            json!({"name": name, "scope": "user", "limits": limits, "priority": priority, "algorithm": "fixed_window"}),
            more,
        )
    };
    let rules = json!([
        of("first", 1, 1, "1m", json!({"response": {"message": "Come back soon."}})),
        of("second", 2, 1, "3660d", json!({})),
        of("never", 3, 0, "1h", json!({"endpoints": ["/never"]})),
    ]);
    apply(&mut client, &rules);
    let ann = json!({"externalId": "ann"});
    assert_eq!(verdict(&check(&mut client, &ann)), ("VALID", 200));

    let denied = answered(&mut client, &ann);
    let data = &denied.json["data"];
    let wait_s = data["retryAfterMs"].as_u64().expect("a wait").div_ceil(1_000);
    assert!(wait_s > 60, "the longer window: {data}");
    assert_eq!((verdict(data), &data["rule"]), (("RATE_LIMITED", 429), &json!("second")));
    assert!(data.get("message").is_none(), "the first rule's own words are for its own denials");
    let told = denied.response.header("retry-after").and_then(|told| told.parse::<u64>().ok());
    assert_eq!(told, Some(wait_s));
    let explained = super::explain(&mut client, &ann);
    let reason = super::text_of(&explained["reason"]);
    let limit = "The limit `second/3660d` of the rule `second` has no room left in its 1 units.";
    assert!(reason.starts_with(limit) && reason.ends_with(" s."), "{reason}");
    assert_eq!(explained["rule"], "second");

    let never = super::explain(&mut client, &json!({"externalId": "ann", "path": "/never"}));
    assert_eq!((&never["rule"], never.get("retryAfterMs")), (&json!("never"), None));
    assert_eq!(
        never["reason"],
        "The limit `never/1h` of the rule `never` lets nothing pass. Ask whoever runs this API."
    );
}
