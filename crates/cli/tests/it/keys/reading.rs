//! Keys as they are shown: one, by its text, or page by page; and their text, where it may be seen again.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Made, api, create, get, text_of, with};
use crate::world::{Client, World, keys};

#[test]
fn get_key_and_whoami_show_what_was_given_and_nothing_empty() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let bare = create(&mut client, &api, json!({}));
    assert_eq!(keys(&get(&mut client, &bare.id)), ["createdAt", "enabled", "keyId", "start"]);
    let terms = json!({"name": "n", "meta": {"plan": "pro", "n": 1.50}, "externalId": "ann.x",
        "expires": 4_000_000_000_000_u64, "permissions": ["b", "a"], "tier": "gold",
        "ipAllowlist": ["10.0.0.0/8", "2001:db8::1/128"], "prefix": "p"});
    let key = create(&mut client, &api, terms);
    let shown = get(&mut client, &key.id);
    assert_eq!(shown["start"], key.text[..6]);
    assert_eq!(shown["permissions"], json!(["a", "b"]));
    assert_eq!(shown["ipAllowlist"], json!(["10.0.0.0/8", "2001:db8::1/128"]));
    assert_eq!((&shown["tier"], &shown["name"]), (&json!("gold"), &json!("n")));
    assert_eq!(shown["meta"], json!({"plan": "pro", "n": 1.50}));
    assert_eq!(shown["identity"]["externalId"], "ann.x");
    assert_eq!(shown["expires"], 4_000_000_000_000_u64);
    let timed = client.post("keys.whoami", &json!({"key": key.text}));
    assert!(timed.response.header("x-tollkeeper-timing").is_some());
    assert_eq!(timed.json["data"], shown);
    let cleared = json!({"keyId": key.id, "name": null, "meta": null, "externalId": null,
        "expires": null, "tier": null, "ipAllowlist": null, "permissions": []});
    assert_eq!(client.data("keys.updateKey", &cleared), json!({}));
    let bare = get(&mut client, &key.id);
    assert_eq!(keys(&bare), ["createdAt", "enabled", "keyId", "start", "updatedAt"]);
}

#[test]
fn an_unknown_text_is_not_found_and_never_repeated() {
    let world = World::new();
    let mut client = world.client();
    let answer = client.post("keys.whoami", &json!({"key": "prod_nobody_knows_me"}));
    answer.assert_refused("whoami");
    assert_eq!((answer.status(), answer.code()), (404, "key_not_found"));
    assert!(!answer.json.to_string().contains("nobody_knows_me"));
}

#[test]
fn a_recoverable_key_is_shown_again_to_those_who_may_and_another_never() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let kept = create(&mut client, &api, json!({"recoverable": true, "prefix": "a_b"}));
    let lost = create(&mut client, &api, json!({}));
    let decrypt = |key: &Made| json!({"keyId": key.id, "decrypt": true});
    assert_eq!(client.data("keys.getKey", &decrypt(&kept))["plaintext"], kept.text);
    assert!(get(&mut client, &kept.id).get("plaintext").is_none());
    let refused = client.post("keys.getKey", &decrypt(&lost));
    refused.assert_refused("not recoverable");
    assert_eq!(refused.status(), 412);
    let listed = client.data("apis.listKeys", &json!({"apiId": api, "decrypt": true}));
    let texts: Vec<_> =
        listed.as_array().unwrap().iter().filter_map(|key| key.get("plaintext")).collect();
    assert_eq!(texts, [&json!(kept.text)]);
    let new = client.data("keys.rerollKey", &json!({"keyId": kept.id, "expiration": 0}));
    let shown = client.data("keys.getKey", &json!({"keyId": new["keyId"], "decrypt": true}));
    assert_eq!(shown["plaintext"], new["key"], "what replaces a recoverable key is recoverable");
}

/// A root key with just these permissions.
fn narrow(client: &mut Client, world: &World, permissions: &[&str]) -> Client {
    let made =
        client.data("rootKeys.createKey", &json!({"name": "narrow", "permissions": permissions}));
    Client::new(world.server.url(), &text_of(&made["key"]))
}

#[test]
fn a_root_key_sees_and_does_what_it_is_permitted_and_some_refusals_look_like_absence() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({"recoverable": true}));
    let own = |action: &str| format!("api.{api}.{action}");
    let calls = [
        ("keys.createKey", json!({"apiId": api}), vec![own("create_key")], 404),
        ("apis.listKeys", json!({"apiId": api}), vec![own("read_key"), own("read_api")], 404),
        ("keys.whoami", json!({"key": key.text}), vec![own("read_key")], 404),
        ("keys.getKey", json!({"keyId": key.id}), vec![own("read_key")], 403),
        ("apis.getApi", json!({"apiId": api}), vec![own("read_api")], 403),
        ("keys.updateKey", json!({"keyId": key.id, "name": "x"}), vec![own("update_key")], 403),
        (
            "keys.getKey",
            json!({"keyId": key.id, "decrypt": true}),
            vec![own("read_key"), own("decrypt_key")],
            403,
        ),
        (
            "keys.createKey",
            json!({"apiId": api, "recoverable": true}),
            vec![own("create_key"), own("encrypt_key")],
            0,
        ),
        (
            "keys.addPermissions",
            json!({"keyId": key.id, "permissions": ["x"]}),
            vec![
                own("update_key"),
                "rbac.*.add_permission_to_key".into(),
                "rbac.*.create_permission".into(),
            ],
            403,
        ),
        ("keys.revoke", json!({"keyId": key.id}), vec!["keys.*.revoke".into()], 403),
    ];
    for (method, body, needs, refused) in calls {
        let needs: Vec<_> = needs.iter().map(String::as_str).collect();
        for without in 0..needs.len() {
            let mut fewer = needs.clone();
            fewer.remove(without);
            fewer.push("api.api_other.read_api");
            let answer = narrow(&mut client, &world, &fewer).post(method, &body);
            let status = answer.status();
            let expected = if refused == 0 { [404, 403][without] } else { refused };
            assert_eq!(status, expected, "{method} with {fewer:?}: {}", answer.json);
        }
        let answer = narrow(&mut client, &world, &needs).post(method, &body);
        assert_eq!(answer.status(), 200, "{method} with {needs:?}: {}", answer.json);
    }
}

#[test]
fn list_keys_pages_through_every_key_once() {
    let world = World::new();
    let mut client = world.client();
    let (api, other) = (api(&mut client), api(&mut client));
    create(&mut client, &other, json!({}));
    let mut made = BTreeSet::new();
    for at in 0..25 {
        let owner = if at % 5 == 0 { "ann" } else { "bob" };
        made.insert(create(&mut client, &api, json!({"externalId": owner})).id);
    }
    let walk = |client: &mut Client, more: Value| {
        let (mut found, mut pages, mut cursor) = (Vec::new(), 0, json!({}));
        loop {
            let body = with(with(json!({"apiId": api}), more.clone()), cursor);
            let answer = client.post("apis.listKeys", &body);
            let rows = answer.json["data"].as_array().unwrap().clone();
            found.extend(rows.iter().map(|row| text_of(&row["keyId"])));
            pages += 1;
            let pagination = &answer.json["pagination"];
            assert_eq!(pagination["hasMore"], pagination.get("cursor").is_some(), "{pagination}");
            match pagination.get("cursor") {
                Some(next) => cursor = json!({"cursor": next}),
                None => return (found, pages),
            }
        }
    };
    for (limit, pages) in [(1, 25), (7, 4), (25, 1), (100, 1)] {
        let (found, walked) = walk(&mut client, json!({"limit": limit}));
        assert_eq!((found.len(), walked), (25, pages), "limit {limit}");
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), made);
    }
    assert_eq!(walk(&mut client, json!({"externalId": "ann", "limit": 2})).0.len(), 5);
    assert_eq!(walk(&mut client, json!({"externalId": "nobody"})).0.len(), 0);
}
