//! Identities: their life, the limits that all their keys share, and the answers of deletion, which have a form of their own.

use serde_json::json;
use tollkeeper_testkit::Connection;

use super::{assert_pages, new_api, new_key, refusal, text, verify};
use crate::world::{LONG_MS, World, keys};

#[test]
fn an_identity_is_made_found_by_both_names_changed_and_deleted() {
    let world = World::new();
    let mut client = world.client();
    let limit = json!({"name": "calls", "limit": 5, "duration": 60_000, "autoApply": true});
    let body = json!({"externalId": "user_7", "meta": {"plan": "pro"}, "ratelimits": [limit]});
    let made = client.data("identities.createIdentity", &body);
    assert_eq!(keys(&made), ["identityId"]);
    let id = text(&made["identityId"]).to_owned();
    let first = client.data("identities.getIdentity", &json!({"identity": "user_7"}));
    assert_eq!(keys(&first), ["externalId", "id", "meta", "ratelimits"]);
    assert_eq!((&first["id"], &first["meta"]), (&json!(id), &json!({"plan": "pro"})));
    assert_eq!(client.data("identities.getIdentity", &json!({"identity": id})), first);

    let wider = json!({"name": "calls", "limit": 9, "duration": 60_000, "autoApply": false});
    let change = json!({"identity": "user_7", "ratelimits": [wider]});
    let changed = client.data("identities.updateIdentity", &change);
    assert_eq!(changed["meta"], first["meta"], "what is not sent stays");
    let (before, after) = (&first["ratelimits"][0], &changed["ratelimits"][0]);
    assert_eq!((&after["id"], &after["limit"]), (&before["id"], &json!(9)));

    let deleted = client.post("identities.deleteIdentity", &json!({"identity": id}));
    assert_eq!((deleted.status(), keys(&deleted.json)), (200, vec!["meta"]));
    let gone = refusal(&mut client, "identities.getIdentity", &json!({"identity": id}));
    assert_eq!(gone, (404, "identity_not_found".to_owned()));
    let gone = refusal(&mut client, "identities.updateIdentity", &json!({"identity": "user_7"}));
    assert_eq!(gone, (404, "identity_not_found".to_owned()));
}

#[test]
fn every_refusal_of_a_deletion_is_a_problem_by_its_type() {
    let world = World::new();
    let mut client = world.client();
    for (body, status) in [(json!({"identity": "nobody"}), 404), (json!({"who": "nobody"}), 400)] {
        let answer = client.post("identities.deleteIdentity", &body);
        assert_eq!(answer.status(), status);
        assert_eq!(answer.response.header("content-type"), Some("application/problem+json"));
    }
}

#[test]
fn a_second_identity_of_the_same_name_is_a_conflict() {
    let world = World::new();
    let mut client = world.client();
    let body = json!({"externalId": "user_7"});
    client.data("identities.createIdentity", &body);
    let taken = refusal(&mut client, "identities.createIdentity", &body);
    assert_eq!(taken, (409, "identity_already_exists".to_owned()));
    let said = client.post("identities.createIdentity", &body).json["error"]["detail"].clone();
    assert_eq!(said, "There is already an identity with this externalId.");
}

#[test]
fn two_limits_of_one_name_are_refused_where_they_stand() {
    let world = World::new();
    let mut client = world.client();
    let limit = json!({"name": "calls", "limit": 5, "duration": 60_000});
    let body = json!({"externalId": "user_7", "ratelimits": [limit, limit]});
    let answer = client.post("identities.createIdentity", &body);
    assert_eq!((answer.status(), answer.code()), (400, "invalid_input"));
}

#[test]
fn limits_and_metadata_of_an_identity_count_for_its_keys_at_once_and_end_with_it() {
    let world = World::new();
    let mut client = world.client();
    let api = new_api(&mut client);
    let key = new_key(&mut client, &api, json!({"externalId": "user_7"}));
    let other = new_key(&mut client, &api, json!({"externalId": "user_7"}));
    assert_eq!(verify(&mut client, &key)["identity"]["externalId"], "user_7");
    let limit = json!({"name": "shared", "limit": 1, "duration": LONG_MS, "autoApply": true});
    let change = json!({"identity": "user_7", "meta": {"plan": "pro"}, "ratelimits": [limit]});
    client.data("identities.updateIdentity", &change);
    let verified = verify(&mut client, &key);
    assert_eq!(
        (&verified["code"], &verified["identity"]["meta"]["plan"]),
        (&json!("VALID"), &json!("pro"))
    );
    assert_eq!(
        verify(&mut client, &other)["code"],
        "RATE_LIMITED",
        "both keys spend from one limit"
    );
    assert_eq!(
        client.post("identities.deleteIdentity", &json!({"identity": "user_7"})).status(),
        200
    );
    let verified = verify(&mut client, &other);
    assert_eq!((&verified["code"], verified.get("identity")), (&json!("VALID"), None));
}

#[test]
fn pages_of_identities_hold_every_identity_once_and_a_search_narrows_them() {
    let world = World::new();
    let mut client = world.client();
    assert_pages(&mut client, "identities.listIdentities", "externalId", |client, at| {
        let name = format!("user_{at}");
        client.data("identities.createIdentity", &json!({"externalId": name}));
        name
    });
    let found = client.data("identities.listIdentities", &json!({"search": "USER_11"}));
    assert_eq!(found.as_array().unwrap().len(), 1);
    let found = client.data("identities.listIdentities", &json!({"search": "user%"}));
    assert_eq!(found, json!([]), "a pattern's signs are only signs");
}

#[test]
fn a_refusal_of_a_deletion_is_a_problem_also_where_the_body_is_not_read() {
    let world = World::new();
    let path = "/v2/identities.deleteIdentity";
    let bearer = format!("Bearer {}", world.server.root_key());
    let zipped = [("authorization", &*bearer), ("content-encoding", "gzip")];
    let long = vec![b' '; (1 << 20) + 1];
    for (method, headers, body, status) in [
        ("PUT", &zipped[..1], &b""[..], 405),
        ("POST", &zipped[..], &b"{}"[..], 415),
        ("POST", &zipped[..1], &long[..], 413),
    ] {
        let mut connection = Connection::open(world.server.url()).expect("open");
        let response = connection.exchange(method, path, headers, body).expect("an answer");
        let kind = response.header("content-type");
        assert_eq!((response.status, kind), (status, Some("application/problem+json")));
    }
}
