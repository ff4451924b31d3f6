//! Projects: their life, their hosts and limits in verifications, and protection against deletion.

use serde_json::json;

use super::{assert_pages, new_key, refusal, text, verify};
use crate::world::{World, keys};

#[test]
fn a_project_is_made_found_by_every_name_changed_and_deleted() {
    let world = World::new();
    let mut client = world.client();
    let made = client.data("projects.create", &json!({"name": "Payments EU"}));
    assert_eq!(keys(&made), ["apiId", "slug"]);
    assert_eq!(made["slug"], "payments-eu");
    let id = text(&made["apiId"]);
    for name in [id, "payments-eu", "default/payments-eu"] {
        let found = client.data("projects.get", &json!({"project": name}));
        assert_eq!(
            (&found["apiId"], &found["name"], &found["deleteProtection"]),
            (&json!(id), &json!("Payments EU"), &json!(false)),
            "{name}"
        );
        assert_eq!(
            found["defaultLimits"],
            json!([
                {"name": "default_minute", "limit": 60, "duration": 60_000},
                {"name": "default_day", "limit": 10_000, "duration": 86_400_000},
            ])
        );
        assert_eq!(found.get("allowedReferers"), None, "empty lists are left out");
    }
    let change = json!({
        "apiId": id, "name": "Payments", "slug": "pay", "allowedReferers": ["*.example.com"],
        "allowedSources": ["shop.example.org"], "defaultLimits": [],
    });
    assert_eq!(client.data("projects.update", &change), json!({}));
    let found = client.data("projects.get", &json!({"project": "pay"}));
    assert_eq!(found["name"], "Payments");
    assert_eq!(found["allowedReferers"], json!(["*.example.com"]));
    assert_eq!(found["allowedSources"], json!(["shop.example.org"]));
    assert_eq!(found.get("defaultLimits"), None);
    let gone = (404, "api_not_found".to_owned());
    assert_eq!(refusal(&mut client, "projects.get", &json!({"project": "payments-eu"})), gone);

    assert_eq!(client.data("projects.delete", &json!({"apiId": id})), json!({}));
    for (method, body) in [
        ("projects.get", json!({"project": id})),
        ("projects.update", json!({"apiId": id, "name": "Other"})),
        ("projects.delete", json!({"apiId": id})),
    ] {
        assert_eq!(refusal(&mut client, method, &body), gone, "{method}");
    }
}

#[test]
fn a_slug_that_is_taken_is_a_conflict_and_one_from_a_name_makes_way() {
    let world = World::new();
    let mut client = world.client();
    client.data("projects.create", &json!({"name": "Payments"}));
    let second = client.data("projects.create", &json!({"name": "Payments"}));
    assert_ne!(second["slug"], "payments");
    let taken = (409, "already_exists".to_owned());
    let asked = json!({"name": "Other", "slug": "payments"});
    assert_eq!(refusal(&mut client, "projects.create", &asked), taken);
    let said = client.post("projects.create", &asked).json["error"]["detail"].clone();
    assert_eq!(said, "There is already a project with this slug.");
    let renamed = json!({"apiId": second["apiId"], "slug": "payments"});
    assert_eq!(refusal(&mut client, "projects.update", &renamed), taken);
}

#[test]
fn a_protected_project_is_deleted_only_when_its_protection_is_off() {
    let world = World::new();
    let mut client = world.client();
    let made =
        client.data("projects.create", &json!({"name": "Payments", "deleteProtection": true}));
    let named = json!({"apiId": made["apiId"]});
    let protected = (412, "protected_resource".to_owned());
    assert_eq!(refusal(&mut client, "projects.delete", &named), protected);
    assert_eq!(refusal(&mut client, "apis.deleteApi", &named), protected);
    let off = json!({"apiId": made["apiId"], "deleteProtection": false});
    client.data("projects.update", &off);
    assert_eq!(client.data("projects.delete", &named), json!({}));
}

#[test]
fn what_a_project_allows_counts_from_the_next_verification_on() {
    let world = World::new();
    let mut client = world.client();
    let made = client.data("projects.create", &json!({"name": "Payments"}));
    let id = text(&made["apiId"]);
    let key = new_key(&mut client, id, json!({}));
    let verified = verify(&mut client, &key);
    assert_eq!(verified["code"], "VALID");
    let names: Vec<_> =
        verified["ratelimits"].as_array().unwrap().iter().map(|one| text(&one["name"])).collect();
    assert_eq!(names.len(), 2, "{verified}");

    let one = json!([{"name": "tight", "limit": 1, "duration": 2_592_000_000_u64}]);
    client.data("projects.update", &json!({"apiId": id, "defaultLimits": one}));
    assert_eq!(verify(&mut client, &key)["code"], "VALID");
    assert_eq!(verify(&mut client, &key)["code"], "RATE_LIMITED");

    let change = json!({"apiId": id, "defaultLimits": [], "allowedReferers": ["example.com"]});
    client.data("projects.update", &change);
    assert_eq!(verify(&mut client, &key)["code"], "FORBIDDEN");
    let from = json!({"key": key, "referer": "https://example.com/shop"});
    assert_eq!(client.data("keys.verifyKey", &from)["code"], "VALID");

    client.data("projects.delete", &json!({"apiId": id}));
    assert_eq!(client.data("keys.verifyKey", &from), json!({"valid": false, "code": "NOT_FOUND"}));
}

#[test]
fn pages_of_projects_hold_every_project_once() {
    let world = World::new();
    assert_pages(&mut world.client(), "projects.list", "apiId", |client, at| {
        let made = client.data("projects.create", &json!({"name": format!("project {at}")}));
        text(&made["apiId"]).to_owned()
    });
}
