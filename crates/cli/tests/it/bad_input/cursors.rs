//! Cursors that no page ended with. An empty page in answer would pass for the end of the list.

use serde_json::{Value, json};

use crate::world::{Client, World};

const CUT: &str = "key_2bQ9xW3kTn5mVz8r";

/// Every list that goes on at a cursor, with what it needs beside it.
fn lists(api_id: &str) -> Vec<(&'static str, Value)> {
    let span = json!({"from": 0, "to": 1_000_000_000_000_u64});
    vec![
        ("usage.query", span.clone()),
        ("usage.export", span.clone()),
        ("stats.query", span),
        ("audit.search", json!({})),
        ("audit.changes", json!({})),
        ("apis.listKeys", json!({"apiId": api_id})),
        ("identities.listIdentities", json!({})),
        ("permissions.listPermissions", json!({})),
        ("permissions.listRoles", json!({})),
        ("projects.list", json!({})),
        ("ratelimit.listOverrides", json!({"namespace": "api"})),
        ("rootKeys.listKeys", json!({})),
        ("rules.list", json!({})),
        ("tenants.list", json!({})),
    ]
}

fn prepared(client: &mut Client) -> String {
    client.spend("ann", "sliding_window", 1);
    let made = client.data("apis.createApi", &json!({"name": "payments"}));
    made["apiId"].as_str().unwrap().to_owned()
}

#[test]
fn no_list_takes_a_cursor_that_none_of_its_pages_ended_with() {
    let world = World::new();
    let mut client = world.client();
    let api_id = prepared(&mut client);
    for (method, body) in lists(&api_id) {
        assert_eq!(client.post(method, &body).status(), 200, "{method}");
        for cursor in ["bogus", CUT, "key_", "0:", "2026-01-01|", "zzz", "-1", "é", "' OR 1=1"] {
            let mut body = body.clone();
            body["cursor"] = json!(cursor);
            let answer = client.post(method, &body);
            answer.assert_refused(method);
            assert_eq!(
                (answer.status(), answer.places()),
                (400, vec!["body.cursor"]),
                "{method} {cursor}"
            );
            assert!(answer.response.text().contains("not one of ours"), "{}", answer.json);
        }
    }
}

#[test]
fn the_cursor_of_a_row_that_was_deleted_meanwhile_goes_on_behind_it() {
    let world = World::new();
    let mut client = world.client();
    let rule = |name: &str| json!({"name": name, "scope": "global", "limits": [{"limit": 9, "window": "1h"}]});
    client.data("rules.apply", &json!({"rules": [rule("a"), rule("b"), rule("c")]}));
    let first = client.post("rules.list", &json!({"limit": 1})).json;
    let cursor = &first["pagination"]["cursor"];
    client.data("rules.delete", &json!({"name": "b"}));
    let rest = client.data("rules.list", &json!({"cursor": cursor}));
    assert_eq!((&rest[0]["name"], rest.as_array().map(Vec::len)), (&json!("c"), Some(1)), "{rest}");

    let api_id = prepared(&mut client);
    let mut ids: Vec<String> = (0..3)
        .map(|_| client.data("keys.createKey", &json!({"apiId": api_id}))["keyId"].to_string())
        .map(|id| id.trim_matches('"').to_owned())
        .collect();
    ids.sort();
    let page = client.post("apis.listKeys", &json!({"apiId": api_id, "limit": 1})).json;
    assert_eq!(page["pagination"]["cursor"], json!(ids[1]));
    client.data("keys.deleteKey", &json!({"keyId": ids[1]}));
    let rest = client.data("apis.listKeys", &json!({"apiId": api_id, "cursor": ids[1]}));
    assert_eq!((&rest[0]["keyId"], rest.as_array().map(Vec::len)), (&json!(ids[2]), Some(1)));
}

#[test]
fn usage_goes_on_only_in_buckets_of_the_size_that_it_began_with() {
    let world = World::new();
    let mut client = world.client();
    let (key, api) = ("key_2bQ9xW3kTn5mVz8rYp1c", "api_2bQ9xW3kTn5mVz8rYp1c");
    for (by, day, moment) in
        [("minute", 400, 200), ("hour", 400, 200), ("day", 200, 400), ("month", 200, 400)]
    {
        for (at, status) in [("2026-01-01", day), ("1767225600000", moment)] {
            let cursor = format!("{at}|{key}|{api}");
            let body = json!({"from": 0, "to": 1, "by": by, "cursor": cursor});
            assert_eq!(client.post("usage.query", &body).status(), status, "{by} {at}");
        }
    }
}
