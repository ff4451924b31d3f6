//! Several nodes on one PostgreSQL and one Redis: what one node read, others find in Redis, and never after it changed.

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tollkeeper_testkit::{Database, Postgres, RedisServer, Tollkeeper};

use super::{Made, api, code, create, text_of};
use crate::time::{eventually, now};
use crate::world::{Client, start};

const SECRET: &str = "one secret for all nodes of a database";

const SCHEMA: &str = include_str!("../../../../../docs/REDIS_SCHEMA.md");

/// An entry that says nothing but that something changed.
const NOTICE_LENGTH: u64 = 16;

/// SHA-256 of `hello` and of `world`.
const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
const WORLD: &str = "SG6kYiTRu0+2gPNPfJrZao8k7Ii+c+qOWmxlJg6cuKc=";

/// The bound is a second; a loaded machine gets as much again. Both are far below the ten of a forgotten entry.
const SOON: Duration = Duration::from_secs(2);

pub(super) struct Fleet {
    postgres: Postgres,
    database: Database,
    pub(super) redis: RedisServer,
    nodes: Vec<(Tollkeeper, TempDir)>,
}

impl Fleet {
    fn of(nodes: usize) -> Self {
        Self::with(nodes, &[])
    }

    /// With settings on top of what every node needs.
    pub(super) fn with(nodes: usize, more: &[(&str, &str)]) -> Self {
        let postgres = Postgres::start().expect("a database server");
        let database = postgres.database().expect("a database");
        let redis = RedisServer::start().expect("a Redis");
        let nodes = (0..nodes).map(|_| node(&database, &redis.url(), more)).collect();
        Self { postgres, database, redis, nodes }
    }

    /// Each knows its root key already.
    pub(super) fn clients(&self) -> Vec<Client> {
        let client = |(node, _): &(Tollkeeper, TempDir)| {
            let mut client = Client::new(node.url(), node.root_key());
            assert_eq!(code(&mut client, "nothing"), "NOT_FOUND");
            client
        };
        self.nodes.iter().map(client).collect()
    }

    /// Everything that is in the database, as text.
    pub(super) fn dump(&self) -> String {
        self.postgres.dump(&self.database.name).expect("a dump")
    }

    /// Names of what is kept, without notices.
    fn kept(&self, prefix: &str) -> Vec<String> {
        let names = self.redis.ask(&["KEYS", &format!("{prefix}*")]);
        let names = names.lines().map(str::trim).filter(|name| name.starts_with(prefix));
        let is_kept = |name: &&str| {
            let length = self.redis.ask(&["STRLEN", name]);
            length.parse::<u64>().is_ok_and(|length| length > NOTICE_LENGTH)
        };
        names.filter(is_kept).map(str::to_owned).collect()
    }

    /// Verifies on the first node, and returns the name that the key is kept under.
    fn load(&self, client: &mut Client, key: &Made, expected: &str) -> String {
        let before = self.kept(KEYS);
        assert_eq!(code(client, &key.text), expected);
        let mut fresh = Vec::new();
        eventually("it is kept", || {
            fresh = self.kept(KEYS);
            fresh.retain(|name| !before.contains(name));
            !fresh.is_empty()
        });
        assert_eq!(fresh.len(), 1, "{fresh:?}");
        fresh.remove(0)
    }
}

const KEYS: &str = "cache:apikey:pk:";

fn node(database: &Database, redis: &str, more: &[(&str, &str)]) -> (Tollkeeper, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut env = vec![
        ("TOLLKEEPER_DATABASE_URL", database.url.as_str()),
        ("TOLLKEEPER_REDIS_URL", redis),
        ("TOLLKEEPER_SECRET", SECRET),
    ];
    env.extend(more);
    (start(folder.path(), &env).expect("the node starts"), folder)
}

#[test]
fn what_one_node_read_is_known_to_another_without_the_database() {
    let mut fleet = Fleet::of(2);
    let mut clients = fleet.clients();
    let api = api(&mut clients[0]);
    let more = json!({"meta": {"plan": "gold"}, "permissions": ["a.b"], "externalId": "ann"});
    let valid = create(&mut clients[0], &api, more);
    let revoked = create(&mut clients[0], &api, json!({}));
    let deleted = create(&mut clients[0], &api, json!({}));
    let unread = create(&mut clients[0], &api, json!({}));
    clients[0].data("keys.revoke", &json!({"keyId": revoked.id}));
    clients[0].data("keys.deleteKey", &json!({"keyId": deleted.id, "permanent": true}));
    fleet.load(&mut clients[0], &valid, "VALID");
    fleet.load(&mut clients[0], &revoked, "REVOKED");
    fleet.load(&mut clients[0], &deleted, "NOT_FOUND");
    // The other node has followed what was changed, and asked for none of them.
    let near = create(&mut clients[0], &api, json!({}));
    assert_eq!(code(&mut clients[1], &near.text), "VALID");
    fleet.postgres.stop();
    let body = json!({"key": valid.text, "permissions": "a.b"});
    let verified = clients[1].data("keys.verifyKey", &body);
    assert_eq!((&verified["code"], &verified["keyId"]), (&json!("VALID"), &json!(valid.id)));
    assert_eq!(verified["meta"], json!({"plan": "gold"}));
    assert_eq!(verified["identity"]["externalId"], "ann");
    assert_eq!(code(&mut clients[1], &revoked.text), "REVOKED", "and not unknown");
    assert_eq!(code(&mut clients[1], &deleted.text), "NOT_FOUND");
    let refused = clients[1].post("keys.verifyKey", &json!({"key": unread.text}));
    assert_eq!(refused.status(), 503, "nobody read it: {}", refused.json);
}

#[test]
fn a_revoked_key_is_refused_within_a_second_by_a_node_that_finds_the_old_one_in_redis() {
    const TRIALS: usize = 8;
    let fleet = Fleet::of(2);
    let mut clients = fleet.clients();
    let api = api(&mut clients[0]);
    for _ in 0..TRIALS {
        let key = create(&mut clients[0], &api, json!({}));
        fleet.load(&mut clients[0], &key, "VALID");
        clients[0].data("keys.revoke", &json!({"keyId": key.id}));
        let revoked = now();
        assert_eq!(code(&mut clients[0], &key.text), "REVOKED", "at once where it was revoked");
        eventually("it is refused", || code(&mut clients[1], &key.text) == "REVOKED");
        assert!(revoked.elapsed() < SOON, "{:?}", revoked.elapsed());
    }
}

#[test]
fn an_entry_from_before_a_change_is_not_used_even_if_it_comes_back_to_redis() {
    let fleet = Fleet::of(2);
    let mut clients = fleet.clients();
    let api = api(&mut clients[0]);
    let put_back = |name: &str| {
        assert_eq!(fleet.redis.ask(&["COPY", "before", name, "REPLACE"]), "1");
    };
    // By its own change.
    let key = create(&mut clients[0], &api, json!({}));
    let name = fleet.load(&mut clients[0], &key, "VALID");
    assert_eq!(fleet.redis.ask(&["COPY", &name, "before", "REPLACE"]), "1");
    clients[0].data("keys.revoke", &json!({"keyId": key.id}));
    has_followed(&mut clients, &api);
    put_back(&name);
    assert_eq!(code(&mut clients[1], &key.text), "REVOKED");
    assert_eq!(code(&mut clients[0], &key.text), "REVOKED");
    // By one of its project, which names no key.
    let key = create(&mut clients[0], &api, json!({}));
    let name = fleet.load(&mut clients[0], &key, "VALID");
    assert_eq!(fleet.redis.ask(&["COPY", &name, "before", "REPLACE"]), "1");
    clients[0].data("projects.delete", &json!({"apiId": api}));
    let other = super::api(&mut clients[0]);
    has_followed(&mut clients, &other);
    put_back(&name);
    assert_eq!(code(&mut clients[1], &key.text), "NOT_FOUND");
}

/// The second node knows everything that was changed before this.
fn has_followed(clients: &mut [Client], api: &str) {
    let key = create(&mut clients[0], api, json!({}));
    eventually("it knows the key", || code(&mut clients[1], &key.text) == "VALID");
    clients[0].data("keys.updateKey", &json!({"keyId": key.id, "enabled": false}));
    eventually("it follows", || code(&mut clients[1], &key.text) == "DISABLED");
}

#[test]
fn a_key_that_was_not_found_is_found_as_soon_as_it_is_brought_in() {
    let fleet = Fleet::of(2);
    let mut clients = fleet.clients();
    let api = api(&mut clients[0]);
    let migrate = |client: &mut Client, hash: &str| {
        let body = json!({"migrationId": "m", "apiId": api, "keys": [{"hash": hash}]});
        assert_eq!(client.data("keys.migrateKeys", &body)["failed"], json!([]));
    };
    migrate(&mut clients[0], WORLD);
    eventually("both take keys from elsewhere", || {
        clients.iter_mut().all(|client| code(client, "world") == "VALID")
    });
    let before = fleet.kept(KEYS).len();
    assert_eq!(code(&mut clients[0], "hello"), "NOT_FOUND");
    eventually("that is kept", || fleet.kept(KEYS).len() > before);
    let began = now();
    migrate(&mut clients[0], HELLO);
    assert_eq!(code(&mut clients[0], "hello"), "VALID");
    eventually("it is found", || code(&mut clients[1], "hello") == "VALID");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn nothing_of_a_key_can_be_read_in_redis() {
    let fleet = Fleet::of(1);
    let mut clients = fleet.clients();
    let client = &mut clients[0];
    let api = api(client);
    let more = json!({
        "name": "visible-name", "meta": {"note": "visible-meta"}, "permissions": ["visible.permission"],
        "externalId": "visible-identity", "prefix": "visible",
    });
    let key = create(client, &api, more);
    fleet.load(client, &key, "VALID");
    client.data("projects.get", &json!({"project": api}));
    eventually("the project is kept", || !fleet.kept("cache:project:id:").is_empty());
    // `hello` says nothing, and neither does its hash.
    let body = json!({"migrationId": "m", "apiId": api, "keys": [{"hash": HELLO, "name": "visible-import"}]});
    client.data("keys.migrateKeys", &body);
    assert_eq!(code(client, "hello"), "VALID");
    eventually("both are kept", || fleet.kept(KEYS).len() >= 2);
    let names = fleet.redis.ask(&["KEYS", "cache:*"]);
    for name in names.lines() {
        let documented =
            SCHEMA.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        assert!(documented.into_iter().any(|prefix| name.starts_with(prefix)), "{name}");
        let ttl: i64 = fleet.redis.ask(&["PTTL", name]).parse().expect("a number");
        assert!((1..=60_000).contains(&ttl), "{name} lives for {ttl}");
        let value = fleet.redis.ask(&["GET", name]);
        for secret in [&*key.text, &key.id, &api, "visible", "payments", "default", "hello", HELLO]
        {
            assert!(
                !name.contains(secret) && !value.contains(secret),
                "{secret} in {name}: {value}"
            );
        }
    }
}

#[test]
fn without_redis_keys_come_from_the_database() {
    let mut fleet = Fleet::of(2);
    let mut clients = fleet.clients();
    let api = api(&mut clients[0]);
    let known = create(&mut clients[0], &api, json!({}));
    fleet.load(&mut clients[0], &known, "VALID");
    // It hangs.
    fleet.redis.pause();
    let begun = now();
    assert_eq!(code(&mut clients[1], &known.text), "VALID");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    fleet.redis.resume();
    // It is gone.
    fleet.redis.stop();
    let fresh = create(&mut clients[0], &api, json!({}));
    assert_eq!(code(&mut clients[1], &fresh.text), "VALID");
    clients[0].data("keys.revoke", &json!({"keyId": fresh.id}));
    eventually("it is refused", || code(&mut clients[1], &fresh.text) == "REVOKED");
    // It is back, and empty.
    fleet.redis.again().expect("Redis comes back");
    let fresh = create(&mut clients[0], &api, json!({}));
    assert_eq!(code(&mut clients[1], &fresh.text), "VALID");
}

#[test]
fn a_restored_copy_of_a_database_takes_nothing_from_the_first_one_over_the_same_redis() {
    let Fleet { postgres, database, redis, mut nodes } = Fleet::of(0);
    let first = postgres.database().expect("a database");
    let (mut server, _folder) = node(&first, &redis.url(), &[]);
    let mut client = Client::new(server.url(), server.root_key());
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({}));
    assert!(server.terminate().expect("it ends").success());
    let copy = postgres.copy(&first).expect("a copy");
    nodes.extend([&first, &copy].map(|database| node(database, &redis.url(), &[])));
    let fleet = Fleet { postgres, database, redis, nodes };
    let mut clients = fleet.clients();
    // The same key and the same secret; revoked in one of them, at a revision that the other has passed.
    clients[1].data("keys.revoke", &json!({"keyId": key.id}));
    for _ in 0..10 {
        create(&mut clients[0], &api, json!({}));
    }
    fleet.load(&mut clients[0], &key, "VALID");
    assert_eq!(code(&mut clients[1], &key.text), "REVOKED");
    assert_eq!(code(&mut clients[0], &key.text), "VALID");
}

#[test]
fn a_project_is_known_to_another_node_by_each_of_its_names_and_never_after_it_changed() {
    let mut fleet = Fleet::of(2);
    let mut clients = fleet.clients();
    let get = |client: &mut Client, called: &str| -> Value {
        client.post("projects.get", &json!({"project": called})).json["data"]["name"].clone()
    };
    assert_eq!(get(&mut clients[0], "default/pay"), Value::Null);
    eventually("that is kept", || !fleet.kept("cache:project:team-slug:").is_empty());
    let made = clients[0].data("projects.create", &json!({"name": "Payments", "slug": "pay"}));
    let id = text_of(&made["apiId"]);
    let names = [id.as_str(), "pay", "default/pay"];
    for name in names {
        assert_eq!(get(&mut clients[0], name), "Payments");
        eventually("the other finds it", || get(&mut clients[1], name) == "Payments");
    }
    clients[0].data("projects.update", &json!({"apiId": id, "name": "Billing"}));
    for name in names {
        assert_eq!(get(&mut clients[0], name), "Billing", "at once where it was changed");
        eventually("the other finds it", || get(&mut clients[1], name) == "Billing");
    }
    for prefix in ["cache:project:id:", "cache:project:slug:", "cache:project:team-slug:"] {
        eventually("it is kept", || !fleet.kept(prefix).is_empty());
    }
    fleet.postgres.stop();
    for name in names {
        assert_eq!(get(&mut clients[1], name), "Billing", "{name}");
    }
}

#[test]
fn the_documented_rights_are_all_that_a_node_needs_of_redis() {
    let Fleet { postgres, redis, mut nodes, .. } = Fleet::of(0);
    let rule: Vec<&str> = SCHEMA
        .lines()
        .skip_while(|line| !line.contains("ACL SETUSER"))
        .take_while(|line| line.starts_with("    "))
        .flat_map(str::split_whitespace)
        .filter(|word| *word != "\\")
        .collect();
    assert_eq!(redis.ask(&rule), "OK");
    assert_eq!(redis.ask(&["ACL", "SETUSER", "tollkeeper", "+hello"]), "OK");
    let database = postgres.database().expect("a database");
    let url = redis.url().replace("redis://", "redis://tollkeeper:PASSWORD@");
    nodes.push(node(&database, &url, &[]));
    let fleet = Fleet { postgres, database, redis, nodes };
    let mut client = fleet.clients().remove(0);
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({}));
    fleet.load(&mut client, &key, "VALID");
    client.data("keys.revoke", &json!({"keyId": key.id}));
    assert_eq!(code(&mut client, &key.text), "REVOKED");
    let denied = fleet.redis.ask(&["ACL", "LOG"]);
    assert!(!denied.contains("reason"), "{denied}");
}
