//! Limits of the key, of its identity and of the request are one bundle, together with the credits.

use serde_json::{Value, json};

use super::{api, create, get, verify};
use crate::world::{LONG_MS, World};

fn stored(name: &str, limit: u64) -> Value {
    json!({"name": name, "limit": limit, "duration": LONG_MS, "autoApply": true})
}

/// Name and remaining of every limit, by name.
fn left(verified: &Value) -> Vec<(&str, u64)> {
    let mut left: Vec<_> = verified["ratelimits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["remaining"].as_u64().unwrap()))
        .collect();
    left.sort_unstable();
    left
}

#[test]
fn key_identity_and_request_are_counted_together_or_not_at_all() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let owner =
        json!({"externalId": "ann", "ratelimits": [stored("shared", 5), stored("both", 100)]});
    client.data("identities.createIdentity", &owner);
    let terms = json!({"externalId": "ann", "credits": {"remaining": 10},
        "ratelimits": [stored("own", 9), stored("both", 8)]});
    let (key, sibling) =
        (create(&mut client, &api, terms.clone()), create(&mut client, &api, terms));
    let asked =
        json!({"ratelimits": [{"name": "burst", "limit": 3, "duration": LONG_MS, "cost": 2}]});
    let first = verify(&mut client, &key.text, asked.clone());
    assert_eq!(first["code"], "VALID");
    assert_eq!(left(&first), [("both", 7), ("burst", 1), ("own", 8), ("shared", 4)]);
    assert_eq!(first["credits"], 9);

    let denied = verify(&mut client, &key.text, asked);
    assert_eq!(denied["code"], "RATE_LIMITED");
    assert_eq!(left(&denied), [("both", 7), ("burst", 1), ("own", 8), ("shared", 4)]);
    let exceeded: Vec<_> = denied["ratelimits"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["exceeded"] == true)
        .map(|one| &one["name"])
        .collect();
    assert_eq!(exceeded, [&json!("burst")]);
    assert_eq!(get(&mut client, &key.id)["credits"]["remaining"], 9, "a denial spends no credit");

    let poor = verify(&mut client, &key.text, json!({"credits": {"cost": 10}}));
    assert_eq!(poor["code"], "USAGE_EXCEEDED");
    let next = verify(&mut client, &key.text, json!({}));
    assert_eq!(left(&next), [("both", 6), ("own", 7), ("shared", 3)], "no credit, no count");
    let other = verify(&mut client, &sibling.text, json!({}));
    assert_eq!(left(&other), [("both", 7), ("own", 8), ("shared", 2)], "the identity's is shared");
}

#[test]
fn updated_limits_count_with_the_next_verification_and_keep_their_ids() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let key =
        create(&mut client, &api, json!({"ratelimits": [stored("own", 1), stored("old", 9)]}));
    assert_eq!(verify(&mut client, &key.text, json!({}))["code"], "VALID");
    assert_eq!(verify(&mut client, &key.text, json!({}))["code"], "RATE_LIMITED");
    let ids = |shown: &Value| -> Vec<(String, Value)> {
        let limits = shown["ratelimits"].as_array().unwrap().iter();
        limits.map(|one| (one["name"].as_str().unwrap().to_owned(), one["id"].clone())).collect()
    };
    let before = ids(&get(&mut client, &key.id));
    let bucket = json!({"name": "new", "limit": 4, "duration": 60_000, "algorithm": "token_bucket",
        "burst": 8, "consistency": "exact", "onOutage": "deny", "autoApply": false});
    let update = json!({"keyId": key.id, "ratelimits": [stored("own", 3), bucket]});
    client.data("keys.updateKey", &update);
    let shown = get(&mut client, &key.id);
    let after = ids(&shown);
    assert_eq!(after.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["new", "own"]);
    let own = |ids: &[(String, Value)]| ids.iter().find(|(name, _)| name == "own").cloned();
    assert_eq!(own(&after), own(&before));
    let mut new = shown["ratelimits"][0].clone();
    new.as_object_mut().unwrap().remove("id");
    assert_eq!(new, bucket);
    assert_eq!(verify(&mut client, &key.text, json!({}))["code"], "VALID");
    client.data("keys.updateKey", &json!({"keyId": key.id, "ratelimits": null}));
    let free = verify(&mut client, &key.text, json!({}));
    assert!(free["code"] == "VALID" && free.get("ratelimits").is_none(), "{free}");
}
