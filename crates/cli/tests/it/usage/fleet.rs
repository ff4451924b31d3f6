//! Two nodes on one Redis and one PostgreSQL: nodes are killed, Redis is wiped, the database goes and comes back, or comes
//! back as it was a while ago. Nothing lost, nothing doubled.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tollkeeper_testkit::{Postgres, RedisServer, Tollkeeper};

use super::{Books, Keys, usage};
use crate::time::{eventually, pause};
use crate::world::{Client, start};

const SECRET: &str = "one secret for all nodes of a database";

pub(super) struct Fleet {
    pub(super) postgres: Postgres,
    redis: RedisServer,
    url: String,
    pub(super) nodes: Vec<(Tollkeeper, TempDir)>,
    lag: &'static str,
}

impl Fleet {
    pub(super) fn of(nodes: usize, lag: &'static str) -> Self {
        let postgres = Postgres::start().expect("a database server");
        let url = postgres.database().expect("a database").url;
        let redis = RedisServer::start().expect("a Redis");
        let mut fleet = Self { postgres, redis, url, nodes: Vec::new(), lag };
        for _ in 0..nodes {
            let folder = tempfile::tempdir().expect("a folder");
            let node = fleet.start(&folder);
            fleet.nodes.push((node, folder));
        }
        fleet
    }

    fn start(&self, folder: &TempDir) -> Tollkeeper {
        let redis = self.redis.url();
        let env = [
            ("TOLLKEEPER_DATABASE_URL", self.url.as_str()),
            ("TOLLKEEPER_REDIS_URL", &redis),
            ("TOLLKEEPER_SECRET", SECRET),
            ("TOLLKEEPER_FLUSH_SECONDS", "1"),
            ("TOLLKEEPER_FLUSH_LAG_SECONDS", self.lag),
            // Keys go on being verified, and counted, for as long as a test takes the database away.
            ("TOLLKEEPER_CACHE_STALE_SECONDS", "3600"),
        ];
        // A machine that is too busy for the patience of a start gets another try, as a supervisor would give it.
        let mut node = None;
        eventually("the node starts", || {
            node = start(folder.path(), &env).ok();
            node.is_some()
        });
        node.expect("it has started")
    }

    pub(super) fn client(&self, node: usize) -> Client {
        let (node, _) = &self.nodes[node];
        Client::new(node.url(), node.root_key())
    }

    pub(super) fn flush(&self) {
        for node in 0..self.nodes.len() {
            self.client(node).data("usage.flush", &json!({}));
        }
    }
}

/// Kills one node after the other; wipes Redis and restarts the database once each on the way.
fn trouble(rounds: usize, round: Duration) {
    let mut fleet = Fleet::of(2, "0");
    let keys = Keys::make(&mut fleet.client(0), 20);
    let books = Books::default();
    for number in 0..rounds {
        let stop = AtomicBool::new(false);
        let victim = number % 2;
        thread::scope(|scope| {
            for caller in 0..4_usize {
                let (client, stop) = (fleet.client(caller % 2), &stop);
                let (books, keys) = (&books, &keys);
                scope.spawn(move || {
                    let stop = || stop.load(Ordering::Relaxed);
                    books.drive(client, keys, caller * 1_000, &stop);
                });
            }
            pause(round / 2);
            if number == 1 {
                fleet.redis.flushall();
            }
            if number == 2 {
                fleet.postgres.stop();
                pause(Duration::from_millis(300));
                fleet.postgres.again().expect("the database comes back");
            }
            pause(round / 2);
            fleet.nodes[victim].0.kill9().expect("it can be killed");
            stop.store(true, Ordering::Relaxed);
        });
        fleet.nodes[victim].0 = fleet.start(&fleet.nodes[victim].1);
    }
    fleet.flush();
    books.reconcile(&format!("fleet, {rounds} kills"), &mut fleet.client(0));
    fleet.flush();
    books.reconcile("fleet, flushed again", &mut fleet.client(1));
}

#[test]
fn killing_nodes_wiping_redis_and_restarting_the_database_neither_loses_nor_doubles_usage() {
    trouble(5, Duration::from_millis(1_500));
}

#[test]
#[ignore = "takes a minute; make soak"]
fn a_minute_of_trouble_neither_loses_nor_doubles_usage() {
    trouble(30, Duration::from_secs(2));
}

#[test]
fn usage_waits_in_a_bucket_of_its_minute_and_goes_to_the_ledger_by_itself() {
    let fleet = Fleet::of(1, "3600");
    let keys = Keys::make(&mut fleet.client(0), 1);
    let mut client = fleet.client(0);
    for _ in 0..7 {
        client.data("keys.verifyKey", &json!({"key": keys.good[0]}));
    }
    client.data("keys.verifyKey", &json!({"key": keys.bad}));
    let buckets = || -> Vec<String> {
        let names = fleet.redis.ask(&["KEYS", "usage:buffer:minute:*"]);
        let names = names.lines().map(str::trim).filter(|name| name.starts_with("usage:"));
        names.map(str::to_owned).collect()
    };
    eventually("there is a bucket", || !buckets().is_empty());
    for name in buckets() {
        let minute = name.strip_prefix("usage:buffer:minute:").expect("the prefix");
        assert!(minute.len() == 12 && minute.bytes().all(|byte| byte.is_ascii_digit()), "{name}");
        let fields = fleet.redis.ask(&["HKEYS", &name]);
        assert!(fields.contains("|req") || fields.contains("|denied"), "{fields}");
        let left: u64 = fleet.redis.ask(&["TTL", &name]).trim().parse().expect("a number");
        assert!((1..=14 * 86_400).contains(&left), "{left}");
    }
    // Inside the lag nothing is flushed but on demand, and what was flushed is taken out.
    assert_eq!(usage(&mut client, "day"), Vec::<serde_json::Value>::new());
    let flushed = client.data("usage.flush", &json!({}));
    assert!(flushed["records"].as_u64().unwrap() >= 2, "{flushed}");
    let rows = usage(&mut client, "day");
    let sum = |field: &str| rows.iter().map(|row| row[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("requests"), sum("denied")), (7, 1));
    assert_eq!(buckets(), Vec::<String>::new());
}

#[test]
fn a_database_that_comes_back_as_it_was_before_is_told_everything_again() {
    let fleet = Fleet::of(1, "0");
    let keys = Keys::make(&mut fleet.client(0), 3);
    let mut client = fleet.client(0);
    let spend = |client: &mut Client, times: usize| {
        for number in 0..times {
            client.data("keys.verifyKey", &json!({"key": keys.good[number % 3]}));
        }
    };
    spend(&mut client, 30);
    client.data("usage.flush", &json!({}));
    let database = fleet.url.rsplit('/').next().expect("a name").to_owned();
    let tables = ["usage_ledger", "usage_minute", "usage_record"];
    let run = |statement: String| fleet.postgres.ask(&database, &statement).expect("it runs");
    for table in tables {
        run(format!("CREATE TABLE saved_{table} AS SELECT * FROM {table}"));
    }
    spend(&mut client, 12);
    client.data("usage.flush", &json!({}));
    for table in tables {
        run(format!(
            "BEGIN; DELETE FROM {table}; INSERT INTO {table} SELECT * FROM saved_{table}; COMMIT"
        ));
    }
    let total = |client: &mut Client| {
        usage(client, "day").iter().map(|row| row["requests"].as_u64().unwrap()).sum::<u64>()
    };
    client.data("usage.flush", &json!({}));
    assert_eq!(total(&mut client), 42);
    client.data("usage.flush", &json!({}));
    assert_eq!(total(&mut client), 42);
}
