//! Replies about keys: what is not there is left out, null stands only where the contract wants it, and everything fits
//! its own description.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tollkeeper_wire::{
    Code, CreditsReply, Described, Done, Identity, Key, KeyReply, KeyText, Metadata,
    MigrateKeysReply, Project, RatelimitReply, RefillInterval, RefillReply, RootKey, VerifiedLimit,
    VerifyKeyReply,
};

fn described<T: Described + Serialize + DeserializeOwned + PartialEq>(reply: &T, expected: &Value) {
    let value = serde_json::to_value(reply).expect("replies serialize");
    assert_eq!(&value, expected);
    assert_eq!(T::SHAPE.faults(&value), []);
    let mut newer = value;
    newer["somethingNew"] = json!([1, {"deep": null}]);
    let read: T = serde_json::from_str(&newer.to_string()).expect("a client reads it");
    assert!(read == *reply, "a client reads back what the server wrote and overlooks what is new");
}

fn limit() -> RatelimitReply<'static> {
    RatelimitReply {
        id: "rl_1".into(),
        name: "heavy".into(),
        limit: 10,
        duration: 1000,
        auto_apply: false,
        algorithm: None,
        burst: None,
        consistency: None,
        on_outage: None,
    }
}

fn key() -> Key<'static> {
    Key {
        key_id: "key_1".into(),
        start: "prod_abcd".into(),
        enabled: true,
        created_at: 1,
        name: None,
        meta: None,
        updated_at: None,
        last_used_at: None,
        expires: None,
        permissions: Cow::default(),
        roles: Cow::default(),
        credits: None,
        identity: None,
        plaintext: None,
        ratelimits: Cow::default(),
        tier: None,
        ip_allowlist: Cow::default(),
        signing: false,
        revoked_at: None,
        revoked_reason: None,
    }
}

#[test]
fn a_key_leaves_out_what_it_does_not_have() {
    described(
        &key(),
        &json!({"keyId": "key_1", "start": "prod_abcd", "enabled": true, "createdAt": 1}),
    );
    let permissions: [Box<str>; 2] = ["a".into(), "b".into()];
    let full = Key {
        meta: Metadata::stored(r#"{"plan":"pro"}"#),
        permissions: Cow::Owned(permissions.to_vec()),
        credits: Some(CreditsReply {
            remaining: None,
            refill: Some(RefillReply {
                interval: RefillInterval::Daily,
                amount: 5,
                refill_day: None,
            }),
        }),
        identity: Some(Identity {
            id: "id_1".into(),
            external_id: "ann".into(),
            meta: None,
            ratelimits: vec![limit()].into(),
        }),
        plaintext: Some(KeyText::new("prod_abcdefg")),
        ..key()
    };
    described(
        &full,
        &json!({"keyId": "key_1", "start": "prod_abcd", "enabled": true, "createdAt": 1, "meta": {"plan": "pro"},
            "permissions": ["a", "b"], "plaintext": "prod_abcdefg",
            "credits": {"remaining": null, "refill": {"interval": "daily", "amount": 5}},
            "identity": {"id": "id_1", "externalId": "ann",
                "ratelimits": [{"id": "rl_1", "name": "heavy", "limit": 10, "duration": 1000, "autoApply": false}]}}),
    );
}

#[test]
fn a_verdict_on_an_unknown_key_says_nothing_else() {
    described(&VerifyKeyReply::bare(Code::NotFound), &json!({"valid": false, "code": "NOT_FOUND"}));
}

#[test]
fn a_verdict_borrows_its_lists_from_the_cached_key() {
    let permissions: Vec<Box<str>> = vec!["documents.read".into()];
    let limits = [VerifiedLimit {
        id: "".into(),
        name: "spot".into(),
        limit: 0,
        duration: 1000,
        reset: 9,
        remaining: 0,
        exceeded: true,
        auto_apply: false,
        retry_after_ms: None,
        degraded: false,
    }];
    let reply = VerifyKeyReply {
        permissions: Cow::Borrowed(permissions.as_slice()),
        ratelimits: Cow::Borrowed(limits.as_slice()),
        credits: Some(0),
        ..VerifyKeyReply::bare(Code::RateLimited)
    };
    let value = serde_json::to_value(&reply).expect("serializes");
    assert_eq!(
        value,
        json!({"valid": false, "code": "RATE_LIMITED", "credits": 0, "permissions": ["documents.read"],
            "ratelimits": [{"id": "", "name": "spot", "limit": 0, "duration": 1000, "reset": 9, "remaining": 0,
                "exceeded": true, "autoApply": false}]})
    );
    assert_eq!(VerifyKeyReply::SHAPE.faults(&value), []);
}

#[test]
fn a_row_of_root_keys_carries_its_nulls() {
    described(
        &RootKey {
            key_id: "key_1".into(),
            name: None,
            start: "tk_ab".into(),
            end: "yz".into(),
            enabled: true,
            created_at: 1,
            last_used_at: 0,
            expires: None,
            permissions: Cow::default(),
        },
        &json!({"keyId": "key_1", "name": null, "start": "tk_ab", "end": "yz", "enabled": true, "createdAt": 1,
            "lastUsedAt": 0, "expires": null, "permissions": []}),
    );
}

#[test]
fn lists_that_an_answer_is_about_are_there_even_when_empty() {
    described(
        &MigrateKeysReply { migrated: vec![], failed: vec![], reasons: None },
        &json!({"migrated": [], "failed": []}),
    );
    described(
        &Project {
            api_id: "api_1".into(),
            name: "Payments".into(),
            slug: "payments".into(),
            delete_protection: false,
            created_at: 1,
            allowed_referers: Cow::default(),
            allowed_sources: Cow::default(),
            default_limits: vec![],
        },
        &json!({"apiId": "api_1", "name": "Payments", "slug": "payments", "deleteProtection": false, "createdAt": 1}),
    );
}

#[test]
fn an_answer_without_data_is_meta_alone() {
    let done = serde_json::to_value(Done::new("req_1")).expect("serializes");
    assert_eq!(done, json!({"meta": {"requestId": "req_1"}}));
}

#[test]
fn a_new_key_is_sent_but_never_shown() {
    let reply = KeyReply { key_id: "key_1".into(), key: KeyText::new("prod_secret") };
    described(&reply, &json!({"keyId": "key_1", "key": "prod_secret"}));
    assert!(!format!("{reply:?}").contains("prod_secret"));
}
