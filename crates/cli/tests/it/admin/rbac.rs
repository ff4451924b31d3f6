//! Permissions and roles: their life, and that every change of either reaches every key that has it.

use serde_json::{Value, json};

use super::{assert_pages, code_for, new_api, new_key, refusal, text};
use crate::world::{Client, World, keys};

fn slugs(permissions: &Value) -> Vec<&str> {
    permissions.as_array().expect("permissions").iter().map(|one| text(&one["slug"])).collect()
}

fn new_role(client: &mut Client, name: &str, permissions: &[&str]) -> String {
    let body = json!({"name": name, "permissions": permissions});
    text(&client.data("permissions.createRole", &body)["roleId"]).to_owned()
}

#[test]
fn a_permission_is_made_found_by_both_names_changed_and_deleted() {
    let world = World::new();
    let mut client = world.client();
    let body = json!({"name": "Read", "slug": "documents.read", "description": "may look"});
    let made = client.data("permissions.createPermission", &body);
    assert_eq!(keys(&made), ["permissionId"]);
    let id = made["permissionId"].clone();
    let found = client.data("permissions.getPermission", &json!({"permission": "documents.read"}));
    assert_eq!(
        found,
        json!({"id": id, "name": "Read", "slug": "documents.read", "description": "may look"})
    );
    assert_eq!(client.data("permissions.getPermission", &json!({"permission": id})), found);
    let change = json!({"permission": id, "slug": "documents.look", "description": null});
    let changed = client.data("permissions.updatePermission", &change);
    let found = client.data("permissions.getPermission", &json!({"permission": id}));
    assert_eq!(changed, found);
    assert_eq!(found, json!({"id": id, "name": "Read", "slug": "documents.look"}));
    assert_eq!(client.data("permissions.deletePermission", &json!({"permission": id})), json!({}));
    for method in ["getPermission", "updatePermission", "deletePermission"] {
        let gone =
            refusal(&mut client, &format!("permissions.{method}"), &json!({"permission": id}));
        assert_eq!(gone, (404, "permission_not_found".to_owned()), "{method}");
    }
}

#[test]
fn a_role_is_made_found_by_both_names_changed_and_deleted() {
    let world = World::new();
    let mut client = world.client();
    let id = new_role(&mut client, "editor", &["documents.write", "documents.read"]);
    let found = client.data("permissions.getRole", &json!({"role": "editor"}));
    assert_eq!(keys(&found), ["id", "name", "permissions"]);
    assert_eq!(slugs(&found["permissions"]), ["documents.read", "documents.write"]);
    assert_eq!(client.data("permissions.getRole", &json!({"role": id})), found);
    let change = json!({"role": id, "name": "author", "description": "writes"});
    assert_eq!(client.data("permissions.updateRole", &change)["name"], "author");
    let set = json!({"roleId": id, "permissions": ["documents.read"]});
    assert_eq!(slugs(&client.data("permissions.setRolePermissions", &set)), ["documents.read"]);
    let set = json!({"role": "author", "permissions": ["documents.sign"]});
    assert_eq!(slugs(&client.data("permissions.setRolePermissions", &set)), ["documents.sign"]);
    let found = client.data("permissions.getRole", &json!({"role": "author"}));
    assert_eq!(
        (&found["description"], slugs(&found["permissions"])),
        (&json!("writes"), vec!["documents.sign"])
    );
    assert_eq!(client.data("permissions.deleteRole", &json!({"role": "author"})), json!({}));
    for (method, body) in [
        ("permissions.getRole", json!({"role": id})),
        ("permissions.updateRole", json!({"role": id})),
        ("permissions.deleteRole", json!({"role": id})),
        ("permissions.setRolePermissions", json!({"role": id, "permissions": []})),
    ] {
        assert_eq!(
            refusal(&mut client, method, &body),
            (404, "role_not_found".to_owned()),
            "{method}"
        );
    }
}

#[test]
fn names_that_are_taken_are_conflicts() {
    let world = World::new();
    let mut client = world.client();
    let (one, two) = (json!({"name": "a", "slug": "one"}), json!({"name": "a", "slug": "two"}));
    client.data("permissions.createPermission", &one);
    client.data("permissions.createPermission", &two);
    let taken = (409, "permission_already_exists".to_owned());
    assert_eq!(refusal(&mut client, "permissions.createPermission", &one), taken);
    let renamed = json!({"permission": "two", "slug": "one"});
    assert_eq!(refusal(&mut client, "permissions.updatePermission", &renamed), taken);
    new_role(&mut client, "editor", &[]);
    new_role(&mut client, "author", &[]);
    let taken = (409, "role_already_exists".to_owned());
    assert_eq!(refusal(&mut client, "permissions.createRole", &json!({"name": "editor"})), taken);
    let renamed = json!({"role": "author", "name": "editor"});
    assert_eq!(refusal(&mut client, "permissions.updateRole", &renamed), taken);
}

#[test]
fn every_change_of_a_permission_or_role_reaches_the_next_verification() {
    let world = World::new();
    let mut client = world.client();
    let api = new_api(&mut client);
    new_role(&mut client, "editor", &["documents.write"]);
    let terms = json!({"roles": ["editor"], "permissions": ["documents.read"]});
    let key = new_key(&mut client, &api, terms);
    let (valid, refused) = ("VALID", "INSUFFICIENT_PERMISSIONS");
    assert_eq!(code_for(&mut client, &key, "documents.read AND documents.write"), valid);

    let renamed = json!({"permission": "documents.read", "slug": "documents.look"});
    client.data("permissions.updatePermission", &renamed);
    assert_eq!(code_for(&mut client, &key, "documents.read"), refused);
    assert_eq!(code_for(&mut client, &key, "documents.look"), valid);

    let set = json!({"role": "editor", "permissions": ["documents.sign"]});
    client.data("permissions.setRolePermissions", &set);
    assert_eq!(code_for(&mut client, &key, "documents.write"), refused);
    assert_eq!(code_for(&mut client, &key, "documents.sign"), valid);

    client.data("permissions.updateRole", &json!({"role": "editor", "name": "signer"}));
    let verified = client.data("keys.verifyKey", &json!({"key": key}));
    assert_eq!(verified["roles"], json!(["signer"]));

    client.data("permissions.deleteRole", &json!({"role": "signer"}));
    assert_eq!(code_for(&mut client, &key, "documents.sign"), refused);
    client.data("permissions.deletePermission", &json!({"permission": "documents.look"}));
    assert_eq!(code_for(&mut client, &key, "documents.look"), refused);
}

#[test]
fn a_role_brings_new_permissions_into_being_only_for_those_who_may_make_them() {
    let world = World::new();
    let mut client = world.client();
    client.data("permissions.createPermission", &json!({"name": "known", "slug": "known"}));
    new_role(&mut client, "editor", &[]);
    let may = ["create_role", "add_permission_to_role", "remove_permission_from_role"];
    let permissions = may.map(|action| format!("rbac.*.{action}"));
    let made = client.data("rootKeys.createKey", &json!({"permissions": permissions}));
    let mut narrow = Client::new(world.server.url(), text(&made["key"]));
    let refused = (403, "insufficient_permissions".to_owned());
    let set = |slug: &str| json!({"role": "editor", "permissions": [slug]});
    let new = |slug: &str| json!({"name": "author", "permissions": [slug]});
    assert_eq!(refusal(&mut narrow, "permissions.setRolePermissions", &set("unknown")), refused);
    assert_eq!(refusal(&mut narrow, "permissions.createRole", &new("unknown")), refused);
    assert_eq!(slugs(&narrow.data("permissions.setRolePermissions", &set("known"))), ["known"]);
    narrow.data("permissions.createRole", &new("known"));
}

#[test]
fn pages_of_permissions_and_roles_hold_every_one_once() {
    let world = World::new();
    let mut client = world.client();
    assert_pages(&mut client, "permissions.listPermissions", "slug", |client, at| {
        let slug = format!("slug.{at}");
        client.data("permissions.createPermission", &json!({"name": "same", "slug": slug}));
        slug
    });
    assert_pages(&mut client, "permissions.listRoles", "name", |client, at| {
        let name = format!("role {at}");
        new_role(client, &name, &[]);
        name
    });
    let found = client.data("permissions.listRoles", &json!({"search": "ROLE 11"}));
    assert_eq!(found.as_array().unwrap().len(), 1);
}
