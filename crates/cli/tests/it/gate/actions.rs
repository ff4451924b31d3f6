//! What a rule does with the requests that it matches: reject, throttle, watch, let pass, refuse.

use serde_json::json;

use super::{answered, apply, check, explain, left, rule, verdict};
use crate::world::World;

#[test]
fn a_block_answers_with_its_own_status_message_and_time() {
    let world = World::new();
    let mut client = world.client();
    let own = json!({"status": 451, "message": "Not in your country.", "retryAfterSeconds": 7});
    apply(
        &mut client,
        &json!([
            {"name": "closed", "scope": "global", "action": "block", "endpoints": ["/closed/**"], "response": own},
            {"name": "gone", "scope": "global", "action": "block", "methods": ["DELETE"]},
            rule("behind", &json!("global"), 1, json!({})),
        ]),
    );
    let closed = answered(&mut client, &json!({"path": "/closed/room"}));
    let data = &closed.json["data"];
    assert_eq!((verdict(data), &data["rule"]), (("BLOCKED", 451), &json!("closed")));
    assert_eq!((&data["message"], &data["retryAfterMs"]), (&own["message"], &json!(7_000)));
    assert_eq!(closed.response.header("retry-after"), Some("7"));
    let plain = check(&mut client, &json!({"method": "delete", "path": "/open"}));
    assert_eq!((verdict(&plain), &plain["rule"]), (("BLOCKED", 403), &json!("gone")));
    assert!(plain.get("message").is_none() && plain.get("retryAfterMs").is_none(), "{plain}");
    let open = check(&mut client, &json!({"path": "/open"}));
    assert_eq!(
        (verdict(&open), left(&open, "behind/30d")),
        (("VALID", 200), 0),
        "blocks spent none"
    );
}

#[test]
fn a_rejection_answers_with_its_rules_own_words_too() {
    let world = World::new();
    let mut client = world.client();
    let own = json!({"response": {"status": 503, "message": "Come back later.", "retryAfterSeconds": 30}});
    apply(&mut client, &json!([rule("few", &json!("global"), 1, own)]));
    let passed = check(&mut client, &json!({}));
    assert_eq!(verdict(&passed), ("VALID", 200));
    assert!(passed.get("message").is_none(), "words are for denials: {passed}");
    let denied = answered(&mut client, &json!({}));
    let data = &denied.json["data"];
    assert_eq!(verdict(data), ("RATE_LIMITED", 503));
    assert_eq!(
        (&data["message"], &data["retryAfterMs"]),
        (&json!("Come back later."), &json!(30_000))
    );
    assert_eq!(denied.response.header("retry-after"), Some("30"));
}

#[test]
fn a_rule_that_only_watches_counts_and_reports_and_never_denies() {
    let world = World::new();
    let mut client = world.client();
    apply(
        &mut client,
        &json!([
            rule("watch", &json!("user"), 1, json!({"action": "log_only"})),
            rule("real", &json!("user"), 3, json!({})),
        ]),
    );
    let ask = json!({"externalId": "ann"});
    let shadow = |data: &serde_json::Value| {
        let limits = data["limits"].as_array().unwrap().iter();
        let watching: Vec<_> = limits.filter(|limit| limit["shadow"] == true).cloned().collect();
        assert!(watching.len() == 1 && watching[0]["name"] == "watch/30d", "{data}");
        watching[0].clone()
    };
    let first = check(&mut client, &ask);
    assert_eq!((verdict(&first), &shadow(&first)["exceeded"]), (("VALID", 200), &json!(false)));
    let second = answered(&mut client, &ask);
    let data = &second.json["data"];
    assert_eq!((verdict(data), &shadow(data)["exceeded"]), (("VALID", 200), &json!(true)));
    assert!(data.get("rule").is_none() && data.get("retryAfterMs").is_none(), "{data}");
    let policy = second.response.header("ratelimit-policy").unwrap();
    assert!(policy.starts_with("\"real/30d\""), "headers speak of limits that bind: {policy}");
    assert_eq!(second.response.header("retry-after"), None);
    let told = explain(&mut client, &ask);
    let row =
        told["matched"].as_array().unwrap().iter().find(|row| row["rule"] == "watch").unwrap();
    assert_eq!((&row["wouldDeny"], &row["action"]), (&json!(false), &json!("log_only")));
    assert!(row["reason"].as_str().unwrap().contains("only watches"), "{row}");
}

#[test]
fn a_throttle_makes_each_wait_longer_and_then_refuses() {
    let world = World::new();
    let mut client = world.client();
    // One in 20 s, and two more may wait for their turn.
    let slow = json!({"name": "slow", "scope": "user", "action": "throttle", "maxDelayMs": 40_000,
        "limits": [{"limit": 1, "window": "20s"}], "response": {"status": 420, "message": "Slower."}});
    apply(&mut client, &json!([slow]));
    let ask = json!({"externalId": "ann"});
    let first = check(&mut client, &ask);
    assert!(verdict(&first) == ("VALID", 200) && first.get("delayMs").is_none(), "{first}");
    let mut delays = Vec::new();
    for _ in 0..2 {
        let data = check(&mut client, &ask);
        assert_eq!((verdict(&data), &data["rule"]), (("VALID", 200), &json!("slow")), "{data}");
        assert!(data.get("message").is_none(), "{data}");
        delays.push(data["delayMs"].as_u64().expect("a delay"));
    }
    assert!(delays[0] > 5_000 && delays[0] <= 20_000, "{delays:?}");
    assert!(delays[1] > 25_000 && delays[1] <= 40_000, "{delays:?}");
    let denied = check(&mut client, &ask);
    assert_eq!((verdict(&denied), &denied["message"]), (("RATE_LIMITED", 420), &json!("Slower.")));
    let wait_ms = denied["retryAfterMs"].as_u64().expect("a time");
    assert!(wait_ms > 0 && wait_ms <= 20_000, "{wait_ms}");
    assert!(denied.get("delayMs").is_none(), "{denied}");
}

#[test]
fn an_allow_ends_the_walk_and_everything_before_it_still_counts() {
    let world = World::new();
    let mut client = world.client();
    apply(
        &mut client,
        &json!([
            rule("always", &json!("user"), 5, json!({"priority": 1})),
            {"name": "office", "scope": "global", "action": "allow", "ipRanges": ["10.0.0.0/8"], "priority": 2},
            rule("others", &json!("user"), 1, json!({"priority": 3})),
        ]),
    );
    let inside = json!({"externalId": "ann", "ip": "10.1.2.3"});
    for remaining in [4, 3, 2] {
        let data = check(&mut client, &inside);
        assert_eq!((verdict(&data), left(&data, "always/30d")), (("VALID", 200), remaining));
        assert_eq!(data["limits"].as_array().map(Vec::len), Some(1), "{data}");
    }
    let outside = json!({"externalId": "ann", "ip": "203.0.113.9"});
    assert_eq!(verdict(&check(&mut client, &outside)), ("VALID", 200));
    assert_eq!(check(&mut client, &outside)["rule"], "others");
    let told = explain(&mut client, &inside);
    assert_eq!(told["unmatched"][0]["rule"], "others");
    assert!(told["unmatched"][0]["reason"].as_str().unwrap().contains("`office`"), "{told}");
    let allow = &told["matched"][1];
    assert_eq!((&allow["rule"], &allow["action"]), (&json!("office"), &json!("allow")));
}
