//! Keys from elsewhere, by their hashes: their owners go on using the texts they have.

use serde_json::json;

use super::{api, code, create, get, verify};
use crate::world::{Client, World};

/// SHA-256 of `hello`, twice, and of `world`, as others would send them.
const HELLO_HEX: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
const HELLO_BASE64: &str = "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=";
const WORLD_BASE64: &str = "SG6kYiTRu0+2gPNPfJrZao8k7Ii+c+qOWmxlJg6cuKc=";

#[test]
fn a_foreign_key_verifies_by_its_old_text_after_its_hash_was_brought_in() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    assert_eq!(code(&mut client, "hello"), "NOT_FOUND");
    let ours = create(&mut client, &api, json!({}));
    let body = json!({"migrationId": "from the old one", "apiId": api, "keys": [
        {"hash": HELLO_HEX, "name": "h", "externalId": "ann", "permissions": ["a"], "credits": {"remaining": 3}},
        {"hash": WORLD_BASE64, "enabled": false},
    ]});
    let moved = client.data("keys.migrateKeys", &body);
    assert_eq!((&moved["failed"], moved.get("reasons")), (&json!([]), None));
    let hashes: Vec<_> =
        moved["migrated"].as_array().unwrap().iter().map(|key| &key["hash"]).collect();
    assert_eq!(hashes, [HELLO_HEX, WORLD_BASE64]);
    let verified = verify(&mut client, "hello", json!({"permissions": "a"}));
    assert_eq!((&verified["code"], &verified["name"]), (&json!("VALID"), &json!("h")));
    assert_eq!(verified["keyId"], moved["migrated"][0]["keyId"]);
    assert_eq!(verified["credits"], 2);
    assert_eq!(code(&mut client, "world"), "DISABLED");
    assert_eq!(code(&mut client, &ours.text), "VALID");
    assert_eq!(code(&mut client, "helloo"), "NOT_FOUND");
    let me = client.data("keys.whoami", &json!({"key": "hello"}));
    assert_eq!(me["identity"]["externalId"], "ann");
}

#[test]
fn a_row_that_cannot_be_taken_does_not_hold_up_the_rest() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let migrate = |keys| json!({"migrationId": "m", "apiId": api, "keys": keys});
    let first = client.data("keys.migrateKeys", &migrate(json!([
        {"hash": HELLO_HEX}, {"hash": HELLO_BASE64}, {"hash": WORLD_BASE64, "roles": ["nobody"]},
    ])));
    assert_eq!(first["migrated"][0]["hash"], HELLO_HEX);
    assert_eq!(first["migrated"].as_array().unwrap().len(), 1);
    assert_eq!(first["failed"], json!([HELLO_BASE64, WORLD_BASE64]));
    let why = |at: usize| first["reasons"][at]["reason"].as_str().unwrap().to_owned();
    assert_eq!(first["reasons"][0]["hash"], HELLO_BASE64);
    assert!(why(0).contains("already") && why(1).contains("no role `nobody`"), "{first}");
    let second = client.data(
        "keys.migrateKeys",
        &migrate(json!([
            {"hash": HELLO_BASE64}, {"hash": WORLD_BASE64},
        ])),
    );
    assert_eq!(second["failed"], json!([HELLO_BASE64]));
    assert_eq!(second["migrated"][0]["hash"], WORLD_BASE64);
    assert_eq!(
        (code(&mut client, "hello"), code(&mut client, "world")),
        ("VALID".into(), "VALID".into())
    );
}

#[test]
fn a_foreign_key_that_is_rerolled_becomes_one_of_ours() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let body =
        json!({"migrationId": "m", "apiId": api, "keys": [{"hash": HELLO_HEX, "name": "h"}]});
    let key_id = client.data("keys.migrateKeys", &body)["migrated"][0]["keyId"].clone();
    let new = client.data("keys.rerollKey", &json!({"keyId": key_id, "expiration": 0}));
    assert_eq!(code(&mut client, "hello"), "EXPIRED");
    assert_eq!(code(&mut client, new["key"].as_str().unwrap()), "VALID");
    assert_eq!(get(&mut client, new["keyId"].as_str().unwrap())["name"], "h");
}

#[test]
fn an_unknown_api_is_not_found() {
    let world = World::new();
    let body = json!({"migrationId": "m", "apiId": "api_nowhere", "keys": [{"hash": HELLO_HEX}]});
    let answer = world.client().post("keys.migrateKeys", &body);
    answer.assert_refused("an unknown api");
    assert_eq!((answer.status(), answer.code()), (404, "api_not_found"));
}

#[test]
fn tenants_that_bring_in_the_same_key_have_one_each_and_do_not_learn_of_each_other() {
    let world = World::new();
    let made = world.client().data("tenants.create", &json!({"name": "Acme"}));
    let mut theirs = Client::new(world.server.url(), made["rootKey"].as_str().unwrap());
    let mut ours = world.client();
    let bring = |client: &mut Client, name: &str| {
        let keys = json!([{"hash": HELLO_HEX, "name": name}]);
        let api = api(client);
        client.data("keys.migrateKeys", &json!({"migrationId": "m", "apiId": api, "keys": keys}))
    };
    let first = bring(&mut theirs, "theirs");
    assert_eq!(code(&mut ours, "hello"), "NOT_FOUND");
    let second = bring(&mut ours, "ours");
    assert_eq!((&first["failed"], &second["failed"]), (&json!([]), &json!([])));
    for (client, name) in [(&mut theirs, "theirs"), (&mut ours, "ours")] {
        let verified = verify(client, "hello", json!({}));
        assert_eq!((&verified["code"], &verified["name"]), (&json!("VALID"), &json!(name)));
        let me = client.data("keys.whoami", &json!({"key": "hello"}));
        assert_eq!(me["name"], name);
    }
    theirs.data("keys.revoke", &json!({"keyId": first["migrated"][0]["keyId"]}));
    assert_eq!(code(&mut theirs, "hello"), "REVOKED");
    assert_eq!(code(&mut ours, "hello"), "VALID");
}
