//! The audit from outside: every denial is found again, changes are told with before and after, and meddling shows.

mod changes;
mod limits;
mod strangers;

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use tollkeeper_testkit::Postgres;

use crate::program::{Program, Ran};
use crate::time::{eventually, pause};
use crate::world::{Client, World, start};

struct Key {
    id: String,
    text: String,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

fn key(client: &mut Client, more: &Value) -> Key {
    let api = text(&client.data("apis.createApi", &json!({"name": "shop"}))["apiId"]);
    let mut new = more.clone();
    new["apiId"] = json!(api);
    let made = client.data("keys.createKey", &new);
    Key { id: text(&made["keyId"]), text: text(&made["key"]) }
}

fn search(client: &mut Client, filter: &Value) -> Vec<Value> {
    client.data("audit.search", filter).as_array().expect("a list").clone()
}

/// A command that will talk to this server with its root key.
fn run(world: &World, arguments: &[&str]) -> Ran {
    Program::new(arguments)
        .env("TOLLKEEPER_URL", world.server.url())
        .env("TOLLKEEPER_ROOT_KEY", world.server.root_key())
        .run()
}

fn lines(ran: &Ran) -> Vec<Value> {
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn every_denial_is_in_the_audit_as_soon_as_it_is_looked_for() {
    let world = World::with(&[("TOLLKEEPER_AUDIT_SAMPLE", "0"), ("TOLLKEEPER_REGION", "eu-1")]);
    let mut client = world.client();
    let limits =
        json!([{"name": "requests", "limit": 2, "duration": 2_592_000_000_u64, "autoApply": true}]);
    let key = key(&mut client, &json!({"externalId": "ann", "ratelimits": limits}));
    let ask =
        json!({"key": key.text, "method": "GET", "path": "/v1/files?page=2", "ip": "203.0.113.9"});
    for expected in ["VALID", "VALID", "RATE_LIMITED", "RATE_LIMITED"] {
        assert_eq!(client.data("keys.verifyKey", &ask)["code"], expected);
    }
    // Within one millisecond there is no newer and older.
    pause(Duration::from_millis(3));
    client.data("keys.verifyKey", &json!({"key": "nobody_has_this_key"}));
    let rows = search(&mut client, &json!({}));
    let codes: Vec<_> = rows.iter().map(|row| text(&row["code"])).collect();
    assert_eq!(codes, ["NOT_FOUND", "RATE_LIMITED", "RATE_LIMITED"], "no allow, newest first");
    assert_eq!((&rows[0]["decision"], &rows[0]["status"]), (&json!("blocked"), &json!(401)));
    assert!(rows[0].get("keyId").is_none() && rows[0].get("path").is_none(), "{}", rows[0]);
    let limited = &rows[1];
    for (field, expected) in [
        ("decision", json!("throttled")),
        ("status", json!(429)),
        ("keyId", json!(key.id)),
        ("externalId", json!("ann")),
        ("ip", json!("203.0.113.9")),
        ("method", json!("GET")),
        ("path", json!("/v1/files")),
        ("limit", json!("requests")),
        ("count", json!(2)),
        ("region", json!("eu-1")),
    ] {
        assert_eq!(limited[field], expected, "{field} of {limited}");
    }
    for field in ["at", "retryAfterMs", "latencyUs"] {
        assert!(limited[field].is_u64(), "{field} of {limited}");
    }
    assert!(text(&limited["requestId"]).starts_with("req_") && limited.get("degraded").is_none());
    for (filter, count) in [
        (json!({"keyId": key.id}), 2),
        (json!({"externalId": "ann"}), 2),
        (json!({"externalId": "bob"}), 0),
        (json!({"decision": "blocked"}), 1),
        (json!({"decision": "allowed"}), 0),
        (json!({"path": "/v1/files"}), 2),
        (json!({"path": "/v1/*"}), 2),
        (json!({"path": "/v1"}), 0),
        (json!({"text": "rate_lim"}), 2),
        (json!({"text": "203.0.113"}), 2),
        (json!({"to": limited["at"]}), 0),
        (json!({"from": rows[2]["at"]}), 3),
    ] {
        assert!(search(&mut client, &filter).len() >= count, "{filter}");
        if filter.get("to").is_none() {
            assert_eq!(search(&mut client, &filter).len(), count, "{filter}");
        }
    }
    assert_eq!(world.metric("tollkeeper_audit_rows_total"), 3);
    assert_eq!(world.metric("tollkeeper_audit_dropped_total"), 0);
}

#[test]
fn allowed_decisions_are_kept_by_the_share_that_is_set_and_survive_an_orderly_end() {
    let mut world = World::with(&[("TOLLKEEPER_AUDIT_SAMPLE", "1")]);
    let mut client = world.client();
    let key = key(&mut client, &json!({}));
    for _ in 0..25 {
        assert_eq!(client.data("keys.verifyKey", &json!({"key": key.text}))["valid"], true);
    }
    world.restart();
    let mut client = world.client();
    let (mut seen, mut cursor) = (BTreeSet::new(), Value::Null);
    loop {
        let mut ask = json!({"decision": "allowed", "limit": 10});
        if let Some(cursor) = cursor.as_str() {
            ask["cursor"] = json!(cursor);
        }
        let page = client.post("audit.search", &ask).json;
        let rows = page["data"].as_array().expect("a list");
        seen.extend(rows.iter().map(|row| text(&row["requestId"])));
        cursor = page["pagination"]["cursor"].clone();
        if page["pagination"]["hasMore"] != true {
            break;
        }
    }
    assert_eq!(seen.len(), 25);
}

#[test]
fn a_cursor_that_is_not_ours_is_refused_by_name() {
    let world = World::new();
    let mut client = world.client();
    for (method, cursor) in
        [("audit.search", "x"), ("audit.search", "x.y"), ("audit.changes", "key_1")]
    {
        let refused = client.post(method, &json!({"cursor": cursor}));
        assert_eq!((refused.status(), refused.places()), (400, vec!["body.cursor"]), "{method}");
    }
}

#[test]
fn no_row_of_the_audit_holds_a_key_even_if_the_caller_put_it_there() {
    let mut world = World::with(&[("TOLLKEEPER_AUDIT_SAMPLE", "1")]);
    let mut client = world.client();
    let key = key(&mut client, &json!({}));
    let path = format!("/files/{0}/x?key={0}", key.text);
    for text in [key.text.clone(), format!("{}x", key.text)] {
        client
            .data("keys.verifyKey", &json!({"key": text, "path": path, "method": key.text[..20]}));
    }
    let denied = json!({"key": key.text, "path": path, "permissions": "nobody.has.this"});
    client.data("keys.verifyKey", &denied);
    let rows = search(&mut client, &json!({}));
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0]["path"], "/files/[key]/x");
    world.server.terminate().expect("it ends");
    let secret = &key.text.as_bytes()[4..];
    let bytes = fs::read(world.data_dir().join("tollkeeper.db")).expect("the database");
    assert!(!bytes.windows(secret.len()).any(|window| window == secret));
}

#[test]
fn a_tenant_finds_its_own_decisions_and_changes_only() {
    let world = World::new();
    let mut operator = world.client();
    let made = operator.data("tenants.create", &json!({"name": "Other"}));
    let mut other = Client::new(world.server.url(), &text(&made["rootKey"]));
    operator.data("keys.verifyKey", &json!({"key": "nobody_has_this_key"}));
    assert_eq!(search(&mut operator, &json!({})).len(), 1);
    assert_eq!(search(&mut other, &json!({})).len(), 0);
    other.data("apis.createApi", &json!({"name": "theirs"}));
    let own = other.data("audit.changes", &json!({}));
    assert_eq!(own.as_array().expect("a list").len(), 1, "{own}");
    let all = operator.data("audit.verify", &json!({}));
    let theirs = other.data("audit.verify", &json!({}));
    // Bootstrap and tenant; and beside them, for the operator, what the other did.
    assert_eq!((&all["rows"], &theirs["rows"]), (&json!(3), &json!(1)), "{all} {theirs}");
    assert_eq!((&all["ok"], &theirs["ok"]), (&json!(true), &json!(true)));
}

#[test]
fn changes_are_told_with_what_was_before_and_after_and_the_chain_is_whole() {
    let world = World::new();
    let mut client = world.client();
    let key = key(&mut client, &json!({"name": "first"}));
    client.data("keys.updateKey", &json!({"keyId": key.id, "name": "second"}));
    client.data("keys.revoke", &json!({"keyId": key.id}));
    let of_key = lines(&run(&world, &["audit", "changes", "--target", &key.id, "--json"]));
    let actions: Vec<_> = of_key.iter().map(|row| text(&row["action"])).collect();
    assert_eq!(actions, ["keys.revoke", "keys.update", "keys.create"]);
    assert_eq!(of_key[1]["before"]["name"], "first", "{}", of_key[1]);
    assert_eq!(of_key[1]["after"]["name"], "second");
    assert!(of_key.iter().all(|row| row["rootKeyId"].is_string() && row["position"].is_u64()));
    assert!(!format!("{of_key:?}").contains(&key.text));
    let since =
        lines(&run(&world, &["audit", "changes", "--since", "1h", "--limit", "2", "--json"]));
    assert_eq!(since.len(), 2);
    let verified = run(&world, &["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{}", verified.stderr);
    assert!(verified.stdout.starts_with("chain=whole rows=5"), "{}", verified.stdout);
    client.data("keys.verifyKey", &json!({"key": key.text}));
    let ran = run(&world, &["audit", "search", "--key", &key.id, "--since", "1h"]);
    assert!(ran.stdout.contains("decision=blocked code=REVOKED"), "{}", ran.stdout);
    let none = run(&world, &["audit", "search", "--until", "1h", "--json"]);
    assert_eq!(lines(&none), Vec::<Value>::new());
}

#[test]
fn what_was_decided_is_added_up_by_the_minute_the_hour_and_the_day() {
    let mut world = World::with(&[("TOLLKEEPER_REGION", "eu-1")]);
    let mut client = world.client();
    let limits =
        json!([{"name": "requests", "limit": 6, "duration": 2_592_000_000_u64, "autoApply": true}]);
    let key = key(&mut client, &json!({"externalId": "ann", "ratelimits": limits}));
    for _ in 0..10 {
        client.data("keys.verifyKey", &json!({"key": key.text}));
    }
    client.data("keys.verifyKey", &json!({"key": "nobody_has_this_key"}));
    let ask = |more: &Value| {
        let mut ask = json!({"from": 0, "to": 9_000_000_000_000_u64});
        let more = more.as_object().expect("fields").iter();
        more.for_each(|(name, value)| ask[name] = value.clone());
        ask
    };
    let sum = |client: &mut Client, more: &Value, field: &str| -> u64 {
        let lines = client.data("stats.query", &ask(more));
        let lines = lines.as_array().expect("a list");
        lines.iter().map(|line| line[field].as_u64().expect("a number")).sum()
    };
    for round in 0..2 {
        for by in ["minute", "hour", "day"] {
            let all = |field| sum(&mut world.client(), &json!({"by": by}), field);
            let fields = ["total", "allowed", "throttled", "blocked"].map(all);
            assert_eq!(fields, [11, 6, 4, 1], "by {by}, round {round}");
        }
        world.restart();
    }
    let mut client = world.client();
    for (more, total) in [
        (json!({"externalId": "ann"}), 10),
        (json!({"externalId": "bob"}), 0),
        (json!({"region": "eu-1"}), 11),
        (json!({"region": "us"}), 0),
        (json!({"endpoint": "/v1/*"}), 0),
        (json!({"to": 1}), 0),
    ] {
        assert_eq!(sum(&mut client, &more, "total"), total, "{more}");
    }
    let lines = client.data("stats.query", &ask(&json!({"by": "day"})));
    let line = &lines.as_array().expect("a list")[0];
    let hits = line["cacheHits"].as_u64().expect("a number");
    let misses = line["cacheMisses"].as_u64().expect("a number");
    assert!(hits >= 8 && misses >= 1, "{line}");
    assert!(line["p50Us"].as_u64() <= line["p99Us"].as_u64() && line["p50Us"].is_u64(), "{line}");
    assert_eq!(line["time"].as_u64().expect("a moment") % 86_400_000, 0);
}

/// With the server away, somebody changes one letter of one row in the file.
#[test]
fn one_letter_changed_in_the_database_is_found_and_changes_go_on() {
    let mut world = World::new();
    let mut client = world.client();
    client.data("apis.createApi", &json!({"name": "first"}));
    client.data("permissions.createPermission", &json!({"name": "p", "slug": "p"}));
    world.server.terminate().expect("it ends");
    let file = world.data_dir().join("tollkeeper.db");
    let mut bytes = fs::read(&file).expect("the database");
    let word = b"permissions.create";
    let at = bytes.windows(word.len()).position(|window| window == word).expect("the row");
    bytes[at + word.len() - 1] = b'E';
    fs::write(&file, bytes).expect("written");
    world.start_again();
    let mut client = world.client();
    for _ in 0..2 {
        let found = client.data("audit.verify", &json!({}));
        assert_eq!((&found["ok"], &found["firstBad"]), (&json!(false), &json!(3)), "{found}");
        assert!(found["reason"].is_string() && found["tenantId"].is_string(), "{found}");
        client.data("apis.createApi", &json!({"name": "second"}));
    }
    let ran = run(&world, &["audit", "verify"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stdout.contains("chain=broken") && ran.stdout.contains("place=3"),
        "{}",
        ran.stdout
    );
}

#[test]
fn nodes_on_one_postgresql_share_the_audit_and_make_one_chain() {
    const SECRET: &str = "one secret for all nodes of a database";
    let postgres = Postgres::shared().expect("a database server");
    let database = postgres.database().expect("a database");
    let env = [("TOLLKEEPER_DATABASE_URL", &*database.url), ("TOLLKEEPER_SECRET", SECRET)];
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let nodes = [0, 1].map(|at| {
        let name = ["n1", "n2"][at];
        let env = [&env[..], &[("TOLLKEEPER_NODE", name)]].concat();
        start(folders[at].path(), &env).expect("the node starts")
    });
    let mut clients = nodes.each_ref().map(|node| Client::new(node.url(), node.root_key()));
    std::thread::scope(|scope| {
        for (node, client) in clients.iter_mut().enumerate() {
            scope.spawn(move || {
                for number in 0..10 {
                    client.data(
                        "apis.createApi",
                        &json!({"name": format!("project {node} {number}")}),
                    );
                    client.data("keys.verifyKey", &json!({"key": "nobody_has_this_key"}));
                }
            });
        }
    });
    let [one, two] = &mut clients;
    let seen = two.data("audit.verify", &json!({}));
    assert_eq!(seen["ok"], true, "{seen}");
    assert!(seen["rows"].as_u64().expect("a number") >= 21, "{seen}");
    eventually("what one node denied is found by the other", || {
        let rows = search(one, &json!({"text": "not_found"}));
        let nodes: BTreeSet<_> = rows.iter().map(|row| text(&row["node"])).collect();
        rows.len() == 20 && nodes == BTreeSet::from(["n1".to_owned(), "n2".to_owned()])
    });
}
