//! Several nodes on one PostgreSQL, each with settings of its own: what one of them was given wrongly must not cost the others.

use std::path::Path;

use serde_json::json;
use tempfile::TempDir;
use tollkeeper_testkit::{Database, Postgres, StartFailure, Tollkeeper};

use crate::time::eventually;
use crate::world::{Client, ask, copy, side_by_side, start};

const SECRET: &str = "one secret for all nodes of a database";
const KEY: &str = "the-root-key-of-the-fleet";

struct Shared {
    database: Database,
    folder: TempDir,
}

impl Shared {
    fn new() -> Self {
        let database = Postgres::shared().expect("a server").database().expect("a database");
        Self { database, folder: tempfile::tempdir().expect("a folder") }
    }

    /// A node by this name, in a folder of its own.
    fn node(&self, name: &str, more: &[(&str, &str)]) -> Result<Tollkeeper, StartFailure> {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        node_in(&folder, &self.database.url, more)
    }
}

fn node_in(folder: &Path, url: &str, more: &[(&str, &str)]) -> Result<Tollkeeper, StartFailure> {
    let mut env = vec![
        ("TOLLKEEPER_DATABASE_URL", url),
        ("TOLLKEEPER_SECRET", SECRET),
        ("TOLLKEEPER_ROOT_KEY", KEY),
    ];
    env.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
    env.extend(more);
    start(folder, &env)
}

fn status_for(server: &Tollkeeper, key: &str) -> u16 {
    Client::new(server.url(), key).post("ratelimit.limit", &ask("api", "ann", 1_000)).status()
}

#[test]
fn a_node_with_another_secret_does_not_start_and_costs_the_others_nothing() {
    let shared = Shared::new();
    let first = shared.node("first", &[]).expect("it starts");
    let other = [("TOLLKEEPER_SECRET", "a secret that no other node was given")];
    let refused = shared.node("second", &other).expect_err("it must not start");
    assert_eq!(refused.status.and_then(|status| status.code()), Some(2), "{refused}");
    let said = "written under another secret: give this node the TOLLKEEPER_SECRET";
    assert!(refused.stderr.contains(said), "{refused}");
    assert_eq!(status_for(&first, KEY), 200);
    let mended = shared.node("second", &[]).expect("the right secret is not kept out");
    assert_eq!((status_for(&first, KEY), status_for(&mended, KEY)), (200, 200));
}

#[test]
fn a_node_without_a_root_key_leaves_the_one_that_the_others_were_given() {
    let shared = Shared::new();
    let first = shared.node("first", &[]).expect("it starts");
    let second = shared.node("second", &[("TOLLKEEPER_ROOT_KEY", "")]).expect("it starts");
    assert_eq!((status_for(&first, KEY), status_for(&second, KEY)), (200, 200));
    assert!(!second.stdout().contains("shown only this once"), "{}", second.stdout());
    let said = "given to another node, or shown by the one that started first on this database";
    eventually("where to find it", || second.stdout().contains(said));
}

#[test]
fn another_root_key_is_known_to_every_node_at_once_and_the_one_before_ends() {
    const NEW: &str = "another-root-key-for-the-fleet";
    let shared = Shared::new();
    let first = shared.node("first", &[]).expect("it starts");
    assert_eq!((status_for(&first, KEY), status_for(&first, NEW)), (200, 401));
    let second = shared.node("second", &[("TOLLKEEPER_ROOT_KEY", NEW)]).expect("it starts");
    assert_eq!((status_for(&second, NEW), status_for(&second, KEY)), (200, 401));
    // Within the second in which every change is known, also by who had been told that there is no such key.
    let begun = crate::time::now();
    eventually("the new one counts", || status_for(&first, NEW) == 200);
    eventually("the old one ended", || status_for(&first, KEY) == 401);
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn of_nodes_that_start_at_once_on_an_empty_database_one_shows_a_key_and_it_works_on_all() {
    let shared = Shared::new();
    let nodes = side_by_side(3, |at| {
        let none = [("TOLLKEEPER_ROOT_KEY", "")];
        shared.node(&format!("node-{at}"), &none).expect("it starts")
    });
    let shown = |node: &Tollkeeper| {
        let said = node.stdout();
        said.split_whitespace().find(|word| word.starts_with("tk_root_")).map(str::to_owned)
    };
    let shown: Vec<_> = nodes.iter().filter_map(shown).collect();
    assert_eq!(shown.len(), 1, "{shown:?}");
    for node in &nodes {
        assert_eq!(status_for(node, &shown[0]), 200);
    }
}

#[test]
fn a_copy_of_a_living_nodes_data_directory_gives_none_of_its_credits_back() {
    const CREDITS: u64 = 1_000;
    let shared = Shared::new();
    let first = shared.node("first", &[]).expect("it starts");
    let mut client = Client::new(first.url(), KEY);
    let api = client.data("apis.createApi", &json!({"name": "metered"}));
    let credits = json!({"apiId": api["apiId"], "credits": {"remaining": CREDITS}});
    let key = client.data("keys.createKey", &credits);
    let spends = |client: &mut Client| {
        client.data("keys.verifyKey", &json!({"key": key["key"]}))["code"] == "VALID"
    };
    // The first ask leases what it needs; a later one has some in hand.
    let mut spent = (0..7).filter(|_| spends(&mut client)).count() as u64;
    let copied = shared.folder.path().join("copy");
    std::fs::create_dir_all(&copied).expect("a folder");
    copy(&shared.folder.path().join("first"), &copied);
    let second = shared.node("copy", &[]).expect("it starts");
    let mut other = Client::new(second.url(), KEY);
    for client in [&mut other, &mut client] {
        spent += (0..=CREDITS).take_while(|_| spends(client)).count() as u64;
    }
    assert!(spent <= CREDITS, "{spent}");
}
