//! A configuration out of one store and into another, of either kind.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::json;
use tollkeeper_testkit::Postgres;

use super::{code, run, text};
use crate::world::{Client, start};

const SECRET: &str = "one secret for the store it comes from and the one it goes to";

#[test]
fn a_configuration_moves_from_sqlite_to_postgres_and_back_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    for name in ["a", "b", "c"] {
        fs::create_dir(path(name)).expect("made");
    }
    let secret = ("TOLLKEEPER_SECRET", SECRET);
    let mut server = start(&path("a"), &[secret]).expect("the server starts");
    let mut client = Client::new(server.url(), server.root_key());
    let key = furnish(&mut client);
    let export = |data: &str, file: &str, env: &[(&str, &str)]| {
        let ran = run(&["backup", "--config-only", text(&path(file))], &path(data), env);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    };
    // Leased credits go back when the server ends, so that what is compared below is the same.
    server.terminate().expect("it ends");
    export("a", "first", &[secret]);

    let database = Postgres::shared().unwrap().database().unwrap();
    let on_postgres = [secret, ("TOLLKEEPER_DATABASE_URL", &*database.url)];
    let import = |file: &str, data: &str, env: &[(&str, &str)]| {
        run(&["restore", text(&path(file))], &path(data), env)
    };
    let ran = import("first", "b", &on_postgres);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("restored=config rows="), "{}", ran.stdout);
    export("b", "second", &on_postgres);
    assert_eq!(rows(&path("first")), rows(&path("second")));

    let again = import("first", "b", &on_postgres);
    assert_eq!(again.code, Some(4), "{}", again.stderr);
    assert!(again.stderr.contains("only an empty one"), "{}", again.stderr);

    let ran = import("second", "c", &[secret]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    export("c", "third", &[secret]);
    assert_eq!(rows(&path("first")), rows(&path("third")));

    for (data, env) in [("b", &on_postgres[..]), ("c", &[secret][..])] {
        let server = start(&path(data), env).expect("the server starts");
        let mut client = Client::new(server.url(), server.root_key());
        assert_eq!(code(&mut client, &key), "VALID", "{data}");
        let verified = client.data("keys.verifyKey", &json!({"key": key, "permissions": "a.b"}));
        assert_eq!(verified["code"], "VALID", "{verified}");
        assert_eq!(verified["identity"]["externalId"], "zoe", "{verified}");
        let chain = client.data("audit.verify", &json!({}));
        assert_eq!(chain["ok"], true, "{chain}");
    }
}

#[test]
fn a_configuration_is_refused_under_another_secret_and_when_it_was_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir(&from).expect("made");
    fs::create_dir(&to).expect("made");
    let secret = ("TOLLKEEPER_SECRET", SECRET);
    let mut server = start(&from, &[secret]).expect("the server starts");
    server.terminate().expect("it ends");
    let file = folder.path().join("config");
    assert_eq!(run(&["backup", "--config-only", text(&file)], &from, &[secret]).code, Some(0));
    let restore = |env: &[(&str, &str)]| run(&["restore", text(&file)], &to, env);

    let other =
        restore(&[("TOLLKEEPER_SECRET", "another secret, with which no key is found again")]);
    assert_eq!(other.code, Some(2), "{}", other.stderr);
    assert!(other.stderr.contains("another secret"), "{}", other.stderr);

    let whole = fs::read_to_string(&file).expect("readable");
    let cut = whole.lines().next().expect("a line").to_owned() + "\n";
    for damaged in [whole.replace("Default", "default"), cut] {
        fs::write(&file, damaged).expect("writable");
        let refused = restore(&[secret]);
        assert_eq!(refused.code, Some(4), "{}", refused.stderr);
    }
    fs::write(&file, whole).expect("writable");
    assert_eq!(restore(&[secret]).code, Some(0));
}

/// One of everything that can be set up. Returns a key that has it all.
fn furnish(client: &mut Client) -> String {
    let api = client.data("apis.createApi", &json!({"name": "pay \"ments\""}));
    client.data("identities.createIdentity", &json!({
        "externalId": "zoe", "meta": {"plan": "prö"}, "ratelimits": [{"name": "requests", "limit": 10, "duration": 60_000, "autoApply": true}],
    }));
    client.data("permissions.createPermission", &json!({"name": "a.b", "slug": "a.b"}));
    client.data("permissions.createRole", &json!({"name": "reader"}));
    client.data(
        "ratelimit.limit",
        &json!({"namespace": "email", "identifier": "a", "limit": 5, "duration": 60_000}),
    );
    client.data(
        "ratelimit.setOverride",
        &json!({"namespace": "email", "identifier": "vip_*", "limit": 50, "duration": 60_000}),
    );
    let made = client.data("keys.createKey", &json!({
        "apiId": api["apiId"], "externalId": "zoe", "permissions": ["a.b"], "roles": ["reader"], "name": "line\nbreak",
        "credits": {"remaining": 50, "refill": {"interval": "daily", "amount": 5}}, "meta": {"a": [1, null]}, "recoverable": true,
    }));
    let key = made["key"].as_str().expect("a key").to_owned();
    assert_eq!(code(client, &key), "VALID");
    key
}

/// Every row, whatever the order; without the lines about the file itself.
fn rows(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).expect("readable");
    let rows = text.lines().filter(|line| line.starts_with("{\"table\""));
    // SQLite and PostgreSQL put spaces and columns differently.
    let rows: BTreeSet<_> = rows
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON").to_string())
        .collect();
    assert!(rows.len() > 10, "{rows:?}");
    let counted = rows.iter().any(|row| row.contains("\"limit_stats\""));
    assert!(!counted, "what was counted is not what was set up: {rows:?}");
    rows
}
