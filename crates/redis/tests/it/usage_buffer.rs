//! Usage in buckets on a real server: repeats, lost replies, a wiped server and two workers change nothing but who does
//! the work.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use tokio::runtime::Handle;
use tollkeeper_core::{Boot, Component, Minute, Usage};
use tollkeeper_decide::Origin;
use tollkeeper_redis::{Marked, RedisOrigin, RedisUrl, UsageBuffer};
use tollkeeper_testkit::{Fault, FaultProxy, RedisCluster, RedisServer};

use crate::until;

const MINUTE: Minute = Minute(28_333_333);

async fn buffer(url: &str) -> (RedisOrigin, UsageBuffer) {
    let url: RedisUrl = url.parse().unwrap();
    let origin = RedisOrigin::start(&url, Boot(1), &Handle::current());
    until("it is connected", async || {
        let servers = origin.servers();
        servers > 0 && (0..servers).all(|server| origin.is_connected(server))
    })
    .await;
    let buffer = UsageBuffer::new(origin.redis().clone());
    (origin, buffer)
}

fn told(boot: u8, key: &str, requests: u64, bytes: u64) -> Component {
    Component {
        minute: MINUTE,
        boot: [boot; 16],
        project_id: Arc::from("api_1"),
        key_id: Arc::from(key),
        usage: Usage { requests, bytes, ..Usage::default() },
    }
}

type Totals = BTreeMap<([u8; 16], String), Usage>;

fn totals(components: &[Component]) -> Totals {
    let mut totals = Totals::new();
    for one in components {
        let known = totals.entry((one.boot, one.key_id.to_string())).or_default();
        *known = known.max(one.usage);
    }
    totals
}

async fn all(buffer: &UsageBuffer) -> Totals {
    let (mut found, mut from) = (Vec::new(), 0);
    loop {
        let part = buffer.read(MINUTE, from).await.unwrap();
        found.extend(part.components.iter().cloned());
        from = part.next;
        if from == 0 {
            return totals(&found);
        }
    }
}

/// As a worker does: reads, applies, takes out what it applied.
async fn drain(buffer: &UsageBuffer, ledger: &mut Totals) {
    let mut from = 0;
    loop {
        let part = buffer.read(MINUTE, from).await.unwrap();
        for (name, usage) in totals(&part.components) {
            let known = ledger.entry(name).or_default();
            *known = known.max(usage);
        }
        buffer.untell(MINUTE, &part).await.unwrap();
        from = part.next;
        if from == 0 {
            return;
        }
    }
}

#[tokio::test]
async fn a_bucket_is_named_by_its_minute_holds_totals_by_process_and_ends_after_fourteen_days() {
    let server = RedisServer::start().unwrap();
    let (_origin, buffer) = buffer(&server.url()).await;
    buffer.tell(&[told(7, "key_1", 3, 10)]).await.unwrap();
    let name = format!("usage:buffer:minute:{}", MINUTE.name());
    let boot = "07".repeat(16);
    assert_eq!(server.ask(&["HGET", &name, &format!("api_1|key_1|{boot}|req")]), "3");
    assert_eq!(server.ask(&["HGET", &name, &format!("api_1|key_1|{boot}|bytes")]), "10");
    assert_eq!(server.ask(&["HLEN", &name]), "2");
    let left: u64 = server.ask(&["TTL", &name]).parse().unwrap();
    assert!((13 * 86_400..=14 * 86_400).contains(&left), "{left}");
    let around = (Minute(MINUTE.0 - 2_000), Minute(MINUTE.0 + 2_000));
    assert_eq!(buffer.minutes(around.0, around.1).await.unwrap(), [MINUTE]);
    assert_eq!(buffer.minutes(around.0, Minute(MINUTE.0 - 1)).await.unwrap(), []);
}

#[tokio::test]
async fn what_is_told_again_or_late_never_lowers_a_total() {
    let server = RedisServer::start().unwrap();
    let (_origin, buffer) = buffer(&server.url()).await;
    for requests in [5, 3, 9, 9, 8] {
        buffer.tell(&[told(1, "key_1", requests, 0), told(2, "key_1", 1, 0)]).await.unwrap();
    }
    let expected = totals(&[told(1, "key_1", 9, 0), told(2, "key_1", 1, 0)]);
    assert_eq!(all(&buffer).await, expected);
}

#[tokio::test]
async fn what_grew_after_it_was_read_is_not_taken_out() {
    let server = RedisServer::start().unwrap();
    let (_origin, buffer) = buffer(&server.url()).await;
    buffer.tell(&[told(1, "key_1", 5, 0), told(1, "key_2", 5, 0)]).await.unwrap();
    let part = buffer.read(MINUTE, 0).await.unwrap();
    buffer.tell(&[told(1, "key_1", 6, 0)]).await.unwrap();
    buffer.untell(MINUTE, &part).await.unwrap();
    assert_eq!(all(&buffer).await, totals(&[told(1, "key_1", 6, 0)]));
    // Once more, as after a reply that was lost.
    buffer.untell(MINUTE, &part).await.unwrap();
    assert_eq!(all(&buffer).await, totals(&[told(1, "key_1", 6, 0)]));
}

#[tokio::test]
async fn what_others_wrote_into_a_bucket_is_neither_read_nor_taken_out() {
    let server = RedisServer::start().unwrap();
    let (_origin, buffer) = buffer(&server.url()).await;
    let name = format!("usage:buffer:minute:{}", MINUTE.name());
    server.ask(&["HSET", &name, "something", "else"]);
    let boot = "01".repeat(16);
    server.ask(&["HSET", &name, &format!("api_1|key_1|{boot}|req"), "no number"]);
    let mut ledger = Totals::new();
    drain(&buffer, &mut ledger).await;
    assert_eq!((ledger.len(), server.ask(&["HLEN", &name])), (0, "2".to_owned()));
    buffer.tell(&[told(1, "key_1", 4, 0)]).await.unwrap();
    assert_eq!(all(&buffer).await, totals(&[told(1, "key_1", 4, 0)]));
}

#[tokio::test]
async fn more_than_one_call_takes_is_told_read_and_taken_out() {
    let server = RedisServer::start().unwrap();
    let (_origin, buffer) = buffer(&server.url()).await;
    let many: Vec<_> = (0..7_000).map(|key| told(1, &format!("key_{key}"), key + 1, 1)).collect();
    buffer.tell(&many).await.unwrap();
    assert_eq!(all(&buffer).await, totals(&many));
    let mut ledger = Totals::new();
    // Taking out while walking may hide some from this walk, never for good.
    until("it is empty", async || {
        drain(&buffer, &mut ledger).await;
        buffer.minutes(MINUTE, MINUTE).await.unwrap().is_empty()
    })
    .await;
    assert_eq!(ledger, totals(&many));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_that_are_lost_and_a_server_that_is_wiped_cost_a_retry_and_nothing_else() {
    let server = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(server.port()).unwrap();
    let (_origin, buffer) = buffer(&format!("redis://{}", proxy.address())).await;
    let mut ledger = Totals::new();
    let mut told_so_far = Vec::new();
    for round in 1..=6_u64 {
        told_so_far =
            (0..20).map(|key| told(1, &format!("key_{key}"), round * (key + 1), round)).collect();
        proxy.set(Fault::DropReplies);
        // Applied or not: nobody can know.
        assert!(buffer.tell(&told_so_far).await.is_err());
        proxy.set(Fault::Pass);
        until("it answers", async || buffer.tell(&told_so_far).await.is_ok()).await;
        if round % 2 == 0 {
            server.flushall();
            // Scripts and all: what the pages hold is told again.
            until("it answers", async || buffer.tell(&told_so_far).await.is_ok()).await;
        }
        if round % 3 == 0 {
            drain(&buffer, &mut ledger).await;
        }
    }
    drain(&buffer, &mut ledger).await;
    assert_eq!(ledger, totals(&told_so_far));
}

#[tokio::test]
async fn one_worker_has_the_lock_until_it_gives_it_back() {
    let server = RedisServer::start().unwrap();
    let (_origin, buffer) = buffer(&server.url()).await;
    assert!(buffer.lock("a").await.unwrap());
    assert!(!buffer.lock("b").await.unwrap());
    let left: u64 = server.ask(&["TTL", "usage:buffer:flush:lock"]).parse().unwrap();
    assert!((1..=55).contains(&left), "{left}");
    buffer.unlock("b").await.unwrap();
    assert!(!buffer.lock("b").await.unwrap(), "it was not b's to give back");
    buffer.unlock("a").await.unwrap();
    assert!(buffer.lock("b").await.unwrap());
}

#[tokio::test]
async fn of_all_nodes_the_first_one_notes_a_use_in_half_a_minute() {
    let server = RedisServer::start().unwrap();
    let (_origin, one) = buffer(&server.url()).await;
    let (_other, two) = buffer(&server.url()).await;
    assert_eq!(one.first_uses(Marked::Key, &["key_1", "key_2"]).await.unwrap(), ["key_1", "key_2"]);
    assert_eq!(two.first_uses(Marked::Key, &["key_2", "key_3"]).await.unwrap(), ["key_3"]);
    assert_eq!(two.first_uses(Marked::Project, &["key_1"]).await.unwrap(), ["key_1"]);
    let left: u64 = server.ask(&["TTL", "usage:apikey:key_1"]).parse().unwrap();
    assert!((1..=30).contains(&left), "{left}");
    assert_ne!(server.ask(&["EXISTS", "usage:project:key_1"]), "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_cluster_everything_is_on_one_server_and_found_there() {
    let cluster = RedisCluster::start().unwrap();
    let (_origin, buffer) = buffer(&cluster.url()).await;
    let other = Component { minute: Minute(MINUTE.0 + 1), ..told(1, "key_1", 2, 0) };
    let both = [told(1, "key_1", 3, 10), other];
    until("its server takes it", async || buffer.tell(&both).await.is_ok()).await;
    let found = buffer.minutes(Minute(MINUTE.0 - 5), Minute(MINUTE.0 + 5)).await.unwrap();
    assert_eq!(found, [MINUTE, Minute(MINUTE.0 + 1)]);
    assert_eq!(all(&buffer).await, totals(&both[..1]));
    assert!(buffer.lock("a").await.unwrap());
    assert_eq!(buffer.first_uses(Marked::Key, &["key_1"]).await.unwrap(), ["key_1"]);
}

#[derive(Clone, Debug)]
enum Step {
    Tell { boot: u8, key: u8, more: u64 },
    TellOld { boot: u8, key: u8 },
    Read,
    TakeOut,
    Wipe,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..3_u8, 0..3_u8, 1..50_u64).prop_map(|(boot, key, more)| Step::Tell { boot, key, more }),
        2 => (1..3_u8, 0..3_u8).prop_map(|(boot, key)| Step::TellOld { boot, key }),
        3 => Just(Step::Read),
        3 => Just(Step::TakeOut),
        1 => Just(Step::Wipe),
    ]
}

/// The scripts beside their twin, a map of maxima: whatever happens, a ledger that applies what it reads by the larger
/// total, and is told again after a wipe, ends with the totals.
#[test]
fn the_scripts_keep_maxima_whatever_the_order() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.unwrap();
    let server = RedisServer::start().unwrap();
    let (_origin, buffer) = runtime.block_on(buffer(&server.url()));
    let config =
        ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let steps = proptest::collection::vec(step(), 1..40);
    let outcome = runner.run(&steps, |steps| {
        server.flushall();
        runtime.block_on(async {
            until("it answers", async || buffer.minutes(MINUTE, MINUTE).await.is_ok()).await;
            let (mut pages, mut held, mut ledger) = (Totals::new(), Totals::new(), Totals::new());
            let mut part = None;
            let name = |boot: u8, key: u8| ([boot; 16], format!("key_{key}"));
            for step in steps {
                match step {
                    Step::Tell { boot, key, more } => {
                        let page = pages.entry(name(boot, key)).or_default();
                        page.requests += more;
                        let one = told(boot, &format!("key_{key}"), page.requests, 0);
                        buffer.tell(std::slice::from_ref(&one)).await.unwrap();
                        held.insert(name(boot, key), one.usage);
                    }
                    Step::TellOld { boot, key } => {
                        // A message that was under way for long; the first one there can be.
                        let one = told(boot, &format!("key_{key}"), 1, 0);
                        if pages.contains_key(&name(boot, key)) {
                            buffer.tell(std::slice::from_ref(&one)).await.unwrap();
                            let known = held.entry(name(boot, key)).or_default();
                            *known = known.max(one.usage);
                        }
                    }
                    Step::Read => part = Some(buffer.read(MINUTE, 0).await.unwrap()),
                    Step::TakeOut => {
                        if let Some(part) = part.take() {
                            for (name, usage) in totals(&part.components) {
                                let known = ledger.entry(name.clone()).or_default();
                                *known = Usage::max(*known, usage);
                                if held.get(&name) == Some(&usage) {
                                    held.remove(&name);
                                }
                            }
                            buffer.untell(MINUTE, &part).await.unwrap();
                        }
                    }
                    Step::Wipe => {
                        server.flushall();
                        until("it answers", async || buffer.minutes(MINUTE, MINUTE).await.is_ok())
                            .await;
                        held.clear();
                    }
                }
                prop_assert_eq!(&all(&buffer).await, &held);
            }
            let again: Vec<_> = pages
                .iter()
                .map(|((boot, key), usage)| told(boot[0], key, usage.requests, 0))
                .collect();
            buffer.tell(&again).await.unwrap();
            drain(&buffer, &mut ledger).await;
            prop_assert_eq!(&ledger, &pages);
            Ok(())
        })
    });
    outcome.unwrap();
}
