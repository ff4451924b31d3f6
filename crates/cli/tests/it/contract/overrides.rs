//! Overrides and namespaces: set, found, listed, deleted, and in force with the next request.

use serde_json::{Value, json};

use crate::world::{Client, LONG_MS, World, ask, keys};

fn set(client: &mut Client, identifier: &str, limit: u64) -> String {
    let body =
        json!({"namespace": "api", "identifier": identifier, "limit": limit, "duration": LONG_MS});
    let data = client.data("ratelimit.setOverride", &body);
    assert_eq!(keys(&data), ["overrideId"]);
    data["overrideId"].as_str().unwrap().to_owned()
}

fn named(identifier: &str) -> Value {
    json!({"namespace": "api", "identifier": identifier})
}

#[test]
fn the_most_specific_override_is_in_force_from_the_next_request_on() {
    let world = World::new();
    let mut client = world.client();
    client.limit(&ask("api", "warm-up", 5));
    let patterns = [("*", 20), ("user_*", 30), ("user_*_eu", 40), ("user_7_eu", 50)];
    for (identifier, limit) in patterns {
        set(&mut client, identifier, limit);
    }
    for (identifier, limit, by) in [
        ("user_7_eu", 50, "user_7_eu"),
        ("user_8_eu", 40, "user_*_eu"),
        ("user_8", 30, "user_*"),
        ("USER_8", 20, "*"),
        ("someone", 20, "*"),
    ] {
        let limited = client.limit(&ask("api", identifier, 5));
        assert_eq!(limited["limit"], limit, "{identifier}");
        let found = client.data("ratelimit.getOverride", &named(identifier));
        assert_eq!(keys(&found), ["duration", "identifier", "limit", "overrideId"]);
        assert_eq!((&found["identifier"], &found["limit"]), (&json!(by), &json!(limit)));
        assert_eq!(found["overrideId"], limited["overrideId"]);
        let line =
            &client.data("ratelimit.multiLimit", &json!([ask("api", identifier, 5)]))["limits"][0];
        assert_eq!(line["overrideId"], limited["overrideId"]);
    }
}

#[test]
fn a_limit_of_0_blocks_at_once_and_deleting_it_unblocks() {
    let world = World::new();
    let mut client = world.client();
    assert_eq!(client.limit(&ask("api", "mallory", 5))["success"], true);
    set(&mut client, "mallory", 0);
    let blocked = client.post("ratelimit.limit", &ask("api", "mallory", 5));
    assert_eq!(blocked.status(), 200);
    let data = &blocked.json["data"];
    assert_eq!(
        (&data["success"], &data["limit"], &data["remaining"]),
        (&json!(false), &json!(0), &json!(0))
    );
    assert_eq!(client.data("ratelimit.deleteOverride", &named("mallory")), json!({}));
    assert_eq!(client.limit(&ask("api", "mallory", 5))["success"], true);
}

#[test]
fn setting_again_changes_the_limit_and_keeps_the_id() {
    let world = World::new();
    let mut client = world.client();
    client.limit(&ask("api", "ann", 5));
    let first = set(&mut client, "ann", 7);
    assert_eq!(client.limit(&ask("api", "ann", 5))["limit"], 7);
    assert_eq!(set(&mut client, "ann", 9), first);
    assert_eq!(client.limit(&ask("api", "ann", 5))["limit"], 9);
    let listed = client.post("ratelimit.listOverrides", &json!({"namespace": "api"}));
    assert_eq!(listed.json["data"].as_array().unwrap().len(), 1);
}

#[test]
fn pages_hold_every_override_once_and_the_last_one_has_no_cursor() {
    let world = World::new();
    let mut client = world.client();
    client.limit(&ask("api", "ann", 5));
    let mut expected: Vec<String> = (0..25).map(|at| format!("user-{at:02}")).collect();
    for identifier in &expected {
        set(&mut client, identifier, 1);
    }
    let (mut seen, mut pages, mut cursor) = (Vec::new(), Vec::new(), None);
    loop {
        let mut body = json!({"namespace": "api", "limit": 10});
        if let Some(cursor) = cursor.take() {
            body["cursor"] = cursor;
        }
        let answer = client.post("ratelimit.listOverrides", &body);
        assert_eq!(keys(&answer.json), ["data", "meta", "pagination"]);
        let rows = answer.json["data"].as_array().unwrap();
        pages.push(rows.len());
        seen.extend(rows.iter().map(|row| row["identifier"].as_str().unwrap().to_owned()));
        let pagination = &answer.json["pagination"];
        if pagination["hasMore"] == false {
            assert_eq!(keys(pagination), ["hasMore"]);
            break;
        }
        assert_eq!(keys(pagination), ["cursor", "hasMore"]);
        cursor = Some(pagination["cursor"].clone());
    }
    assert_eq!(pages, [10, 10, 5]);
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);
    let by_default = client.post("ratelimit.listOverrides", &json!({"namespace": "api"}));
    assert_eq!(by_default.json["data"].as_array().unwrap().len(), 10);
}

#[test]
fn what_is_not_there_is_404_and_a_deleted_namespace_410_for_good() {
    let world = World::new();
    let mut client = world.client();
    let over = |namespace: &str| json!({"namespace": namespace, "identifier": "a", "limit": 1, "duration": 1000});
    let all = json!({"namespace": "nowhere"});
    for (method, body) in [
        ("ratelimit.setOverride", over("nowhere")),
        ("ratelimit.getOverride", json!({"namespace": "nowhere", "identifier": "a"})),
        ("ratelimit.deleteOverride", json!({"namespace": "nowhere", "identifier": "a"})),
        ("ratelimit.listOverrides", all.clone()),
        ("ratelimit.deleteNamespace", all.clone()),
        ("limits.reset", all),
        ("limits.peek", ask("nowhere", "a", 5)),
    ] {
        let answer = client.post(method, &body);
        answer.assert_refused(method);
        assert_eq!(
            (answer.status(), answer.code()),
            (404, "ratelimit_namespace_not_found"),
            "{method}"
        );
    }
    client.limit(&ask("api", "ann", 5));
    for method in ["ratelimit.getOverride", "ratelimit.deleteOverride"] {
        let answer = client.post(method, &named("ann"));
        answer.assert_refused(method);
        assert_eq!((answer.status(), answer.code()), (404, "ratelimit_override_not_found"));
    }
    let deleted = client.data("ratelimit.deleteNamespace", &json!({"namespace": "api"}));
    assert_eq!(deleted, json!({}));
    for (method, body) in [
        ("ratelimit.limit", ask("api", "ann", 5)),
        ("limits.peek", ask("api", "ann", 5)),
        ("limits.reset", json!({"namespace": "api"})),
        ("ratelimit.setOverride", over("api")),
        ("ratelimit.listOverrides", json!({"namespace": "api"})),
        ("ratelimit.deleteNamespace", json!({"namespace": "api"})),
    ] {
        let answer = client.post(method, &body);
        answer.assert_refused(method);
        assert_eq!((answer.status(), answer.code()), (410, "ratelimit_namespace_gone"), "{method}");
    }
}
