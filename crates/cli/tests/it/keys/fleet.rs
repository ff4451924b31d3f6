//! Several nodes on one PostgreSQL: a change on one is in force on all, credits are one balance, and a database that is
//! away costs only what it must.

use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tollkeeper_testkit::{Database, Postgres, Tollkeeper};

use super::{Made, api, code, create, get};
use crate::time::{eventually, now, pause};
use crate::world::{Client, side_by_side, start};

pub(super) const SECRET: &str = "one secret for all nodes of a database";

pub(super) struct Fleet {
    pub(super) postgres: Postgres,
    pub(super) database: Database,
    pub(super) nodes: Vec<(Tollkeeper, TempDir)>,
}

impl Fleet {
    fn of(nodes: usize) -> Self {
        Self::on(Postgres::start().expect("a database server"), nodes, &[])
    }

    /// With settings on top of what every node needs.
    pub(super) fn on(postgres: Postgres, nodes: usize, more: &[(&str, &str)]) -> Self {
        let database = postgres.database().expect("a database");
        let node = |_| {
            let folder = tempfile::tempdir().expect("a folder");
            let mut env =
                vec![("TOLLKEEPER_DATABASE_URL", &*database.url), ("TOLLKEEPER_SECRET", SECRET)];
            env.extend(more);
            (start(folder.path(), &env).expect("the node starts"), folder)
        };
        let nodes = (0..nodes).map(node).collect();
        Self { postgres, database, nodes }
    }

    pub(super) fn client(&self) -> Client {
        self.clients().remove(0)
    }

    pub(super) fn clients(&self) -> Vec<Client> {
        let client = |(node, _): &(Tollkeeper, TempDir)| Client::new(node.url(), node.root_key());
        self.nodes.iter().map(client).collect()
    }
}

fn made(client: &mut Client) -> Made {
    let api = api(client);
    create(client, &api, json!({}))
}

#[test]
fn a_revoked_key_is_refused_on_every_node_within_a_second() {
    const TRIALS: usize = 20;
    let fleet = Fleet::of(3);
    let mut clients = fleet.clients();
    let api = api(&mut clients[0]);
    let mut slowest = Duration::ZERO;
    for trial in 0..TRIALS {
        let key = create(&mut clients[0], &api, json!({}));
        // Hot on two nodes; the third one sees it for the first time after it was revoked, or is idle.
        let hot = if trial % 2 == 0 { 3 } else { 2 };
        clients[..hot].iter_mut().for_each(|client| assert_eq!(code(client, &key.text), "VALID"));
        clients[trial % 3].data("keys.revoke", &json!({"keyId": key.id}));
        let revoked = now();
        for client in &mut clients {
            eventually("it is refused", || code(client, &key.text) == "REVOKED");
        }
        slowest = slowest.max(revoked.elapsed());
    }
    // The bound is the promise itself; a loaded machine gets as much again.
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
}

#[test]
fn a_key_is_usable_on_every_node_as_soon_as_it_is_made_and_changes_of_its_role_reach_them_all() {
    let fleet = Fleet::of(2);
    let mut clients = fleet.clients();
    let api = api(&mut clients[0]);
    for _ in 0..10 {
        let key = create(&mut clients[0], &api, json!({}));
        assert_eq!(code(&mut clients[1], &key.text), "VALID");
    }
    let role = json!({"name": "editor", "permissions": ["documents.read"]});
    let id = clients[0].data("permissions.createRole", &role)["roleId"].clone();
    let key = create(&mut clients[0], &api, json!({"roles": ["editor"]}));
    let may_write = json!({"key": key.text, "permissions": "documents.write"});
    let verdict = |client: &mut Client| client.data("keys.verifyKey", &may_write)["code"].clone();
    assert_eq!(verdict(&mut clients[1]), "INSUFFICIENT_PERMISSIONS");
    let set = json!({"role": id, "permissions": ["documents.read", "documents.write"]});
    clients[0].data("permissions.setRolePermissions", &set);
    eventually("the other node knows", || verdict(&mut clients[1]) == "VALID");
}

#[test]
fn credits_are_one_balance_for_all_nodes_and_every_one_of_them_is_spent_once() {
    const CREDITS: usize = 300;
    let fleet = Fleet::of(3);
    let mut clients = fleet.clients();
    let api = api(&mut clients[0]);
    let key = create(&mut clients[0], &api, json!({"credits": {"remaining": CREDITS}}));
    let valid: usize = side_by_side(6, |at| {
        let (node, _) = &fleet.nodes[at % 3];
        let mut client = Client::new(node.url(), node.root_key());
        (0..200).filter(|_| code(&mut client, &key.text) == "VALID").count()
    })
    .into_iter()
    .sum();
    assert!(valid <= CREDITS, "{valid} of {CREDITS}");
    // What one node had leased and not used goes back when it is idle or ends; nothing is lost.
    drop(clients);
    let mut fleet = fleet;
    let (last, _folder) = fleet.nodes.pop().expect("a node");
    for (node, _) in &mut fleet.nodes {
        assert!(node.terminate().expect("it ends").success());
    }
    let mut client = Client::new(last.url(), last.root_key());
    let rest = (0..CREDITS).take_while(|_| code(&mut client, &key.text) == "VALID").count();
    assert_eq!(valid + rest, CREDITS);
    assert_eq!(get(&mut client, &key.id)["credits"]["remaining"], 0);
}

#[test]
fn a_database_that_is_away_leaves_known_keys_valid_refuses_unknown_ones_as_unavailable_and_heals_by_itself()
 {
    let mut fleet = Fleet::of(1);
    let mut client = fleet.client();
    let (known, unseen) = (made(&mut client), made(&mut client));
    assert_eq!(code(&mut client, &known.text), "VALID");
    // In order: the tests' database trades durability for speed, and what it lost would be nobody's fault.
    fleet.postgres.stop();
    for _ in 0..10 {
        assert_eq!(code(&mut client, &known.text), "VALID");
        pause(Duration::from_millis(50));
    }
    let refused = client.post("keys.verifyKey", &json!({"key": unseen.text}));
    assert_eq!(refused.status(), 503, "{}", refused.json);
    fleet.postgres.again().expect("the database comes back");
    eventually("the unknown key is found", || {
        let answer = client.post("keys.verifyKey", &json!({"key": unseen.text}));
        answer.status() == 200 && answer.json["data"]["code"] == "VALID"
    });
    // Connections that did not outlive the database are found out before a change is put on one.
    client.data("apis.createApi", &json!({"name": "payments"}));
}
