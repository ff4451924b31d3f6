//! What the bodies about keys promise beyond their bounds: three states of an update, metadata as it was sent, rules
//! across fields, and a hot request that copies nothing.

use std::borrow::Cow;

use serde_json::{Value, json};
use tollkeeper_wire::{
    CreateKeyRequest, Credits, CreditsPatch, FieldError, MigrateKeysRequest, Patch, Refill,
    RefillInterval, RerollKeyRequest, SetRolePermissionsRequest, UpdateCreditsRequest,
    UpdateIdentityRequest, UpdateKeyRequest, VerifyKeyRequest, parse,
};

fn only(faults: &[FieldError]) -> (&str, &str) {
    assert_eq!(faults.len(), 1, "{faults:?}");
    (&faults[0].location, &faults[0].message)
}

fn create_faults(more: &Value) -> Vec<FieldError> {
    let mut body = json!({"apiId": "api_1"});
    for (name, value) in more.as_object().expect("an object") {
        body[name] = value.clone();
    }
    parse::<CreateKeyRequest>(body.to_string().as_bytes()).err().unwrap_or_default()
}

#[test]
fn every_text_of_a_verification_is_borrowed_from_the_body() {
    let body = json!({"key": "prod_x", "permissions": "a AND b", "tags": ["t"], "ip": "::1", "path": "/v1",
        "ratelimits": [{"name": "heavy"}]})
    .to_string();
    let ask: VerifyKeyRequest = parse(body.as_bytes()).expect("the body is good");
    assert_eq!(ask.key.reveal(), "prod_x");
    assert!(matches!(ask.permissions, Some(Cow::Borrowed("a AND b"))));
    assert!(matches!(ask.tags.as_deref(), Some([Cow::Borrowed("t")])));
    assert!(matches!(ask.ip, Some(Cow::Borrowed("::1"))));
    assert!(
        matches!(ask.ratelimits.as_deref(), Some([one]) if matches!(one.name, Cow::Borrowed("heavy")))
    );
    assert!(!format!("{ask:?}").contains("prod_x"), "a key is never shown");
}

#[test]
fn an_update_tells_absent_from_null_from_a_value() {
    let body = r#"{"keyId":"key_1","name":null,"expires":5,"credits":{"remaining":null},"ratelimits":null}"#;
    let ask: UpdateKeyRequest = parse(body.as_bytes()).expect("the body is good");
    assert_eq!((&ask.name, &ask.meta, &ask.expires), (&Patch::Clear, &Patch::Keep, &Patch::Set(5)));
    assert_eq!(ask.ratelimits, Patch::Clear);
    assert_eq!(
        ask.credits,
        Patch::Set(CreditsPatch { remaining: Patch::Clear, refill: Patch::Keep })
    );
    assert_eq!(serde_json::to_string(&ask).expect("serializes"), body);
}

#[test]
fn where_null_has_no_meaning_it_is_refused() {
    for field in ["enabled", "roles", "permissions"] {
        let body = json!({"keyId": "key_1", field: null}).to_string();
        let faults = parse::<UpdateKeyRequest>(body.as_bytes()).expect_err(field);
        assert_eq!(only(&faults), (format!("body.{field}").as_str(), "Is null."));
    }
    assert_eq!(only(&create_faults(&json!({"name": null}))), ("body.name", "Is null."));
}

#[test]
fn a_reroll_names_an_expiration_even_if_it_is_null() {
    let read = |body: &'static str| parse::<RerollKeyRequest>(body.as_bytes());
    assert_eq!(read(r#"{"keyId":"key_1","expiration":null}"#).expect("good").expiration, None);
    assert_eq!(read(r#"{"keyId":"key_1","expiration":0}"#).expect("good").expiration, Some(0));
    let faults = read(r#"{"keyId":"key_1"}"#).expect_err("missing");
    assert_eq!(only(&faults), ("body.expiration", "Is required and missing."));
}

#[test]
fn metadata_comes_back_as_it_was_sent_without_white_space() {
    let body = r#"{"apiId":"api_1","meta":{ "z" : 1.50, "a":[12345678901234567890123, "\u00fc \" "], "z":2 }}"#;
    let ask: CreateKeyRequest = parse(body.as_bytes()).expect("the body is good");
    let kept = r#"{"z":1.50,"a":[12345678901234567890123,"\u00fc \" "],"z":2}"#;
    assert_eq!(ask.meta.as_ref().expect("given").as_str(), kept);
    let sent = serde_json::to_string(&ask).expect("serializes");
    assert_eq!(sent, format!(r#"{{"apiId":"api_1","meta":{kept}}}"#));
}

#[test]
fn metadata_that_some_client_could_not_read_is_refused() {
    for unreadable in [r#"{"a":"\ud800"}"#, r#"{"a":1e999}"#, r#"{"a":01}"#] {
        let body = format!(r#"{{"apiId":"api_1","meta":{unreadable}}}"#);
        let faults = parse::<CreateKeyRequest>(body.as_bytes()).expect_err(unreadable);
        assert!(only(&faults).1.starts_with("Is not valid JSON"), "{faults:?}");
    }
    let padded = format!(r#"{{"apiId":"api_1","meta":{{"a":0.{}}}}}"#, "0".repeat(70_000));
    assert_eq!(only(&parse::<CreateKeyRequest>(padded.as_bytes()).expect_err("padded")).0, "body");
}

#[test]
fn metadata_is_an_object_of_bounded_size() {
    assert_eq!(only(&create_faults(&json!({"meta": []}))), ("body.meta", "Is a list."));
    let wide: Value = (0..101).map(|n| (n.to_string(), json!(n))).collect();
    assert_eq!(only(&create_faults(&json!({"meta": wide}))), ("body.meta", "Has 101 properties."));
    let long = json!({"meta": {"a": "x".repeat(64 << 10)}});
    assert_eq!(only(&create_faults(&long)), ("body.meta", "Has 65544 bytes."));
}

#[test]
fn credits_that_cannot_be_filled_up_as_told_are_refused() {
    let credits = |credits: Value| create_faults(&json!({"credits": credits}));
    let monthly = json!({"interval": "monthly", "amount": 10, "refillDay": 31});
    assert_eq!(credits(json!({"remaining": 5, "refill": monthly})), []);
    assert_eq!(credits(json!({"remaining": null})), []);
    for (place, body) in [
        ("body.credits.refill", json!({"remaining": null, "refill": monthly})),
        (
            "body.credits.refill.refillDay",
            json!({"remaining": 5, "refill": {"interval": "monthly", "amount": 1}}),
        ),
        (
            "body.credits.refill.refillDay",
            json!({"remaining": 5, "refill": {"interval": "daily", "amount": 1, "refillDay": 1}}),
        ),
        ("body.credits.remaining", json!({"refill": monthly})),
    ] {
        assert_eq!(only(&credits(body)).0, place);
    }
    let refill = Refill::new(RefillInterval::Daily, 10);
    let typed = Credits { refill: Some(refill), ..Credits::new(Some(1)) };
    assert_eq!(
        serde_json::to_value(typed).expect("serializes"),
        json!({"remaining": 1, "refill": {"interval": "daily", "amount": 10}})
    );
}

#[test]
fn credits_are_changed_only_by_a_value() {
    let fault = |body: Value| {
        let body = body.to_string();
        parse::<UpdateCreditsRequest>(body.as_bytes()).err().map(|found| only(&found).0.to_owned())
    };
    assert_eq!(fault(json!({"keyId": "key_1", "operation": "set", "value": null})), None);
    assert_eq!(fault(json!({"keyId": "key_1", "operation": "decrement", "value": 0})), None);
    for refused in [
        json!({"keyId": "key_1", "operation": "set"}),
        json!({"keyId": "key_1", "operation": "increment", "value": null}),
        json!({"keyId": "key_1", "operation": "decrement"}),
    ] {
        assert_eq!(fault(refused).as_deref(), Some("body.value"));
    }
}

#[test]
fn two_stored_limits_never_share_a_name() {
    let limit = json!({"name": "heavy", "limit": 1, "duration": 1000});
    let body = json!({"identity": "ann", "ratelimits": [limit, limit]}).to_string();
    let faults = parse::<UpdateIdentityRequest>(body.as_bytes()).expect_err("twice");
    assert_eq!(only(&faults), ("body.ratelimits", "Has two limits named \"heavy\"."));
}

#[test]
fn a_limit_made_up_on_the_spot_may_be_zero_but_no_shorter_than_a_second() {
    let faults = |limit: Value| {
        let body = json!({"key": "k", "ratelimits": [limit]}).to_string();
        parse::<VerifyKeyRequest>(body.as_bytes()).err().unwrap_or_default()
    };
    assert_eq!(faults(json!({"name": "abc", "limit": 0, "duration": 1000})), []);
    assert_eq!(
        only(&faults(json!({"name": "abc", "limit": 0, "duration": 999}))).0,
        "body.ratelimits[0].duration"
    );
    assert_eq!(
        only(&create_faults(
            &json!({"ratelimits": [{"name": "abc", "limit": 0, "duration": 1000}]})
        ))
        .0,
        "body.ratelimits[0].limit"
    );
}

#[test]
fn a_misspelled_text_is_told_what_it_may_be_made_of() {
    let faults = create_faults(&json!({"prefix": "my-key"}));
    assert_eq!(only(&faults), ("body.prefix", "Is not letters, digits and `_`."));
    assert_eq!(
        faults[0].fix.as_deref(),
        Some("Send a string of 1 to 16 characters: letters, digits and `_`.")
    );
    assert_eq!(
        only(&create_faults(&json!({"ipAllowlist": ["10.0.0.0/8", "10.0.0.0/33"]}))).0,
        "body.ipAllowlist[1]"
    );
}

#[test]
fn a_role_is_named_by_either_spelling() {
    let read = |body: &'static str| parse::<SetRolePermissionsRequest>(body.as_bytes());
    assert_eq!(read(r#"{"roleId":"role_1","permissions":[]}"#).expect("good").role(), "role_1");
    assert_eq!(
        read(r#"{"role":"admin","roleId":"role_1","permissions":[]}"#).expect("good").role(),
        "admin"
    );
    assert_eq!(only(&read(r#"{"permissions":[]}"#).expect_err("nameless")).0, "body.role");
}

#[test]
fn a_hash_is_hexadecimal_or_base64_of_32_bytes() {
    for (hash, good) in [
        ("a".repeat(64), true),
        (format!("{}=", "A".repeat(43)), true),
        ("A".repeat(43), true),
        ("g".repeat(64), false),
        ("a".repeat(63), false),
        (format!("{}!", "A".repeat(43)), false),
    ] {
        let body =
            json!({"migrationId": "m", "apiId": "api_1", "keys": [{"hash": hash}]}).to_string();
        assert_eq!(parse::<MigrateKeysRequest>(body.as_bytes()).is_ok(), good, "{hash}");
    }
}
