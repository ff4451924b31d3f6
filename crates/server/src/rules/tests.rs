//! What a set of rules may say, and that everything wrong with it is told at once, at its place, with its rule's name.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};
use tollkeeper_core::{Action, Algorithm, Limit, Quota, Throttle, Width, Window};

use super::*;

fn checked(rules: &Value) -> Checked {
    check_file(&json!({ "rules": rules })).unwrap()
}

fn one(mut more: Value) -> Value {
    let mut rule =
        json!({ "name": "r", "scope": "user", "limits": [{"limit": 5, "window": "1m"}] });
    rule.as_object_mut().unwrap().append(more.as_object_mut().unwrap());
    rule
}

fn places(rules: &Value) -> Vec<String> {
    let faults = check_file(&json!({ "rules": rules })).unwrap_err();
    faults.into_iter().map(|fault| fault.location.replace("body.rules", "")).collect()
}

fn limit_of(more: Value) -> Limit {
    checked(&json!([one(more)])).rules[0].rule.limits[0].limit
}

#[test]
fn a_rule_has_one_text_however_it_was_written() {
    let long = one(json!({
        "scope": ["user"], "limits": [{"limit": 5, "window": "60s", "name": "1m"}],
        "algorithm": "sliding_window", "action": "reject", "priority": 100, "enabled": true,
        "tiers": [], "methods": [], "ipRanges": [],
    }));
    let ms = one(json!({ "limits": [{"limit": 5, "window": 60_000}] }));
    let texts: Vec<_> = [one(json!({})), long, ms]
        .into_iter()
        .map(|rule| checked(&json!([rule])).rules.remove(0).text)
        .collect();
    assert_eq!(texts[0], texts[1]);
    assert_eq!(texts[0], texts[2]);
    let expected = json!({
        "name": "r", "scope": "user", "limits": [{"limit": 5, "window": "1m"}],
        "algorithm": "sliding_window", "action": "reject", "priority": 100, "enabled": true,
    });
    assert_eq!(Value::Object(texts[0].clone()), expected);
}

#[test]
fn a_text_reads_back_as_itself_and_as_the_same_rule() {
    let rules = json!([
        one(json!({"name": "a", "tiers": ["pro"], "endpoints": ["/api/v1/*", "/users/{id}"],
            "methods": ["get", "POST"], "ipRanges": ["10.1.2.3/8", "::1"], "projects": ["shop"],
            "scope": ["user", "endpoint"], "consistency": "fast", "onOutage": "deny",
            "response": {"status": 402, "message": "pay", "retryAfterSeconds": 60}})),
        one(json!({"name": "b", "action": "throttle", "maxDelayMs": 500, "burst": 10, "refillRate": 1.5})),
        one(json!({"name": "c", "algorithm": "fixed_window",
            "limits": [{"limit": 1, "window": "1mo"}, {"limit": 2, "window": "1d", "name": "daily"}]})),
        {"name": "d", "scope": "ip", "action": "block", "ipRanges": ["192.0.2.0/24"], "priority": 0},
        {"name": "e", "scope": "tenant", "action": "allow", "enabled": false, "limits": []},
        one(json!({"name": "f", "algorithm": "token_bucket", "refillRate": 0.001, "action": "log_only"})),
    ]);
    let first = checked(&rules);
    let texts: Vec<_> = first.rules.iter().map(|rule| Value::Object(rule.text.clone())).collect();
    let again = checked(&json!(texts));
    for (one, other) in first.rules.iter().zip(&again.rules) {
        assert_eq!(one.text, other.text);
        assert_eq!(format!("{:?}", one.rule), format!("{:?}", other.rule));
    }
    let stored = read_stored(&json!(texts).to_string()).unwrap();
    assert_eq!(stored.len(), first.rules.len());
    assert_eq!(&*stored[0].methods[0], "GET");
    assert_eq!(stored[1].action, Action::Throttle { max_delay_ms: 500 });
}

#[test]
fn algorithms_windows_and_refills_are_what_they_say() {
    let (five, minute) = (Quota::new(5).unwrap(), Width::from_millis(60_000).unwrap());
    assert_eq!(limit_of(json!({})), Limit::sliding_window(five, minute));
    let fixed = limit_of(json!({"algorithm": "fixed_window"}));
    assert_eq!(fixed, Limit::fixed_window(five, Window::Aligned(minute)));
    let bucket = limit_of(json!({"algorithm": "token_bucket", "burst": 9}));
    assert_eq!(bucket, Limit::token_bucket(five, minute, Quota::new(9)));
    let throttled =
        limit_of(json!({"action": "throttle", "maxDelayMs": 5, "algorithm": "sliding_log"}));
    assert_eq!(throttled, Limit::token_bucket(five, minute, None));
    let refilled = limit_of(json!({"algorithm": "token_bucket", "refillRate": 1.5}));
    let width = Width::from_millis(2000).unwrap();
    assert_eq!(refilled, Limit::token_bucket(Quota::new(3).unwrap(), width, Some(five)));
    let blocking = limit_of(
        json!({"algorithm": "token_bucket", "refillRate": 1, "limits": [{"limit": 0, "window": "1m"}]}),
    );
    assert!(
        matches!(blocking.algorithm, Algorithm::TokenBucket { .. }) && blocking.quota.get() == 0
    );
}

#[test]
fn everything_wrong_is_told_at_once_at_its_place_and_with_its_rules_name() {
    let rules = json!([
        one(json!({"name": "a", "endpoints": ["/ok", "nope"], "methods": ["G T"], "prority": 1})),
        one(json!({"name": "a", "ipRanges": ["10.0.0.0/33"], "limits": [{"limit": 5, "window": "1w"}]})),
        one(json!({"name": "b", "action": "throttle", "response": {"status": 200}})),
        one(json!({"name": "c", "scope": ["user", "user"], "burst": 5, "maxDelayMs": 5})),
        {"name": "d", "scope": "moon", "adapt": {"floor": 0.5}},
        one(json!({"name": "e", "limits": [{"limit": 1, "window": "1m"}, {"limit": 2, "window": "60s"}]})),
        7,
    ]);
    let faults = check_file(&json!({ "rules": rules })).unwrap_err();
    let at: Vec<_> = faults.iter().map(|fault| fault.location.replace("body.rules", "")).collect();
    for place in [
        "[0].endpoints[1]",
        "[0].methods[0]",
        "[0].prority",
        "[1].name",
        "[1].ipRanges[0]",
        "[1].limits[0].window",
        "[2].maxDelayMs",
        "[2].response.status",
        "[3].scope",
        "[3].burst",
        "[3].maxDelayMs",
        "[4].scope",
        "[4].limits",
        "[4].adapt",
        "[5].limits[1]",
        "[6]",
    ] {
        assert_eq!(at.iter().filter(|one| *one == place).count(), 1, "{place}: {at:?}");
    }
    assert_eq!(at.len(), 16, "{at:?}");
    assert!(at.is_sorted_by_key(|place| place[1..2].to_owned()), "{at:?}");
    let named = faults.iter().filter(|fault| fault.location.starts_with("body.rules[2]"));
    assert!(named.into_iter().all(|fault| fault.message.starts_with("Rule \"b\": ")), "{faults:?}");
    let adapt = faults.iter().find(|fault| fault.location.ends_with("adapt")).unwrap();
    assert!(adapt.message.contains("not supported yet"), "{adapt:?}");
}

#[test]
fn contradictions_are_refused_where_they_stand() {
    let no_limits = |action| json!([{"name": "r", "scope": "user", "action": action}]);
    for action in ["reject", "log_only"] {
        assert_eq!(places(&no_limits(action)), ["[0].limits"], "{action}");
    }
    assert_eq!(places(&json!([{"name": "r", "scope": "user", "limits": []}])), ["[0].limits"]);
    for (more, place) in [
        (json!({"action": "allow"}), "[0].limits"),
        (json!({"action": "block"}), "[0].limits"),
        (json!({"action": "throttle"}), "[0].maxDelayMs"),
        (json!({"maxDelayMs": 5}), "[0].maxDelayMs"),
        (json!({"burst": 5}), "[0].burst"),
        (json!({"refillRate": 5}), "[0].refillRate"),
        (json!({"algorithm": "fixed_window", "burst": 5}), "[0].burst"),
        (json!({"limits": [{"limit": 5, "window": "1mo"}]}), "[0].limits"),
        (
            json!({"limits": [{"limit": 5, "window": "1mo"}], "algorithm": "token_bucket"}),
            "[0].limits",
        ),
        (
            json!({"limits": [{"limit": 5, "window": "1mo"}], "algorithm": "fixed_window",
            "action": "throttle", "maxDelayMs": 5}),
            "[0].limits",
        ),
        (
            json!({"limits": [{"limit": 10_001, "window": "1m"}], "algorithm": "sliding_log"}),
            "[0].limits",
        ),
        (
            json!({"limits": [{"limit": 0, "window": "1m"}], "action": "throttle", "maxDelayMs": 5}),
            "[0].limits",
        ),
        (json!({"limits": [{"limit": 5, "window": "500ms"}]}), "[0].limits[0].window"),
        (json!({"limits": [{"limit": 5, "window": 999}]}), "[0].limits[0].window"),
        (json!({"limits": [{"limit": -5, "window": "1m"}]}), "[0].limits[0].limit"),
        (json!({"response": {"status": 600}}), "[0].response.status"),
        (json!({"scope": "endpoint"}), "[0].scope"),
        (json!({"scope": []}), "[0].scope"),
        (json!({"priority": -1}), "[0].priority"),
        (json!({"name": "a b"}), "[0].name"),
    ] {
        assert_eq!(places(&json!([one(more.clone())])), [place], "{more}");
    }
}

#[test]
fn a_limit_of_zero_is_taken_and_said_to_block() {
    let zero = json!([{"limit": 0, "window": "1m"}]);
    let rules = json!([
        one(json!({"limits": zero})),
        one(json!({"name": "log", "limits": zero, "action": "log_only"})),
    ]);
    let notes = checked(&rules).notes;
    assert_eq!(notes.len(), 2);
    assert!(notes[0].contains("\"r\"") && notes[0].contains("blocks"), "{notes:?}");
    assert!(notes[1].contains("\"log\"") && notes[1].contains("reported"), "{notes:?}");
}

#[test]
fn ten_thousand_and_one_rules_are_one_too_many_and_a_hundred_faults_are_enough() {
    let many = |name: &str, count: usize| -> Value {
        (0..count).map(|at| one(json!({"name": format!("{name}{at}")}))).collect()
    };
    assert_eq!(checked(&many("r", 10_000)).rules.len(), 10_000);
    assert_eq!(places(&many("r", 10_001)), [""]);
    assert_eq!(places(&many("not a name ", 300)).len(), 100);
}

#[test]
fn no_body_however_odd_is_half_read() {
    for body in [
        "",
        "[]",
        "{}",
        "null",
        r#"{"rules":{}}"#,
        r#"{"rules":[null]}"#,
        r#"{"rules":[],"rules":[]}"#,
        r#"{"rules":[],"prune":1}"#,
        r#"{"rules":[],"prone":true}"#,
        r#"{"rules":[{"name":"a","name":"a","scope":"user","action":"block"}]}"#,
    ] {
        assert!(read_apply(body.as_bytes()).is_err(), "{body}");
    }
    let read = read_apply(br#"{"rules":[],"prune":true,"dryRun":true}"#).unwrap();
    assert!(read.prune && read.dry_run && read.checked.rules.is_empty());
    for list in
        ["", "{}", "[7]", r#"[{"name":"a"}]"#, r#"[{"name":"a","scope":"moon","action":"block"}]"#]
    {
        assert!(read_stored(list).is_err(), "{list}");
    }
}

#[test]
fn whatever_stands_in_a_field_is_refused_or_means_one_thing() {
    let odd = [
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(-1),
        json!(2.5),
        json!(1e300),
        json!(u64::MAX),
        json!(1_u64 << 53),
        json!(""),
        json!("a"),
        json!("1m"),
        json!("1mo"),
        json!("user"),
        json!("endpoint"),
        json!("throttle"),
        json!("\u{0}"),
        json!("é".repeat(600)),
        json!([]),
        json!([[]]),
        json!(["a"]),
        json!(["user", "user"]),
        json!(["/**/**/**/**/**"]),
        json!(["10.0.0.0/8"]),
        json!({}),
        json!({"status": 429}),
        json!([{"limit": 1, "window": "1mo"}]),
        json!([{"limit": 1, "window": "3660d"}]),
        json!([{"limit": 1, "window": "99999999999999999999d"}]),
        json!([{"limit": 1_u64 << 53, "window": 1000}]),
    ];
    let fields = [
        "name",
        "scope",
        "tiers",
        "endpoints",
        "methods",
        "ipRanges",
        "projects",
        "limits",
        "algorithm",
        "burst",
        "refillRate",
        "action",
        "maxDelayMs",
        "response",
        "adapt",
        "consistency",
        "onOutage",
        "priority",
        "enabled",
        "unknown",
    ];
    let bases = [
        one(json!({})),
        one(json!({"action": "throttle", "maxDelayMs": 5, "refillRate": 0.5})),
        one(json!({"algorithm": "token_bucket", "burst": 3})),
        one(json!({"algorithm": "fixed_window", "limits": [{"limit": 1, "window": "1mo"}]})),
        json!({"name": "r", "scope": "ip", "action": "block"}),
    ];
    let mut accepted = 0;
    for (base, field) in bases.iter().flat_map(|base| fields.map(|field| (base, field))) {
        for value in &odd {
            let mut rule = base.clone();
            rule[field] = value.clone();
            let Ok(read) = check_file(&json!({"rules": [rule]})) else { continue };
            accepted += 1;
            let text = Value::Object(read.rules[0].text.clone());
            let again = checked(&json!([text]));
            assert_eq!(Value::Object(again.rules[0].text.clone()), text, "{field} {value}");
            assert!(read_stored(&json!([text]).to_string()).is_ok(), "{field} {value}");
            let rule = &read.rules[0].rule;
            let throttles = match rule.action {
                Action::Throttle { max_delay_ms } => {
                    rule.limits.iter().all(|one| Throttle::new(one.limit, max_delay_ms).is_some())
                }
                _ => true,
            };
            assert!(throttles, "{field} {value}");
        }
    }
    assert!(accepted > 100, "{accepted}");
}
