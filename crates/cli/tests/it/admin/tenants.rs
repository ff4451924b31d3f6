//! Tenants: made by the operator alone, blind to each other, switched off and bounded at once.

use serde_json::{Value, json};

use super::{assert_pages, new_api, new_key, refusal, text, verify};
use crate::world::{Client, World, keys};

fn new_tenant(world: &World, name: &str) -> (String, Client) {
    let made = world.client().data("tenants.create", &json!({"name": name}));
    assert_eq!(keys(&made), ["rootKey", "slug", "tenantId"]);
    let client = Client::new(world.server.url(), text(&made["rootKey"]));
    (text(&made["tenantId"]).to_owned(), client)
}

#[test]
fn only_the_operators_key_manages_tenants() {
    let world = World::new();
    let (id, mut own) = new_tenant(&world, "Acme");
    let sibling = world.client().data("rootKeys.createKey", &json!({"permissions": ["*"]}));
    let mut sibling = Client::new(world.server.url(), text(&sibling["key"]));
    for client in [&mut own, &mut sibling] {
        for (method, body) in [
            ("tenants.create", json!({"name": "Other"})),
            ("tenants.list", json!({})),
            ("tenants.update", json!({"tenantId": id, "enabled": false})),
        ] {
            let refused = refusal(client, method, &body);
            assert_eq!(refused, (403, "insufficient_permissions".to_owned()), "{method}");
        }
    }
    let rows = world.client().data("tenants.list", &json!({}));
    let row = rows.as_array().unwrap().iter().find(|row| row["tenantId"] == json!(id)).unwrap();
    assert_eq!(
        (&row["name"], &row["slug"], &row["enabled"]),
        (&json!("Acme"), &json!("acme"), &json!(true))
    );
    let missing = json!({"tenantId": "ws_nobody", "enabled": true});
    let missing = refusal(&mut world.client(), "tenants.update", &missing);
    assert_eq!(missing, (404, "workspace_not_found".to_owned()));
}

#[test]
fn a_tenant_sees_and_changes_nothing_of_another() {
    let world = World::new();
    let mut owner = world.client();
    let (_, mut stranger) = new_tenant(&world, "Acme");
    let api = new_api(&mut owner);
    let key = new_key(&mut owner, &api, json!({"externalId": "user_7", "permissions": ["read"]}));
    owner.data("permissions.createRole", &json!({"name": "editor"}));
    let root = owner.data("rootKeys.createKey", &json!({"permissions": []}))["keyId"].clone();
    assert_eq!(verify(&mut stranger, &key), json!({"valid": false, "code": "NOT_FOUND"}));
    for (method, body) in [
        ("projects.get", json!({"project": api})),
        ("projects.get", json!({"project": "payments"})),
        ("projects.get", json!({"project": "default/payments"})),
        ("projects.update", json!({"apiId": api, "name": "Mine"})),
        ("projects.delete", json!({"apiId": api})),
        ("identities.getIdentity", json!({"identity": "user_7"})),
        ("identities.updateIdentity", json!({"identity": "user_7", "meta": {}})),
        ("permissions.getPermission", json!({"permission": "read"})),
        ("permissions.deletePermission", json!({"permission": "read"})),
        ("permissions.getRole", json!({"role": "editor"})),
        ("permissions.deleteRole", json!({"role": "editor"})),
        ("rootKeys.deleteKey", json!({"keyId": root})),
        ("rootKeys.rerollKey", json!({"keyId": root, "expiration": 0})),
    ] {
        assert_eq!(refusal(&mut stranger, method, &body).0, 404, "{method}");
    }
    for method in [
        "projects.list",
        "identities.listIdentities",
        "permissions.listPermissions",
        "permissions.listRoles",
    ] {
        assert_eq!(stranger.data(method, &json!({})), json!([]), "{method}");
    }
    // The same names are free for everybody.
    stranger.data("projects.create", &json!({"name": "payments", "slug": "payments"}));
    stranger.data("identities.createIdentity", &json!({"externalId": "user_7"}));
    stranger.data("permissions.createRole", &json!({"name": "editor"}));
    assert_eq!(verify(&mut owner, &key)["code"], "VALID");
}

#[test]
fn a_tenant_that_is_switched_off_is_refused_at_once_and_back_when_it_is_on() {
    let world = World::new();
    let (id, mut tenant) = new_tenant(&world, "Acme");
    let api = new_api(&mut tenant);
    let key = new_key(&mut tenant, &api, json!({}));
    let switch = |on: bool| {
        world.client().data("tenants.update", &json!({"tenantId": id, "enabled": on}));
    };
    switch(false);
    for (method, body) in [
        ("keys.verifyKey", json!({"key": key})),
        ("projects.list", json!({})),
        ("projects.create", json!({"name": "Other"})),
    ] {
        let refused = refusal(&mut tenant, method, &body);
        assert_eq!(refused, (403, "workspace_disabled".to_owned()), "{method}");
    }
    switch(true);
    assert_eq!(verify(&mut tenant, &key)["code"], "VALID");
}

#[test]
fn the_operators_own_tenant_cannot_be_switched_off() {
    let world = World::new();
    let mut client = world.client();
    let rows = client.data("tenants.list", &json!({}));
    let body = json!({"tenantId": rows[0]["tenantId"], "enabled": false});
    assert_eq!(
        refusal(&mut client, "tenants.update", &body),
        (412, "precondition_failed".to_owned())
    );
}

#[test]
fn over_its_calls_of_a_minute_a_tenant_gets_429_with_when_to_come_back() {
    let world = World::new();
    let (id, mut tenant) = new_tenant(&world, "Acme");
    let bound = |rate: Value| {
        let body = json!({"tenantId": id, "requestsPerMinute": rate});
        world.client().data("tenants.update", &body);
    };
    assert_eq!(tenant.post("projects.list", &json!({})).response.header("ratelimit-limit"), None);
    bound(json!(3));
    for left in ["2", "1", "0"] {
        let answer = tenant.post("projects.list", &json!({}));
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.response.header("ratelimit-limit"), Some("3"));
        assert_eq!(answer.response.header("ratelimit-remaining"), Some(left));
    }
    for method in ["projects.list", "projects.create", "identities.deleteIdentity"] {
        let body = if method == "projects.create" { json!({"name": "Other"}) } else { json!({}) };
        let body =
            if method == "identities.deleteIdentity" { json!({"identity": "a"}) } else { body };
        let answer = tenant.post(method, &body);
        assert_eq!((answer.status(), answer.code()), (429, "workspace_rate_limited"), "{method}");
        assert_eq!(answer.response.header("content-type"), Some("application/problem+json"));
        for header in ["retry-after", "ratelimit-reset"] {
            let seconds: u64 = answer.response.header(header).unwrap().parse().unwrap();
            assert!((1..=120).contains(&seconds), "{header}: {seconds}");
        }
    }
    bound(Value::Null);
    assert_eq!(tenant.post("projects.list", &json!({})).status(), 200);
}

#[test]
fn pages_of_tenants_hold_every_tenant_once() {
    let world = World::new();
    assert_pages(&mut world.client(), "tenants.list", "tenantId", |client, at| {
        let made = client.data("tenants.create", &json!({"name": format!("tenant {at}")}));
        text(&made["tenantId"]).to_owned()
    });
}
