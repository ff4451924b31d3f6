//! Root keys: their life, and that none makes, widens or takes over one that may do more than it.

use serde_json::{Value, json};

use super::{assert_pages, refusal, text, walked};
use crate::world::{Client, World, keys};

const MANAGES: [&str; 4] = [
    "rootKeys.*.createKey",
    "rootKeys.*.updateKey",
    "rootKeys.*.rerollKey",
    "identity.*.read_identity",
];

fn new_root_key(client: &mut Client, permissions: &[&str]) -> (String, String) {
    let made = client.data("rootKeys.createKey", &json!({"permissions": permissions}));
    assert_eq!(keys(&made), ["key", "keyId"]);
    (text(&made["keyId"]).to_owned(), text(&made["key"]).to_owned())
}

fn row(client: &mut Client, id: &str) -> Option<Value> {
    let rows = client.data("rootKeys.listKeys", &json!({}));
    rows.as_array().expect("rows").iter().find(|row| row["keyId"] == id).cloned()
}

fn listing(world: &World, key: &str) -> u16 {
    Client::new(world.server.url(), key).post("identities.listIdentities", &json!({})).status()
}

#[test]
fn when_a_root_key_was_last_used_is_known_after_a_restart() {
    let mut world = World::new();
    let mut client = world.client();
    let (used, key) = new_root_key(&mut client, &["identity.*.read_identity"]);
    let (unused, _) = new_root_key(&mut client, &["identity.*.read_identity"]);
    assert_eq!(listing(&world, &key), 200);
    world.restart();
    let mut client = world.client();
    let used = row(&mut client, &used).expect("a row");
    assert!(used["lastUsedAt"].as_u64() >= used["createdAt"].as_u64(), "{used}");
    assert_eq!(row(&mut client, &unused).expect("a row")["lastUsedAt"], 0);
}

#[test]
fn a_root_key_is_made_listed_changed_and_deleted_and_each_is_in_force_at_once() {
    let world = World::new();
    let mut client = world.client();
    let (id, key) = new_root_key(&mut client, &["identity.*.read_identity"]);
    assert_eq!(listing(&world, &key), 200);
    let shown = row(&mut client, &id).expect("a row");
    assert_eq!(
        keys(&shown),
        [
            "createdAt",
            "enabled",
            "end",
            "expires",
            "keyId",
            "lastUsedAt",
            "name",
            "permissions",
            "start"
        ]
    );
    assert_eq!((&shown["name"], &shown["expires"]), (&Value::Null, &Value::Null));
    assert!(key.starts_with(text(&shown["start"])) && key.ends_with(text(&shown["end"])));
    assert!(text(&shown["start"]).len() + text(&shown["end"]).len() < key.len() / 2);

    let change = json!({"keyId": id, "name": "reader", "enabled": false});
    assert_eq!(client.data("rootKeys.updateKey", &change), json!({}));
    assert_eq!(listing(&world, &key), 403);
    client.data("rootKeys.updateKey", &json!({"keyId": id, "enabled": true, "permissions": []}));
    assert_eq!(listing(&world, &key), 403);
    client.data(
        "rootKeys.updateKey",
        &json!({"keyId": id, "permissions": ["identity.*.read_identity"]}),
    );
    assert_eq!(listing(&world, &key), 200);
    assert_eq!(row(&mut client, &id).expect("a row")["name"], "reader");
    assert_eq!(client.data("rootKeys.deleteKey", &json!({"keyId": id})), json!({}));
    assert_eq!(listing(&world, &key), 401);
    for (method, body) in [
        ("rootKeys.updateKey", json!({"keyId": id})),
        ("rootKeys.deleteKey", json!({"keyId": id})),
        ("rootKeys.rerollKey", json!({"keyId": id, "expiration": 0})),
    ] {
        assert_eq!(
            refusal(&mut client, method, &body),
            (404, "key_not_found".to_owned()),
            "{method}"
        );
    }
}

#[test]
fn a_rerolled_root_key_has_the_same_permissions_and_the_old_one_ends_when_told() {
    let world = World::new();
    let mut client = world.client();
    let (id, old) = new_root_key(&mut client, &["identity.*.read_identity"]);
    let body = json!({"keyId": id, "expiration": 600_000});
    let with_grace = client.data("rootKeys.rerollKey", &body);
    assert_eq!((listing(&world, &old), listing(&world, text(&with_grace["key"]))), (200, 200));
    let kept = client.data("rootKeys.rerollKey", &json!({"keyId": id, "expiration": null}));
    assert_eq!((listing(&world, &old), listing(&world, text(&kept["key"]))), (200, 200));
    let body = json!({"keyId": id, "expiration": 0});
    let at_once = client.data("rootKeys.rerollKey", &body);
    assert_eq!((listing(&world, &old), listing(&world, text(&at_once["key"]))), (401, 200));
}

#[test]
fn no_root_key_makes_widens_or_takes_over_one_that_may_do_more() {
    let world = World::new();
    let mut client = world.client();
    let (wide_id, _) = new_root_key(&mut client, &["*"]);
    let (_, key) = new_root_key(&mut client, &MANAGES);
    let mut narrow = Client::new(world.server.url(), &key);
    let beyond = (403, "insufficient_permissions".to_owned());
    for permissions in [
        &["*"][..],
        &["identity.*.delete_identity"],
        &["identity.*.read_identity", "api.*.verify_key"],
    ] {
        let body = json!({"permissions": permissions});
        assert_eq!(refusal(&mut narrow, "rootKeys.createKey", &body), beyond, "{permissions:?}");
    }
    let (child_id, child) = new_root_key(&mut narrow, &["identity.id_1.read_identity"]);
    let widened = json!({"keyId": child_id, "permissions": ["*"]});
    assert_eq!(refusal(&mut narrow, "rootKeys.updateKey", &widened), beyond);
    let taken = json!({"keyId": wide_id, "expiration": 0});
    assert_eq!(refusal(&mut narrow, "rootKeys.rerollKey", &taken), beyond);
    let mut child = Client::new(world.server.url(), &child);
    let body = json!({"permissions": []});
    assert_eq!(refusal(&mut child, "rootKeys.createKey", &body), beyond);
}

#[test]
fn no_root_key_makes_one_that_outlives_it() {
    let world = World::new();
    let mut client = world.client();
    let ends = 4_000_000_000_000_u64;
    let made = client.data("rootKeys.createKey", &json!({"permissions": ["*"], "expires": ends}));
    let mut mortal = Client::new(world.server.url(), text(&made["key"]));
    for body in [json!({"permissions": []}), json!({"permissions": [], "expires": ends + 1})] {
        let refused = refusal(&mut mortal, "rootKeys.createKey", &body);
        assert_eq!(refused, (403, "insufficient_permissions".to_owned()));
    }
    mortal.data("rootKeys.createKey", &json!({"permissions": [], "expires": ends}));
}

#[test]
fn the_operators_own_key_is_listed_and_cannot_be_changed_by_any_call() {
    let world = World::new();
    let mut client = world.client();
    let rows = client.data("rootKeys.listKeys", &json!({}));
    let id = rows[0]["keyId"].clone();
    for (method, body) in [
        ("rootKeys.updateKey", json!({"keyId": id, "enabled": false})),
        ("rootKeys.deleteKey", json!({"keyId": id})),
        ("rootKeys.rerollKey", json!({"keyId": id, "expiration": 0})),
    ] {
        let refused = refusal(&mut client, method, &body);
        assert_eq!(refused, (412, "precondition_failed".to_owned()), "{method}");
    }
    assert_eq!(client.post("rootKeys.listKeys", &json!({})).status(), 200);
}

#[test]
fn pages_of_root_keys_hold_every_one_once() {
    let world = World::new();
    assert_pages(&mut world.client(), "rootKeys.listKeys", "keyId", |client, _| {
        new_root_key(client, &[]).0
    });
}

#[test]
fn no_root_key_widens_one_that_outlives_it_and_a_disabled_one_stays_disabled_when_rerolled() {
    let world = World::new();
    let mut client = world.client();
    let (lasting, _) = new_root_key(&mut client, &["identity.*.read_identity"]);
    // In 2096, which is sooner than never.
    let soon = json!({"permissions": ["*"], "expires": 4_000_000_000_000_u64});
    let short = client.data("rootKeys.createKey", &soon);
    let mut short = Client::new(world.server.url(), text(&short["key"]));
    let widen = json!({"keyId": lasting, "permissions": ["*"]});
    assert_eq!(short.post("rootKeys.updateKey", &widen).status(), 403);
    client.data("rootKeys.updateKey", &json!({"keyId": lasting, "enabled": false}));
    let rerolled = client.data("rootKeys.rerollKey", &json!({"keyId": lasting, "expiration": 0}));
    assert_eq!(listing(&world, text(&rerolled["key"])), 403);
}

#[test]
fn a_root_key_cannot_be_given_a_permission_that_opens_nothing_or_an_end_in_the_past() {
    let world = World::new();
    let mut client = world.client();
    let body = json!({"permissions": ["api.*.read_api", "junk", "api.*.fly"], "expires": 1});
    let refused = client.post("rootKeys.createKey", &body);
    let places = vec!["body.permissions[1]", "body.permissions[2]", "body.expires"];
    assert_eq!((refused.status(), refused.places()), (400, places));
    let (id, _) = new_root_key(&mut client, &["api.*.read_api"]);
    let refused = client.post("rootKeys.updateKey", &json!({"keyId": id, "permissions": ["junk"]}));
    assert_eq!((refused.status(), refused.places()), (400, vec!["body.permissions[0]"]));
    assert_eq!(walked(&mut client, "rootKeys.listKeys", "keyId", 100).len(), 2);
}
