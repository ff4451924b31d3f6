//! What the bodies of `gate.*` promise: a request is read without copying, every fault is named at once, and an answer
//! leaves out what there is nothing to say about.

use std::borrow::Cow;

use serde_json::{Value, json};
use tollkeeper_wire::{
    Algorithm, CheckReply, CheckRequest, CheckedLimit, Code, Denial, Described, ExplainReply,
    ExplainRequest, FieldError, Identity, Json, MatchedRule, Metadata, Pagination, RatelimitReply,
    Success, UnmatchedRule, parse,
};

fn places(found: &[FieldError]) -> Vec<&str> {
    found.iter().map(|fault| fault.location.as_str()).collect()
}

fn check_faults(body: &Value) -> Vec<FieldError> {
    parse::<CheckRequest>(body.to_string().as_bytes()).err().unwrap_or_default()
}

#[test]
fn nothing_is_required_and_every_text_is_borrowed() {
    let empty: CheckRequest = parse(b"{}").expect("a request about nobody in particular");
    assert!(empty == CheckRequest::default() && !empty.dry_run);
    let body = json!({"key": "prod_x", "externalId": "ann", "tier": "pro", "method": "GET", "path": "/v1/x?y"});
    let text = body.to_string();
    let ask: CheckRequest = parse(text.as_bytes()).expect("good");
    assert!(matches!(ask.external_id, Some(Cow::Borrowed("ann"))));
    assert!(matches!(ask.path, Some(Cow::Borrowed("/v1/x?y"))));
    assert!(!format!("{ask:?}").contains("prod_x"), "a key is never shown");
    assert_eq!(serde_json::to_value(&ask).expect("serializes"), body);
}

#[test]
fn everything_that_is_wrong_is_named_at_once() {
    let wrong = json!({"key": "", "externalId": "a b", "tier": "", "ip": "1.2.3", "method": "GET /", "path": "",
        "referer": 1, "source": null, "permissions": "", "cost": -1, "bytes": 1.5, "ratelimits": [{"name": "x"}],
        "credits": {}, "tags": [""], "dryRun": "yes", "at": 1});
    assert_eq!(
        places(&check_faults(&wrong)),
        [
            "body.key",
            "body.externalId",
            "body.tier",
            "body.ip",
            "body.method",
            "body.path",
            "body.referer",
            "body.source",
            "body.permissions",
            "body.cost",
            "body.bytes",
            "body.ratelimits[0].name",
            "body.credits.cost",
            "body.tags[0]",
            "body.dryRun",
            "body.at",
        ]
    );
    let at = json!({"at": -1}).to_string();
    let found = parse::<ExplainRequest>(at.as_bytes()).expect_err("before time began");
    assert_eq!(places(&found), ["body.at"]);
}

#[test]
fn a_path_may_be_hostile_but_not_endless() {
    for path in ["/%2e%2e/%00/\u{0}", "//..//..", "?", "*", "é\n\r", "%", &"/a".repeat(4_096)] {
        assert_eq!(check_faults(&json!({"path": path})), [], "{path:?}");
    }
    assert_eq!(places(&check_faults(&json!({"path": "/".repeat(8_193)}))), ["body.path"]);
    assert_eq!(places(&check_faults(&json!({"method": "X".repeat(33)}))), ["body.method"]);
}

#[test]
fn an_explanation_is_asked_for_about_the_same_request() {
    let body = r#"{"key":"k","externalId":"ann","cost":3,"dryRun":true,"at":9}"#;
    let ask: ExplainRequest = parse(body.as_bytes()).expect("good");
    assert_eq!(ask.at, Some(9));
    let same: CheckRequest =
        parse(br#"{"key":"k","externalId":"ann","cost":3,"dryRun":true}"#).expect("good");
    assert_eq!(ask.into_check(), same);
}

fn limit() -> CheckedLimit<'static> {
    CheckedLimit {
        name: "pro/1m".into(),
        scope: "user+endpoint".into(),
        identifier: "ann|/v1/*".into(),
        algorithm: Algorithm::TokenBucket,
        limit: 10,
        remaining: 0,
        reset: 9,
        retry_after_ms: None,
        exceeded: true,
        shadow: true,
    }
}

#[test]
fn an_answer_leaves_out_what_it_has_nothing_to_say_about() {
    let reply = CheckReply {
        allowed: true,
        code: Code::Valid,
        status: 200,
        rule: None,
        message: None,
        delay_ms: None,
        retry_after_ms: None,
        key_id: None,
        identity: None,
        credits: None,
        limits: vec![],
        degraded: false,
    };
    let value = serde_json::to_value(&reply).expect("serializes");
    assert_eq!(value, json!({"allowed": true, "code": "VALID", "status": 200, "limits": []}));
    assert_eq!(CheckReply::SHAPE.faults(&value), []);
    let full = CheckReply { limits: vec![limit()], degraded: true, ..reply };
    let value = serde_json::to_value(&full).expect("serializes");
    assert_eq!(
        value["limits"],
        json!([{"name": "pro/1m", "scope": "user+endpoint", "identifier": "ann|/v1/*", "algorithm": "token_bucket",
            "limit": 10, "remaining": 0, "reset": 9, "exceeded": true, "shadow": true}])
    );
    assert_eq!(CheckReply::SHAPE.faults(&value), []);
    let read: CheckReply = serde_json::from_str(&value.to_string()).expect("a client reads it");
    assert_eq!(read, full);
}

#[test]
fn an_answer_is_written_as_serde_writes_it() {
    let bare = CheckReply {
        allowed: false,
        code: Code::RateLimited,
        status: 429,
        rule: None,
        message: None,
        delay_ms: None,
        retry_after_ms: None,
        key_id: None,
        identity: None,
        credits: None,
        limits: vec![],
        degraded: false,
    };
    let shared = RatelimitReply {
        id: "rl_1".into(),
        name: "shared".into(),
        limit: 5,
        duration: 1_000,
        auto_apply: true,
        algorithm: Some(Algorithm::SlidingLog),
        burst: None,
        consistency: None,
        on_outage: None,
    };
    let plain = CheckedLimit { retry_after_ms: Some(7), shadow: false, ..limit() };
    let full = CheckReply {
        rule: Some("a \"rule\"".into()),
        message: Some("Zu viel.\nSpäter \u{1}\\ wieder".into()),
        delay_ms: Some(0),
        retry_after_ms: Some(u64::MAX),
        key_id: Some("key_1".into()),
        identity: Some(Identity {
            id: "id_1".into(),
            external_id: "ann".into(),
            meta: Metadata::stored(r#"{"a":[1.50,"ü"]}"#),
            ratelimits: vec![shared].into(),
        }),
        credits: Some(9),
        limits: vec![limit(), plain],
        degraded: true,
        ..bare.clone()
    };
    let unowned = CheckReply { identity: None, ..full.clone() };
    for reply in [bare, full, unowned] {
        let reply = Success::new("req_1", reply);
        let paged = reply.clone().paged(Pagination::continues_at("next"));
        for reply in [reply, paged] {
            let mut out = Vec::new();
            reply.write(&mut out);
            let text = serde_json::to_string(&reply).expect("serializes");
            assert_eq!(String::from_utf8(out).expect("text"), text);
        }
    }
}

#[test]
fn an_explanation_and_a_denial_fit_their_descriptions() {
    let matched = MatchedRule {
        rule: "pro".into(),
        action: "log_only".into(),
        name: Some("1m".into()),
        limit: Some(10),
        remaining: Some(0),
        would_deny: false,
        reason: "has no room, but only watches".into(),
    };
    let explained = ExplainReply {
        allowed: true,
        code: Code::Valid,
        status: 200,
        reason: "The request may pass.".into(),
        tier: "free".into(),
        rule: None,
        delay_ms: None,
        retry_after_ms: None,
        matched: vec![matched],
        unmatched: vec![UnmatchedRule { rule: "x".into(), reason: "the rule is disabled".into() }],
        limits: vec![],
    };
    let value = serde_json::to_value(&explained).expect("serializes");
    assert_eq!(ExplainReply::SHAPE.faults(&value), []);
    let denial = Denial {
        kind: "https://tollkeeper.dev/errors/gate/denied/rate_limited".into(),
        title: "Too Many Requests".into(),
        status: 429,
        detail: "The limit `pro/1m` has no room left.".into(),
        code: Some(Code::RateLimited),
        rule: Some("pro".into()),
        limit: Some("pro/1m".into()),
        retry_after_ms: Some(1_500),
        violated_policies: vec!["pro/1m".into()],
        request_id: "req_1".into(),
    };
    let value = serde_json::to_value(&denial).expect("serializes");
    assert_eq!(Denial::SHAPE.faults(&value), []);
    assert_eq!(value["violated-policies"], json!(["pro/1m"]));
    assert!(value.get("meta").is_none() && value["type"].is_string(), "no envelope");
}
