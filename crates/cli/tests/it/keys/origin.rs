//! What a key costs the database when nobody has asked for it before, by the database's own count.

use std::sync::Barrier;

use serde_json::json;
use tollkeeper_core::key_text;
use tollkeeper_testkit::Postgres;

use super::fleet::Fleet;
use super::{api, code, create};
use crate::world::{World, side_by_side};

/// No record is due for renewal while the test counts.
const PATIENT: [(&str, &str); 2] =
    [("TOLLKEEPER_CACHE_FRESH_SECONDS", "600"), ("TOLLKEEPER_CACHE_STALE_SECONDS", "600")];

/// Statements since the last reset with how often each ran, but for the look into the outbox that goes on by itself.
const COUNTED: &str = "SELECT SUM(calls), MIN(query) FROM pg_stat_statements
    WHERE query NOT LIKE '%FROM outbox WHERE revision >%' AND query NOT LIKE '%pg_stat_statements%'
    AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) GROUP BY queryid";

// === impl Fleet ===

impl Fleet {
    fn counting() -> Self {
        let postgres = Postgres::start_counting().expect("a database server");
        let fleet = Self::on(postgres, 1, &PATIENT);
        fleet.ask("CREATE EXTENSION pg_stat_statements");
        fleet
    }

    fn ask(&self, statement: &str) -> String {
        self.postgres.ask(&self.database.name, statement).expect("an answer")
    }

    /// What the database was asked meanwhile.
    fn counted(&self, meanwhile: impl FnOnce()) -> Vec<String> {
        self.ask("SELECT pg_stat_statements_reset()");
        meanwhile();
        let counted = self.ask(COUNTED);
        // A statement may have several lines; each begins with its number of calls.
        let begins =
            |line: &&str| line.split_once('|').is_some_and(|(n, _)| n.parse::<u64>().is_ok());
        let mut asked: Vec<String> = counted.lines().filter(begins).map(str::to_owned).collect();
        // A server also does things behind its requests; these are what a verification is made of.
        let looked_at = [" keys", "identities", "roles", "permissions", "projects", "limits"];
        asked.retain(|line| looked_at.iter().any(|table| line.contains(table)));
        asked
    }
}

fn assert_one_lookup(counted: &[String]) {
    assert!(
        matches!(counted, [one] if one.starts_with("1|WITH chosen AS (SELECT id FROM keys")),
        "{counted:#?}"
    );
}

#[test]
fn a_cold_verification_costs_one_query_and_a_warm_one_none() {
    let fleet = Fleet::counting();
    let mut client = fleet.client();
    let api = api(&mut client);
    let rich = json!({"permissions": ["a", "b"], "externalId": "ann", "meta": {"plan": "pro"},
        "ratelimits": [{"name": "requests", "limit": 10, "duration": 60_000, "autoApply": true}]});
    let key = create(&mut client, &api, rich);
    assert_one_lookup(&fleet.counted(|| assert_eq!(code(&mut client, &key.text), "VALID")));
    let warm = fleet.counted(|| (0..50).for_each(|_| drop(code(&mut client, &key.text))));
    assert_eq!(warm, Vec::<String>::new());
}

#[test]
fn a_thousand_first_requests_at_once_cost_one_query() {
    const CALLERS: usize = 1_000;
    let fleet = Fleet::counting();
    let mut client = fleet.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({}));
    let together = Barrier::new(CALLERS);
    let counted = fleet.counted(|| {
        side_by_side(CALLERS, |_| {
            let mut client = fleet.client();
            together.wait();
            assert_eq!(code(&mut client, &key.text), "VALID");
        });
    });
    assert_one_lookup(&counted);
}

/// Well spelled, and nobody's.
fn stranger(n: u8) -> String {
    key_text(None, &[n; 20])
}

#[test]
fn among_many_unknown_keys_the_database_only_looks_whether_one_is_there() {
    let fleet = Fleet::counting();
    let mut client = fleet.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({}));
    let counted = fleet.counted(|| {
        (1..=40).for_each(|n| assert_eq!(code(&mut client, &stranger(n)), "NOT_FOUND"));
        assert_eq!(code(&mut client, &key.text), "VALID");
    });
    let times = |begin: &str| {
        let line = counted
            .iter()
            .find_map(|line| line.split_once('|').filter(|(_, it)| it.starts_with(begin)));
        line.map_or(0, |(times, _)| times.parse::<u64>().unwrap())
    };
    // The first that were not there, and the one that was.
    assert_eq!(times("WITH chosen AS (SELECT id FROM keys"), 16 + 1, "{counted:#?}");
    assert_eq!(times("SELECT COUNT(*) FROM keys"), 24 + 1, "{counted:#?}");
}

#[test]
fn keys_that_were_used_before_an_orderly_restart_are_near_after_it() {
    let mut world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let keys: Vec<_> = (0..20).map(|_| create(&mut client, &api, json!({}))).collect();
    for key in &keys {
        assert_eq!(code(&mut client, &key.text), "VALID");
    }
    world.restart();
    let mut client = world.client();
    for key in &keys {
        assert_eq!(code(&mut client, &key.text), "VALID");
    }
    assert_eq!(world.metric("tollkeeper_cache_loads_total{cache=\"key\"}"), 0);
}
