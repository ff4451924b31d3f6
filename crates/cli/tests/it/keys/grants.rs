//! Permissions and roles of a key: every change is asked for by the next verification.

use serde_json::{Value, json};

use super::{api, create, get, verify};
use crate::world::{Client, World};

fn may(client: &mut Client, key: &str, query: &str) -> bool {
    let verified = verify(client, key, json!({"permissions": query}));
    let code = verified["code"].as_str().unwrap();
    assert!(matches!(code, "VALID" | "INSUFFICIENT_PERMISSIONS"), "{verified}");
    code == "VALID"
}

/// The slugs or names of an answer.
fn named<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap()).collect()
}

#[test]
fn permissions_are_added_removed_and_set_at_once() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({"permissions": ["a.read"]}));
    assert!(may(&mut client, &key.text, "a.read") && !may(&mut client, &key.text, "a.write"));
    let change = |permissions: &[&str]| json!({"keyId": key.id, "permissions": permissions});
    let after = client.data("keys.addPermissions", &change(&["a.write", "a.read"]));
    assert_eq!(named(&after, "slug"), ["a.read", "a.write"]);
    assert!(may(&mut client, &key.text, "a.read AND a.write"));
    let after = client.data("keys.removePermissions", &change(&["a.read", "never.there"]));
    assert_eq!(named(&after, "slug"), ["a.write"]);
    assert!(!may(&mut client, &key.text, "a.read"));
    let after = client.data("keys.setPermissions", &change(&["b"]));
    assert_eq!(named(&after, "slug"), ["b"]);
    assert!(may(&mut client, &key.text, "b") && !may(&mut client, &key.text, "a.write"));
    assert_eq!(client.data("keys.setPermissions", &change(&[])), json!([]));
    assert!(get(&mut client, &key.id).get("permissions").is_none());
    client.data("keys.updateKey", &change(&["c"]));
    assert!(may(&mut client, &key.text, "c"));
}

#[test]
fn roles_are_added_removed_and_set_at_once_and_an_unknown_one_is_not_found() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    for (name, slug) in [("editor", "doc.write"), ("reader", "doc.read")] {
        client.data("permissions.createRole", &json!({"name": name, "permissions": [slug]}));
    }
    let key = create(&mut client, &api, json!({"roles": ["reader"]}));
    assert!(may(&mut client, &key.text, "doc.read") && !may(&mut client, &key.text, "doc.write"));
    let change = |roles: &[&str]| json!({"keyId": key.id, "roles": roles});
    let after = client.data("keys.addRoles", &change(&["editor"]));
    assert_eq!(named(&after, "name"), ["editor", "reader"]);
    assert_eq!(named(&after[0]["permissions"], "slug"), ["doc.write"]);
    assert!(may(&mut client, &key.text, "doc.read AND doc.write"));
    assert_eq!(get(&mut client, &key.id)["permissions"], json!(["doc.read", "doc.write"]));
    assert_eq!(named(&client.data("keys.removeRoles", &change(&["reader"])), "name"), ["editor"]);
    assert!(!may(&mut client, &key.text, "doc.read"));
    assert_eq!(named(&client.data("keys.setRoles", &change(&["reader"])), "name"), ["reader"]);
    assert!(may(&mut client, &key.text, "doc.read") && !may(&mut client, &key.text, "doc.write"));
    assert_eq!(client.data("keys.setRoles", &change(&[])), json!([]));

    let unknown = [
        ("keys.createKey", json!({"apiId": api, "roles": ["nobody"]})),
        ("keys.updateKey", change(&["nobody"])),
        ("keys.addRoles", change(&["nobody"])),
        ("keys.removeRoles", change(&["nobody"])),
        ("keys.setRoles", change(&["reader", "nobody"])),
    ];
    for (method, body) in unknown {
        let answer = client.post(method, &body);
        answer.assert_refused(method);
        assert_eq!((answer.status(), answer.code()), (404, "role_not_found"), "{method}");
    }
    assert!(!may(&mut client, &key.text, "doc.read"), "a refused change changes nothing");
}

#[test]
fn an_update_replaces_permissions_and_roles_only_for_those_who_may_set_them() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({}));
    let made = client.data(
        "rootKeys.createKey",
        &json!({"permissions": ["api.*.update_key", "api.*.read_key"]}),
    );
    let mut narrow = Client::new(world.server.url(), made["key"].as_str().expect("a key"));
    narrow.data("keys.updateKey", &json!({"keyId": key.id, "name": "renamed"}));
    for more in [json!({"permissions": ["admin"]}), json!({"roles": ["owner"]})] {
        let mut body = json!({"keyId": key.id});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("one").clone());
        assert_eq!(narrow.post("keys.updateKey", &body).status(), 403, "{body}");
    }
}
