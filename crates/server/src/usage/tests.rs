//! Rounds against a real database and a real Redis, about minutes that are over: what settles, and what brings things back.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tollkeeper_account::{Journal, JournalError};
use tollkeeper_core::{Boot, Component, Millis, Minute, Usage};
use tollkeeper_decide::Origin;
use tollkeeper_redis::{RedisOrigin, RedisUrl, UsageBuffer};
use tollkeeper_store::Store;
use tollkeeper_testkit::RedisServer;

use super::{Pace, UsageFlow};
use crate::clock::Clock;

const KEYS: u64 = 50;

struct Bench {
    flow: UsageFlow,
    folder: TempDir,
    _journal: Journal,
}

/// A process that another test is just starting may hold the lock for a moment.
#[allow(clippy::disallowed_methods, reason = "nothing tells when that is over")]
async fn opened_journal(folder: &Path) -> Journal {
    for _ in 0..200 {
        match Journal::open(folder, Millis(1), |_| ()) {
            Err(JournalError::InUse { .. }) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            opened => return opened.unwrap().0,
        }
    }
    Journal::open(folder, Millis(1), |_| ()).unwrap().0
}

impl Bench {
    async fn new(redis: Option<&RedisServer>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::on(folder, redis).await
    }

    async fn on(folder: TempDir, redis: Option<&RedisServer>) -> Self {
        let journal = opened_journal(&folder.path().join("journal")).await;
        let (pages, former) = journal.pages().unwrap();
        let store = opened(&folder.path().join("a.db")).await;
        let buffer = match redis {
            Some(server) => Some(buffer(server).await),
            None => None,
        };
        let flow = UsageFlow::new(Arc::new(pages), former, store, buffer, Clock::start(), 0);
        Self { flow, folder, _journal: journal }
    }

    /// As a process that is gone: the lock of the journal is free.
    fn end(self) -> TempDir {
        self.folder
    }

    /// Counts in minutes that have been over for a while.
    fn count(&self, minutes_ago: u32, times: u64) {
        let minute = Minute(Minute::of(self.flow.clock.now()).0 - minutes_ago);
        for number in 0..times {
            let key = format!("key_{}", number % KEYS).into();
            let slot = self.flow.pages.find(&"api_1".into(), &key, minute).unwrap();
            self.flow.pages.add(slot, Usage::request());
        }
    }

    async fn round(&self) {
        self.flow.flush(Pace::InTime).await.unwrap();
    }

    fn waiting(&self) -> u64 {
        self.flow.reading().pages.waiting
    }

    /// What the ledger shows of the last hour.
    async fn ledger(&self) -> Vec<Component> {
        let last = Minute::of(self.flow.clock.now()).0;
        let boot = tollkeeper_core::boot_of_text(&self.flow.pages.boot_text()).unwrap();
        let minutes = last - 60..=last;
        let asked = minutes.flat_map(|minute| (0..KEYS).map(move |key| (minute, key)));
        let asked: Vec<Component> = asked
            .map(|(minute, key)| Component {
                minute: Minute(minute),
                boot,
                project_id: "api_1".into(),
                key_id: format!("key_{key}").into(),
                usage: Usage::default(),
            })
            .collect();
        self.flow.store.shown_usage(&asked).await.unwrap()
    }

    async fn shown(&self) -> u64 {
        self.ledger().await.iter().map(|one| one.usage.requests).sum()
    }
}

async fn opened(path: &Path) -> Store {
    Store::open(path).await.unwrap()
}

async fn buffer(server: &RedisServer) -> UsageBuffer {
    let url: RedisUrl = server.url().parse().unwrap();
    let origin = RedisOrigin::start(&url, Boot(1), &Handle::current());
    while !(origin.servers() > 0 && origin.is_connected(0)) {
        tokio::task::yield_now().await;
    }
    UsageBuffer::new(origin.redis().clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_ends_while_requests_go_on() {
    let bench = Bench::new(None).await;
    bench.count(0, 100);
    let stop = AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        let counting = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                bench.count(0, KEYS);
            }
        });
        let rounds = async { timeout(Duration::from_mins(1), bench.round()).await };
        let ended = tokio::task::block_in_place(|| Handle::current().block_on(rounds));
        stop.store(true, Ordering::Relaxed);
        counting.join().unwrap();
        ended
    });
    assert!(ended.is_ok(), "a busy node never comes to the end of a round");
    bench.round().await;
    assert!(bench.shown().await >= 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_is_given_up_when_the_ledger_shows_it_and_its_minute_is_over() {
    let bench = Bench::new(None).await;
    bench.count(0, 100);
    bench.count(10, 100);
    assert_eq!(bench.waiting(), 2 * KEYS);
    bench.round().await;
    assert_eq!(bench.waiting(), KEYS, "this minute is not over");
    assert_eq!(bench.shown().await, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_restored_from_before_is_told_again_what_it_has_lost() {
    let mut bench = Bench::new(None).await;
    bench.count(10, 100);
    bench.round().await;
    // The backup: another file, with what the first round brought.
    let restored = opened(&bench.folder.path().join("b.db")).await;
    let now = bench.flow.clock.now();
    restored.apply_usage(&bench.ledger().await, now).await.unwrap();
    bench.count(9, 77);
    bench.count(10, 5);
    bench.round().await;
    assert_eq!((bench.waiting(), bench.shown().await), (0, 182));
    bench.flow.store = restored;
    bench.round().await;
    assert_eq!(bench.flow.reading().rewound, 1);
    bench.round().await;
    assert_eq!(bench.shown().await, 182);
    assert_eq!((bench.waiting(), bench.flow.reading().rewound), (0, 1));
}

/// What was told in one transaction is kept and what was told in the next is lost, and both were seen at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_lost_only_the_last_of_many_changes_is_found_out() {
    let mut bench = Bench::new(None).await;
    bench.count(10, KEYS);
    let early = bench.flow.pages.untold(usize::MAX).split_off(1);
    let early: Vec<_> = early.into_iter().map(|one| one.component).collect();
    let now = bench.flow.clock.now();
    let restored = opened(&bench.folder.path().join("b.db")).await;
    for store in [&bench.flow.store, &restored] {
        store.apply_usage(&early, now).await.unwrap();
    }
    bench.round().await;
    assert_eq!((bench.waiting(), bench.shown().await), (0, KEYS));
    bench.flow.store = restored;
    assert_eq!(bench.shown().await, KEYS - 1);
    bench.round().await;
    assert_eq!((bench.shown().await, bench.flow.reading().rewound), (KEYS, 1));
    bench.round().await;
    assert_eq!((bench.waiting(), bench.flow.reading().rewound), (0, 1), "no false alarm");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_is_gone_is_filled_again_from_the_pages() {
    let server = RedisServer::start().unwrap();
    let bench = Bench::new(Some(&server)).await;
    // Somebody else has the lock: this node tells Redis and brings nothing on.
    let buffer = bench.flow.buffer().unwrap().clone();
    while !buffer.lock("another").await.unwrap_or(false) {}
    bench.count(10, 100);
    bench.round().await;
    assert_eq!(bench.shown().await, 0);
    assert_ne!(server.ask(&["KEYS", "usage:buffer:minute:*"]), "");
    server.flushall();
    for _ in 0..200 {
        if bench.waiting() == 0 {
            break;
        }
        // Redis is vetted anew after it was wiped; rounds meanwhile keep everything.
        bench.round().await;
    }
    assert_eq!((bench.waiting(), bench.shown().await), (0, 100));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_stays_away_is_passed_by() {
    let mut server = RedisServer::start().unwrap();
    let bench = Bench::new(Some(&server)).await;
    server.stop();
    bench.count(10, 100);
    for _ in 0..4 {
        bench.round().await;
    }
    assert_eq!((bench.waiting(), bench.shown().await), (0, 100));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_away_costs_nothing_but_time() {
    let mut bench = Bench::new(None).await;
    let store = bench.flow.store.clone();
    let closed = opened(&bench.folder.path().join("gone.db")).await;
    closed.close().await;
    bench.flow.store = closed;
    bench.count(10, 100);
    for _ in 0..3 {
        bench.flow.flush(Pace::InTime).await.unwrap_err();
    }
    assert_eq!((bench.waiting(), bench.flow.reading().failures), (KEYS, 3));
    bench.flow.store = store;
    bench.round().await;
    assert_eq!((bench.waiting(), bench.shown().await), (0, 100));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_former_process_left_is_told_once_more_by_every_start_and_counted_once() {
    let bench = Bench::new(None).await;
    bench.count(10, 100);
    bench.round().await;
    bench.count(9, 30);
    let boot = bench.flow.pages.boot_text();
    let bench = Bench::on(bench.end(), None).await;
    assert_ne!(bench.flow.pages.boot_text(), boot);
    let flushed = bench.flow.flush(Pace::InTime).await.unwrap();
    assert_eq!((flushed.buckets(), flushed.records()), (2, KEYS));
    bench.round().await;
    let sum = bench.flow.round.lock().await.former[0].components.clone();
    let shown = bench.flow.store.shown_usage(&sum).await.unwrap();
    assert_eq!(shown.iter().map(|one| one.usage.requests).sum::<u64>(), 130);
}
