//! A key's life: made, switched off and on, expired, revoked, deleted, replaced.

use serde_json::json;

use super::{api, code, create, get, text_of, verify};
use crate::time::eventually;
use crate::world::{World, keys};

const MINUTE_MS: u64 = 60_000;

#[test]
fn a_new_key_verifies_at_once_and_a_deleted_one_is_unknown_at_once() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({"prefix": "prod", "name": "first"}));
    assert!(key.text.starts_with("prod_") && key.id.starts_with("key_"), "{}", key.id);
    let verified = verify(&mut client, &key.text, json!({}));
    assert_eq!((&verified["valid"], &verified["code"]), (&json!(true), &json!("VALID")));
    assert_eq!((&verified["keyId"], &verified["name"]), (&json!(key.id), &json!("first")));
    assert_eq!(client.data("keys.deleteKey", &json!({"keyId": key.id})), json!({}));
    let gone = verify(&mut client, &key.text, json!({}));
    assert_eq!(gone, json!({"valid": false, "code": "NOT_FOUND"}));
    assert_eq!(client.post("keys.getKey", &json!({"keyId": key.id})).status(), 404);
    assert_eq!(client.post("keys.deleteKey", &json!({"keyId": key.id})).status(), 404);
    let for_good = json!({"keyId": key.id, "permanent": true});
    assert_eq!(client.data("keys.deleteKey", &for_good), json!({}));
    assert_eq!(client.post("keys.deleteKey", &for_good).status(), 404);
}

#[test]
fn a_key_is_switched_off_and_on_with_the_next_verification() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({"enabled": false}));
    for enabled in [false, true, false, true] {
        client.data("keys.updateKey", &json!({"keyId": key.id, "enabled": enabled}));
        assert_eq!(code(&mut client, &key.text), if enabled { "VALID" } else { "DISABLED" });
    }
}

#[test]
fn a_revoked_key_says_since_when_and_the_first_revocation_counts() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({}));
    let revoke = json!({"keyId": key.id, "reason": "leaked"});
    let revoked_at = client.data("keys.revoke", &revoke)["revokedAt"].clone();
    let verified = verify(&mut client, &key.text, json!({}));
    assert_eq!((&verified["valid"], &verified["code"]), (&json!(false), &json!("REVOKED")));
    assert_eq!(verified["revokedAt"], revoked_at);
    let again = client.data("keys.revoke", &json!({"keyId": key.id, "reason": "other"}));
    assert_eq!(again["revokedAt"], revoked_at);
    let shown = get(&mut client, &key.id);
    assert_eq!((&shown["revokedAt"], &shown["revokedReason"]), (&revoked_at, &json!("leaked")));
}

#[test]
fn a_key_expires_by_itself_and_may_be_given_more_time() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let born = create(&mut client, &api, json!({}));
    let now = get(&mut client, &born.id)["createdAt"].as_u64().unwrap();
    let key = create(&mut client, &api, json!({"expires": now + 1_500}));
    assert_eq!(code(&mut client, &key.text), "VALID");
    eventually("the key expires", || code(&mut client, &key.text) == "EXPIRED");
    client.data("keys.updateKey", &json!({"keyId": key.id, "expires": null}));
    assert_eq!(code(&mut client, &key.text), "VALID");
    client.data("keys.updateKey", &json!({"keyId": key.id, "expires": now}));
    assert_eq!(code(&mut client, &key.text), "EXPIRED");
}

#[test]
fn a_rerolled_key_hands_everything_over_and_lives_on_until_a_whole_minute() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let old = create(
        &mut client,
        &api,
        json!({"prefix": "my_app", "byteLength": 32, "name": "n", "externalId": "ann", "meta": {"a": 1},
            "permissions": ["read"], "credits": {"remaining": 10},
            "ratelimits": [{"name": "calls", "limit": 9, "duration": 60_000, "autoApply": true}]}),
    );
    verify(&mut client, &old.text, json!({}));
    let reroll = json!({"keyId": old.id, "expiration": 3_600_000});
    let new = client.data("keys.rerollKey", &reroll);
    let (new_id, new_text) = (text_of(&new["keyId"]), text_of(&new["key"]));
    assert_ne!(new_id, old.id);
    assert!(new_text.starts_with("my_app_") && new_text.len() == old.text.len());
    let (was, is) = (get(&mut client, &old.id), get(&mut client, &new_id));
    let ends = was["expires"].as_u64().unwrap();
    let earliest = is["createdAt"].as_u64().unwrap() + 3_600_000;
    assert_eq!(ends % MINUTE_MS, 0);
    assert!((earliest..earliest + MINUTE_MS).contains(&ends), "{ends} {earliest}");
    assert!(is.get("expires").is_none(), "the grace is the old key's alone: {is}");
    for same in ["name", "meta", "permissions", "identity"] {
        assert_eq!(was[same], is[same], "{same}");
    }
    assert_eq!(is["credits"]["remaining"], 9, "what was spent of the old one stays spent");
    assert_eq!(is["ratelimits"][0]["name"], "calls");
    assert_eq!(code(&mut client, &old.text), "VALID");
    assert_eq!(code(&mut client, &new_text), "VALID");

    let last = client.data("keys.rerollKey", &json!({"keyId": new_id, "expiration": 0}));
    assert_eq!(code(&mut client, &new_text), "EXPIRED");
    assert_eq!(code(&mut client, &text_of(&last["key"])), "VALID");
    let kept = client.data("keys.rerollKey", &json!({"keyId": last["keyId"], "expiration": null}));
    assert_eq!(code(&mut client, &text_of(&last["key"])), "VALID", "null leaves the old one alone");
    assert_eq!(keys(&kept), ["key", "keyId"]);
}

#[test]
fn a_deleted_api_takes_its_keys_with_it() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({}));
    assert_eq!(code(&mut client, &key.text), "VALID");
    let shown = client.data("apis.getApi", &json!({"apiId": api}));
    assert_eq!(shown, json!({"id": api, "name": "payments"}));
    assert_eq!(client.data("apis.deleteApi", &json!({"apiId": api})), json!({}));
    assert_eq!(code(&mut client, &key.text), "NOT_FOUND");
    for (method, body) in [
        ("apis.getApi", json!({"apiId": api})),
        ("apis.deleteApi", json!({"apiId": api})),
        ("apis.listKeys", json!({"apiId": api})),
        ("keys.createKey", json!({"apiId": api})),
        ("keys.getKey", json!({"keyId": key.id})),
        ("keys.whoami", json!({"key": key.text})),
        ("keys.updateKey", json!({"keyId": key.id, "enabled": true})),
    ] {
        assert_eq!(client.post(method, &body).status(), 404, "{method}");
    }
}

#[test]
fn a_revoked_key_is_not_rerolled_into_a_good_one() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({}));
    client.data("keys.revoke", &json!({"keyId": key.id}));
    let refused = client.post("keys.rerollKey", &json!({"keyId": key.id, "expiration": 0}));
    assert_eq!(refused.status(), 412, "{}", refused.json);
}
