//! Several nodes on one PostgreSQL: an apply on one is in force on all, and a set that cannot be read on none.

use serde_json::json;
use tempfile::TempDir;
use tollkeeper_testkit::{Database, Postgres, Tollkeeper};

use super::{rule, rules};
use crate::time::{eventually, now};
use crate::world::{Client, start};

pub(crate) struct Nodes {
    postgres: &'static Postgres,
    database: Database,
    all: Vec<(Tollkeeper, TempDir)>,
}

impl Nodes {
    pub(crate) fn two() -> Self {
        let postgres = Postgres::shared().expect("a server");
        let database = postgres.database().expect("a database");
        let node = |_| {
            let folder = tempfile::tempdir().expect("a folder");
            let env = [
                ("TOLLKEEPER_DATABASE_URL", &*database.url),
                ("TOLLKEEPER_SECRET", "one secret for all nodes of a database"),
            ];
            (start(folder.path(), &env).expect("the node starts"), folder)
        };
        let all = (0..2).map(node).collect();
        Self { postgres, database, all }
    }

    pub(crate) fn client(&self, at: usize) -> Client {
        let node = &self.all[at].0;
        Client::new(node.url(), self.all[0].0.root_key())
    }

    fn metric(&self, at: usize, series: &str) -> u64 {
        let text = self.client(at).get("/metrics").text();
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map_or(0, |value| value.parse().expect("a whole number"))
    }

    fn sql(&self, statement: &str) {
        self.postgres.ask(&self.database.name, statement).expect("it is done");
    }
}

#[test]
fn an_apply_on_one_node_is_in_force_on_the_other_within_a_second_or_so() {
    let nodes = Nodes::two();
    for (count, what) in [(5, "5 rules"), (10_000, "10000 rules"), (1, "1 rule")] {
        let body = json!({"rules": rules(count), "prune": true});
        nodes.client(0).data("rules.apply", &body);
        let applied = now();
        eventually("the other node has them", || {
            nodes.metric(1, "tollkeeper_rules") == count as u64
        });
        let took = applied.elapsed();
        eprintln!("{what} were in force on the other node {took:?} after the answer");
        assert!(took.as_secs() < 5, "{what}: {took:?}");
    }
}

#[test]
fn a_rule_that_blocks_on_one_node_blocks_on_the_other() {
    let nodes = Nodes::two();
    let block =
        json!({"name": "gone", "scope": "ip", "action": "block", "ipRanges": ["192.0.2.0/24"]});
    let ask = json!({"externalId": "ann", "ip": "192.0.2.9"});
    let mut clients = [nodes.client(0), nodes.client(1)];
    for client in &mut clients {
        assert_eq!(client.data("gate.check", &ask)["allowed"], true);
    }
    clients[0].data("rules.apply", &json!({"rules": [block]}));
    assert_eq!(
        clients[0].data("gate.check", &ask)["code"],
        "BLOCKED",
        "at once where it was applied"
    );
    eventually("the other node blocks", || {
        clients[1].data("gate.check", &ask)["code"] == "BLOCKED"
    });
    clients[1].data("rules.delete", &json!({"name": "gone"}));
    assert_eq!(clients[1].data("gate.check", &ask)["allowed"], true);
    eventually("the first node lets it pass", || {
        clients[0].data("gate.check", &ask)["allowed"] == true
    });
}

#[test]
fn a_set_that_cannot_be_read_never_takes_the_place_of_one_that_could() {
    let nodes = Nodes::two();
    nodes.client(0).data("rules.apply", &json!({"rules": rules(3)}));
    eventually("both have them", || (0..2).all(|at| nodes.metric(at, "tollkeeper_rules") == 3));
    nodes.sql(
        "INSERT INTO rule_versions SELECT tenant_id, 2, at, created_by, '[{\"name\":\"broken\"}]'
            FROM rule_versions; UPDATE rule_books SET version = 2;
         INSERT INTO outbox (kind, tenant_id, subject_id, at) SELECT 'rules', tenant_id, '', 1 FROM rule_books;
         NOTIFY tollkeeper_changes",
    );
    for at in 0..2 {
        eventually("it was tried", || nodes.metric(at, "tollkeeper_rule_load_failures_total") > 0);
        assert_eq!(nodes.metric(at, "tollkeeper_rules"), 3, "the good ones stay");
    }
    nodes.client(1).data("rules.apply", &json!({"rules": [rule("more", 1)]}));
    eventually("the next good set counts", || {
        (0..2).all(|at| nodes.metric(at, "tollkeeper_rules") == 4)
    });
}
