//! Every call says everything that is wrong with its body at once, before it looks at anything else.

use serde_json::{Value, json};

use crate::world::World;

/// A body for each call in which every field is wrong, and the fields.
fn wrong() -> Vec<(&'static str, Value, Vec<&'static str>)> {
    let long = "x".repeat(600);
    let limit = json!({"name": "x", "limit": -1, "duration": 5, "autoApply": 1});
    vec![
        (
            "keys.createKey",
            json!({"apiId": "a b", "prefix": "a-b", "name": "", "byteLength": 15, "externalId": "a b", "meta": [],
                "roles": [1], "permissions": ["a b"], "expires": -1,
                "credits": {"remaining": 1, "refill": {"interval": "monthly", "amount": 0}},
                "ratelimits": [limit], "enabled": 1, "recoverable": "no", "tier": "", "ipAllowlist": ["10.0.0.0/33"], "more": 1}),
            vec![
                "apiId",
                "prefix",
                "name",
                "byteLength",
                "externalId",
                "meta",
                "roles[0]",
                "permissions[0]",
                "expires",
                "credits.refill.amount",
                "credits.refill.refillDay",
                "ratelimits[0].name",
                "ratelimits[0].limit",
                "ratelimits[0].duration",
                "ratelimits[0].autoApply",
                "enabled",
                "recoverable",
                "tier",
                "ipAllowlist[0]",
                "more",
            ],
        ),
        ("keys.getKey", json!({"keyId": "", "decrypt": null}), vec!["keyId", "decrypt"]),
        ("keys.whoami", json!({"key": long, "x": 1}), vec!["key", "x"]),
        (
            "keys.updateKey",
            json!({"keyId": 7, "name": "", "credits": {"remaining": null, "refill": {"interval": "daily", "amount": 1}},
                "ratelimits": [{"name": "aaa", "limit": 1, "duration": 1000}, {"name": "aaa", "limit": 1, "duration": 1000}],
                "enabled": null}),
            vec!["keyId", "name", "credits.refill", "ratelimits", "enabled"],
        ),
        (
            "keys.updateCredits",
            json!({"keyId": "k", "operation": "double", "value": -1}),
            vec!["keyId", "operation", "value"],
        ),
        ("keys.updateCredits", json!({"keyId": "key_1", "operation": "increment"}), vec!["value"]),
        (
            "keys.updateCredits",
            json!({"keyId": "key_1", "operation": "decrement", "value": null}),
            vec!["value"],
        ),
        ("keys.deleteKey", json!({"permanent": "yes"}), vec!["keyId", "permanent"]),
        ("keys.revoke", json!({"keyId": [], "reason": ""}), vec!["keyId", "reason"]),
        ("keys.rerollKey", json!({"expiration": -1}), vec!["keyId", "expiration"]),
        ("keys.rerollKey", json!({"keyId": "key_1"}), vec!["expiration"]),
        ("keys.addPermissions", json!({"permissions": []}), vec!["keyId", "permissions"]),
        (
            "keys.removePermissions",
            json!({"permissions": ["a", "ä"]}),
            vec!["keyId", "permissions[1]"],
        ),
        ("keys.setPermissions", json!({"keyId": "key_1"}), vec!["permissions"]),
        ("keys.addRoles", json!({"roles": []}), vec!["keyId", "roles"]),
        ("keys.removeRoles", json!({"roles": [""]}), vec!["keyId", "roles[0]"]),
        ("keys.setRoles", json!({"roles": null}), vec!["keyId", "roles"]),
        (
            "keys.migrateKeys",
            json!({"migrationId": "", "keys": [{"hash": "abc"}, {"hash": 1, "enabled": 2}]}),
            vec!["migrationId", "apiId", "keys[0].hash", "keys[1].hash", "keys[1].enabled"],
        ),
        ("apis.createApi", json!({"name": "ab", "x": 1}), vec!["name", "x"]),
        ("apis.getApi", json!({"apiId": "é"}), vec!["apiId"]),
        ("apis.deleteApi", json!({}), vec!["apiId"]),
        (
            "apis.listKeys",
            json!({"limit": 101, "cursor": "", "externalId": "", "decrypt": 1, "revalidateKeysCache": 1}),
            vec!["apiId", "limit", "cursor", "externalId", "decrypt", "revalidateKeysCache"],
        ),
    ]
}

#[test]
fn every_wrong_field_of_every_call_is_named_at_once() {
    let world = World::new();
    let mut client = world.client();
    for (method, body, mut fields) in wrong() {
        let answer = client.post(method, &body);
        answer.assert_refused(method);
        assert_eq!(answer.status(), 400, "{method}");
        let mut places: Vec<_> = answer
            .places()
            .into_iter()
            .map(|place| place.strip_prefix("body.").unwrap_or(place))
            .collect();
        places.sort_unstable();
        fields.sort_unstable();
        assert_eq!(places, fields, "{method}: {}", answer.json);
    }
}

#[test]
fn what_is_not_there_is_not_found() {
    let world = World::new();
    let mut client = world.client();
    let key = |more: Value| super::with(json!({"keyId": "key_nowhere"}), more);
    let absent = [
        ("keys.createKey", json!({"apiId": "api_nowhere"}), "api_not_found"),
        ("apis.getApi", json!({"apiId": "api_nowhere"}), "api_not_found"),
        ("apis.deleteApi", json!({"apiId": "api_nowhere"}), "api_not_found"),
        ("apis.listKeys", json!({"apiId": "api_nowhere"}), "api_not_found"),
        ("keys.getKey", key(json!({})), "key_not_found"),
        ("keys.updateKey", key(json!({})), "key_not_found"),
        ("keys.updateCredits", key(json!({"operation": "set", "value": 1})), "key_not_found"),
        ("keys.deleteKey", key(json!({})), "key_not_found"),
        ("keys.deleteKey", key(json!({"permanent": true})), "key_not_found"),
        ("keys.revoke", key(json!({})), "key_not_found"),
        ("keys.rerollKey", key(json!({"expiration": 0})), "key_not_found"),
        ("keys.addPermissions", key(json!({"permissions": ["a"]})), "key_not_found"),
        ("keys.removePermissions", key(json!({"permissions": ["a"]})), "key_not_found"),
        ("keys.setPermissions", key(json!({"permissions": []})), "key_not_found"),
        ("keys.addRoles", key(json!({"roles": ["a"]})), "key_not_found"),
        ("keys.removeRoles", key(json!({"roles": ["a"]})), "key_not_found"),
        ("keys.setRoles", key(json!({"roles": []})), "key_not_found"),
    ];
    for (method, body, code) in absent {
        let answer = client.post(method, &body);
        answer.assert_refused(method);
        assert_eq!((answer.status(), answer.code()), (404, code), "{method}");
    }
}
