//! What is read for the watch, and what follows from its word, on a real Redis and a real store.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tollkeeper_core::Boot;
use tollkeeper_decide::{LeaseTable, Mode, Patience};
use tollkeeper_redis::RedisUrl;
use tollkeeper_testkit::RedisServer;

fn info(text: &str) -> Value {
    Value::BulkString(text.as_bytes().to_vec())
}

#[test]
fn memory_is_read_from_what_redis_says_of_itself() {
    let text = "# Memory\r\nused_memory:900\r\nused_memory_human:900B\r\nmaxmemory_human:1K\r\nmaxmemory:1000\r\n";
    assert_eq!(memory_in(&info(text)), Some(Memory { used: 900, max: 1000 }));
}

#[test]
fn a_server_without_a_bound_says_nothing_of_its_memory() {
    assert_eq!(memory_in(&info("used_memory:900\r\nmaxmemory:0\r\n")), None);
    assert_eq!(memory_in(&info("")), None);
    assert_eq!(memory_in(&Value::Nil), None);
}

#[test]
fn what_the_ledger_counts_is_what_is_judged() {
    let mut reading = Reading { fallbacks: [3, 4], ..Reading::default() };
    reading.responses.extend([(200, 90), (404, 5), (500, 2), (503, 1)]);
    reading.decisions.buckets[2] = 7;
    reading.decisions.sum_ns = 70;
    let expected = Totals {
        requests: 98,
        server_errors: 3,
        timed: 7,
        took_ns: 70,
        fallbacks: 7,
        ..Totals::default()
    };
    assert_eq!(counted(&reading), expected);
}

#[test]
fn every_reason_is_counted_under_its_own_name() {
    let rollback = Rollback::new(true);
    for reason in Reason::ALL {
        rollback.count(reason);
    }
    rollback.count(Reason::RedisMemory);
    let counts: Vec<_> = rollback.counts().map(|(reason, count)| (reason.word(), count)).collect();
    let ones = ["redis_errors", "server_errors", "slow_responses"].map(|word| (word, 1));
    assert_eq!(counts, [&ones[..], &[("redis_memory", 2)]].concat());
}

const PATIENCE: Duration = Duration::from_secs(10);

async fn guard(redis: &RedisServer, store: Store) -> Guard {
    let (clock, url) = (Clock::start(), RedisUrl::parse(&redis.url()).unwrap());
    let origin = RedisOrigin::start(&url, Boot(1), &Handle::current());
    let table = LeaseTable::new(1_000, Boot(1));
    let steady = Arc::new(clock.steady());
    let (patience, own) = (Patience::USUAL, Handle::current());
    let fleet = Fleet::new(table, Arc::new(origin.clone()), Mode::Redis, steady, patience, own);
    store.first_mode(Mode::Redis, clock.now()).await.unwrap();
    let (rollback, ledger) = (Arc::new(Rollback::new(true)), Ledger::new(1));
    Guard { rollback, node: "a".into(), fleet, origin, ledger, store, clock }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_short_of_memory_sends_the_fleet_to_memory_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("t.db")).await.unwrap();
    let redis = RedisServer::start_with(&["--maxmemory", "2gb"]).unwrap();
    let guard = guard(&redis, store.clone()).await;
    let (rollback, fleet) = (Arc::clone(&guard.rollback), Arc::clone(&guard.fleet));
    let counted = move || rollback.counts().map(|(_, count)| count).sum::<u64>();
    let watching = tokio::spawn(guard.watch(Watch::new(6), Duration::from_millis(20)));
    let modes = || async { store.modes().await.unwrap().fleet };
    let quiet = timeout(Duration::from_millis(500), async {
        while modes().await == Some(Mode::Redis) {
            tokio::task::yield_now().await;
        }
    });
    assert!(quiet.await.is_err(), "with room enough nothing happens");
    let memory = redis.ask(&["INFO", "memory"]);
    let used = memory_in(&info(&memory)).unwrap().used;
    redis.ask(&["CONFIG", "SET", "maxmemory", &(used + used / 10).to_string()]);
    let rolled_back = timeout(PATIENCE, async {
        while modes().await == Some(Mode::Redis) {
            tokio::task::yield_now().await;
        }
    });
    assert!(rolled_back.await.is_ok(), "it goes to memory");
    timeout(PATIENCE, async {
        while counted() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    // The node goes on with the old mode until it has followed the change, and must not do it again.
    let again = timeout(Duration::from_millis(500), async {
        while counted() < 2 {
            tokio::task::yield_now().await;
        }
    });
    assert!(again.await.is_err());
    assert_eq!(fleet.modes.of_fleet(), Mode::Redis, "only the follower changes what counts here");
    watching.abort();
}
