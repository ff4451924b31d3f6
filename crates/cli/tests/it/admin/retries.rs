//! `Idempotency-Key` on changes, and the bound on how many a root key may make.

use std::fs;

use serde_json::json;

use super::{text, walked};
use crate::world::{Client, World, side_by_side};

#[test]
fn a_retry_gets_the_first_answer_again_and_changes_nothing() {
    let mut world = World::new();
    let body = json!({"permissions": [], "name": "once"});
    let first = world.client().post_once("rootKeys.createKey", &body, "job 1");
    assert_eq!(first.status(), 200);
    let again = world.client().post_once("rootKeys.createKey", &body, "job 1");
    assert_eq!(again.json, first.json);
    assert!(again.response.header("x-tollkeeper-timing").is_some(), "as on every answer");
    world.restart();
    let again = world.client().post_once("rootKeys.createKey", &body, "job 1");
    assert_eq!(again.json, first.json, "also after a restart");
    let other = world.client().post_once("rootKeys.createKey", &body, "job 2");
    assert_ne!(other.json["data"], first.json["data"]);
    let rows = walked(&mut world.client(), "rootKeys.listKeys", "keyId", 100);
    assert_eq!(rows.len(), 3, "the operator's and two more");
}

#[test]
fn the_same_key_with_another_body_is_409_and_for_another_route_or_caller_another_key() {
    let world = World::new();
    let mut client = world.client();
    let made = client.post_once("rootKeys.createKey", &json!({"permissions": ["*"]}), "a");
    let other = client.post_once("rootKeys.createKey", &json!({"permissions": []}), "a");
    assert_eq!((other.status(), other.code()), (409, "idempotency_key_reused"));
    let route = client.post_once("permissions.createRole", &json!({"name": "editor"}), "a");
    assert_eq!(route.status(), 200);
    let mut sibling = Client::new(world.server.url(), text(&made.json["data"]["key"]));
    let role = sibling.post_once("permissions.createRole", &json!({"name": "author"}), "a");
    assert_eq!(role.status(), 200);
}

#[test]
fn a_refused_call_is_not_remembered() {
    let world = World::new();
    let mut client = world.client();
    let body = json!({"role": "editor", "name": "author"});
    assert_eq!(client.post_once("permissions.updateRole", &body, "a").status(), 404);
    client.data("permissions.createRole", &json!({"name": "editor"}));
    assert_eq!(client.post_once("permissions.updateRole", &body, "a").status(), 200);
    let empty = client.post_once("permissions.updateRole", &body, "");
    assert_eq!((empty.status(), empty.places()), (400, vec!["header.Idempotency-Key"]));
}

#[test]
fn of_many_at_once_with_one_key_one_is_done_and_all_get_its_answer() {
    let world = World::new();
    let body = json!({"permissions": []});
    let answers = side_by_side(8, |_| world.client().post_once("rootKeys.createKey", &body, "a"));
    for answer in &answers {
        assert_eq!((answer.status(), &answer.json), (200, &answers[0].json));
    }
    assert_eq!(walked(&mut world.client(), "rootKeys.listKeys", "keyId", 100).len(), 2);
}

#[test]
fn of_many_at_once_that_are_refused_each_is_refused_for_what_it_asked() {
    let world = World::new();
    let body = json!({"role": "nobody", "name": "author"});
    let answers =
        side_by_side(8, |_| world.client().post_once("permissions.updateRole", &body, "a"));
    for answer in &answers {
        assert_eq!((answer.status(), answer.code()), (404, "role_not_found"));
    }
}

#[test]
fn a_client_that_leaves_before_its_answer_finds_it_with_a_retry() {
    let world = World::new();
    let body = json!({"permissions": []});
    for turn in 0..10 {
        let key = format!("job {turn}");
        let text = body.to_string();
        let request = format!(
            "POST /v2/rootKeys.createKey HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {}\r\n\
             idempotency-key: {key}\r\ncontent-length: {}\r\n\r\n{text}",
            world.server.root_key(),
            text.len(),
        );
        let mut hasty = world.client().connection;
        hasty.send(request.as_bytes()).expect("it is sent");
        drop(hasty);
        let retry = world.client().post_once("rootKeys.createKey", &body, &key);
        assert_eq!(retry.status(), 200, "{}", retry.json);
    }
    let rows = walked(&mut world.client(), "rootKeys.listKeys", "keyId", 100);
    assert_eq!(rows.len(), 11, "the operator's, and one of each job");
}

#[test]
fn what_is_kept_for_a_retry_cannot_be_read_on_the_disk() {
    let world = World::new();
    let made = world.client().post_once("rootKeys.createKey", &json!({"permissions": []}), "a");
    let key = text(&made.json["data"]["key"]).as_bytes().to_vec();
    for file in fs::read_dir(world.data_dir()).unwrap().map(Result::unwrap) {
        if file.file_type().unwrap().is_file() {
            let bytes = fs::read(file.path()).unwrap();
            let found = bytes.windows(key.len()).any(|window| window == key);
            assert!(!found, "{} holds a key's text", file.path().display());
        }
    }
}

#[test]
fn a_root_key_that_changes_too_much_at_once_gets_429_and_reads_on() {
    let world = World::new();
    // Every call counts, right or wrong: these never reach the database, which might be slower than the bound.
    let statuses = side_by_side(8, |_| {
        let mut client = world.client();
        let one = |client: &mut Client| {
            let answer = client.post("permissions.deleteRole", &json!({}));
            let wait = answer.response.header("retry-after").map(str::to_owned);
            let kind = answer.response.header("content-type").map(str::to_owned);
            (answer.status(), wait, kind)
        };
        (0..150).map(|_| one(&mut client)).collect::<Vec<_>>()
    });
    let over: Vec<_> =
        statuses.into_iter().flatten().filter(|(status, ..)| *status == 429).collect();
    assert!(!over.is_empty(), "1200 changes in a breath");
    let told = (Some("1".to_owned()), Some("application/problem+json".to_owned()));
    assert!(over.into_iter().all(|(_, wait, kind)| (wait, kind) == told));
    assert_eq!(world.client().post("permissions.listRoles", &json!({})).status(), 200);
}
