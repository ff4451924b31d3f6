//! A change of mode is not worth a second quota: what nodes admitted in memory counts in Redis, whichever way leads there.

mod bundles;

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Handle;
use tollkeeper_core::{
    Algorithm, Boot, Cost, Limit, Millis, Quota, Record, Sharing, Take, Taken, Width, Window,
};
use tollkeeper_decide::{
    Asking, CellHasher, CellName, Cells, Decider, Fleet, History, LeaseTable, Lifetime, LimitAsk,
    LimitCheck, Missed, Missing, Mode, News, Origin, OriginError, Patience, Scope, Warm,
};

use crate::bank::{MemoryBank, ports};
use crate::memory::{MemoryDirectory, MemoryShelf, root_key, tenant};
use crate::world::settle_down;

const START: Millis = Millis(1_700_000_000_123);
const MINUTE: u64 = 60_000;
const QUOTA: u64 = 100;

/// By identifier, and window where each has a record of its own.
type Records = HashMap<(Box<str>, u64), Option<Record>>;

/// Shared counters, which may fall silent, and one clock for everybody.
#[derive(Default)]
struct Shared {
    records: Mutex<Records>,
    now: AtomicU64,
    silent: AtomicBool,
}

struct Redis(Arc<Shared>);

struct Node {
    shared: Arc<Shared>,
    fleet: Arc<Fleet>,
    decider: Decider,
}

/// All four, so wide that nothing comes back while a test runs.
fn limits(quota: u64) -> [Limit; 4] {
    let (quota, width) = (Quota::new(quota).unwrap(), Width::from_millis(MINUTE).unwrap());
    [
        Limit::fixed_window(quota, Window::Aligned(width)),
        Limit::sliding_window(quota, width),
        Limit::token_bucket(quota, width, None),
        Limit::sliding_log(quota, width).unwrap(),
    ]
}

/// Nodes with one Redis, which count in this mode since they began.
fn nodes<const N: usize>(mode: Mode) -> [Node; N] {
    let shared = Arc::new(Shared::default());
    shared.now.store(START.0, Ordering::Relaxed);
    std::array::from_fn(|at| Node::new(&shared, Boot(at as u64 + 1), mode))
}

// === impl Shared ===

impl Shared {
    fn now(&self) -> Millis {
        Millis(self.now.load(Ordering::Relaxed))
    }

    fn take(&self, name: &CellName, take: &Take) -> Result<Taken, Missed> {
        if self.silent.load(Ordering::Relaxed) {
            return Err(Missed::Silent);
        }
        let win = match take.limit.algorithm {
            Algorithm::FixedWindow(_) => take.win,
            _ => 0,
        };
        let mut records = self.records.lock().unwrap();
        let record = records.entry((name.identifier.clone(), win)).or_default();
        Ok(Record::take(record, take, false, self.now()))
    }
}

// === impl Redis ===

impl Origin for Redis {
    fn take(&self, name: &Arc<CellName>, take: &Take, _: Duration) -> Asking<Taken> {
        let (shared, name, take) = (Arc::clone(&self.0), Arc::clone(name), *take);
        Box::pin(async move {
            tokio::task::yield_now().await;
            shared.take(&name, &take)
        })
    }

    fn server(&self, _: &CellName) -> usize {
        0
    }

    fn servers(&self) -> usize {
        1
    }

    fn is_connected(&self, _: usize) -> bool {
        true
    }

    fn probe(&self, _: usize) -> Asking<History> {
        Box::pin(async { Ok(History::Whole) })
    }

    fn members(&self) -> Asking<u64> {
        Box::pin(async { Ok(1) })
    }

    fn leave(&self) -> Asking<()> {
        Box::pin(async { Ok(()) })
    }

    fn announce(&self, _: &News) {}

    fn reset(&self, _: &Arc<Scope>, _: Option<&str>) -> Asking<u64> {
        if self.0.silent.load(Ordering::Relaxed) {
            return Box::pin(async { Err(Missed::Silent) });
        }
        for record in self.0.records.lock().unwrap().values_mut().flatten() {
            record.reset();
        }
        Box::pin(async { Ok(0) })
    }
}

// === impl Node ===

impl Node {
    fn new(shared: &Arc<Shared>, boot: Boot, mode: Mode) -> Self {
        let clock = Arc::clone(shared);
        let fleet = Fleet::new(
            LeaseTable::new(1024, boot),
            Arc::new(Redis(Arc::clone(shared))),
            mode,
            Arc::new(move || clock.now()),
            Patience::USUAL,
            Handle::current(),
        );
        fleet.table().set_nodes(2);
        let directory = MemoryDirectory::default();
        directory.add("api", Vec::new());
        let decider = Decider::new(
            Arc::new(Cells::new(10_000)),
            CellHasher::new([9; 16]),
            ports(&directory, &MemoryShelf::default(), &MemoryBank::default()),
            Lifetime { fresh_ms: 3_600_000, stale_ms: 7_200_000 },
            Handle::current(),
        );
        let decider = decider.sharing(Arc::clone(&fleet));
        Self { shared: Arc::clone(shared), fleet, decider }
    }

    async fn warm(&self, identifier: &str, limit: Limit, cost: u64) -> Warm {
        self.warm_all(&[(identifier, limit, cost)]).await
    }

    async fn warm_all(&self, asks: &[(&str, Limit, u64)]) -> Warm {
        let checks = asks.iter().map(|(identifier, limit, cost)| LimitCheck {
            namespace: "api",
            identifier,
            limit: *limit,
            cost: Cost::new(*cost).unwrap(),
            sharing: Sharing::default(),
        });
        let ask = LimitAsk {
            caller: root_key(&["*"]),
            action: "limit",
            missing: Missing::Refuse,
            once: false,
            checks: checks.collect(),
        };
        self.decider.warm(&ask, self.shared.now(), &mut |_, _| ()).await.unwrap()
    }

    /// What is admitted of so many single units, one after the other.
    async fn spend(&self, identifier: &str, limit: Limit, times: u64) -> u64 {
        let mut admitted = 0;
        for _ in 0..times {
            admitted += u64::from(self.ask(identifier, limit, 1).await);
        }
        admitted
    }

    async fn ask(&self, identifier: &str, limit: Limit, cost: u64) -> bool {
        let warm = self.warm(identifier, limit, cost).await;
        let passed = self.decider.limit(warm, self.shared.now()).open().passed;
        settle_down().await;
        passed
    }

    fn change(&self, mode: Mode) {
        self.fleet.modes.change(mode, HashMap::new(), self.shared.now());
    }

    /// The mode of the one tenant, which differs from the fleet's.
    fn change_tenant(&self, fleet: Mode, own: Mode) {
        self.fleet.modes.change(fleet, HashMap::from([(tenant().id, own)]), self.shared.now());
    }
}

#[tokio::test]
async fn what_was_spent_in_memory_counts_in_redis_also_by_the_way_of_shadow() {
    for limit in limits(QUOTA) {
        for compared in [0, 1, 15] {
            let [node] = nodes(Mode::Memory);
            assert_eq!(node.spend("ann", limit, 60).await, 60);
            node.change(Mode::Shadow);
            assert_eq!(node.spend("ann", limit, compared).await, compared);
            node.change(Mode::Redis);
            let more = node.spend("ann", limit, QUOTA).await;
            assert_eq!(60 + compared + more, QUOTA, "{compared} compared, {limit:?}");
        }
    }
}

#[tokio::test]
async fn a_tenant_that_goes_the_way_of_shadow_by_itself_has_no_second_quota() {
    for limit in limits(QUOTA) {
        for compared in [0, 15] {
            let [node] = nodes(Mode::Memory);
            assert_eq!(node.spend("ann", limit, 60).await, 60);
            node.change_tenant(Mode::Memory, Mode::Shadow);
            assert_eq!(node.spend("ann", limit, compared).await, compared);
            node.change_tenant(Mode::Memory, Mode::Redis);
            let more = node.spend("ann", limit, QUOTA).await;
            assert_eq!(60 + compared + more, QUOTA, "{compared} compared, {limit:?}");
        }
    }
}

#[tokio::test]
async fn who_was_in_shadow_before_is_not_charged_because_others_leave_memory() {
    for limit in limits(QUOTA) {
        let [node] = nodes(Mode::Memory);
        node.change_tenant(Mode::Memory, Mode::Shadow);
        node.shared.now.fetch_add(2 * MINUTE, Ordering::Relaxed);
        assert_eq!(node.spend("ann", limit, 60).await, 60);
        node.change_tenant(Mode::Shadow, Mode::Shadow);
        assert_eq!(node.spend("ann", limit, 5).await, 5);
        node.change_tenant(Mode::Shadow, Mode::Redis);
        assert_eq!(node.spend("ann", limit, QUOTA).await, 35, "{limit:?}");
    }
}

#[tokio::test]
async fn nodes_that_spent_in_memory_share_what_is_left_after_the_way_of_shadow() {
    for limit in limits(QUOTA) {
        let [one, two] = nodes(Mode::Memory);
        let mut spent = one.spend("ann", limit, 40).await + two.spend("ann", limit, 25).await;
        one.change(Mode::Shadow);
        two.change(Mode::Shadow);
        for _ in 0..5 {
            spent += one.spend("ann", limit, 1).await + two.spend("ann", limit, 1).await;
        }
        assert_eq!(spent, 75);
        one.change(Mode::Redis);
        two.change(Mode::Redis);
        for _ in 0..QUOTA {
            spent += one.spend("ann", limit, 1).await + two.spend("ann", limit, 1).await;
        }
        assert!((QUOTA - 5..=QUOTA).contains(&spent), "{spent} by {limit:?}");
    }
}

#[tokio::test]
async fn what_redis_did_not_hear_in_shadow_it_is_told_later() {
    for limit in limits(QUOTA) {
        let [node] = nodes(Mode::Memory);
        assert_eq!(node.spend("ann", limit, 60).await, 60);
        assert_eq!(node.spend("bob", limit, 60).await, 60);
        node.change(Mode::Shadow);
        assert_eq!(node.spend("bob", limit, 1).await, 1);
        node.shared.silent.store(true, Ordering::Relaxed);
        assert_eq!(node.spend("ann", limit, 1).await, 1);
        assert!(node.ask("bob", limit, 13).await);
        tokio::time::timeout(Duration::from_millis(50), std::future::pending::<()>())
            .await
            .unwrap_err();
        node.shared.silent.store(false, Ordering::Relaxed);
        // The one is compared once more, the other is not.
        assert_eq!(node.spend("ann", limit, 1).await, 1);
        node.change(Mode::Redis);
        assert_eq!(node.spend("ann", limit, QUOTA).await, 38, "{limit:?}");
        assert_eq!(node.spend("bob", limit, QUOTA).await, 26, "{limit:?}");
    }
}

#[tokio::test]
async fn what_too_many_comparisons_at_once_leave_out_is_told_later() {
    const MANY: u64 = 2_000;
    for limit in limits(MANY) {
        let [node] = nodes(Mode::Memory);
        assert_eq!(node.spend("ann", limit, 500).await, 500);
        node.change(Mode::Shadow);
        for _ in 0..1_200 {
            let warm = node.warm("ann", limit, 1).await;
            assert!(node.decider.limit(warm, node.shared.now()).open().passed);
        }
        assert!(node.fleet.shadowed.skipped() > 0, "all were compared");
        for _ in 0..3_000 {
            tokio::task::yield_now().await;
        }
        node.change(Mode::Redis);
        let more = node.spend("ann", limit, MANY).await;
        assert!((295..=300).contains(&more), "{more} more by {limit:?}");
    }
}

#[tokio::test]
async fn counters_that_were_set_back_in_shadow_are_told_to_nobody() {
    for limit in limits(QUOTA) {
        let [node] = nodes(Mode::Memory);
        assert_eq!(node.spend("ann", limit, 60).await, 60);
        node.change(Mode::Shadow);
        assert_eq!(node.spend("ann", limit, 5).await, 5);
        let tag = CellHasher::new([9; 16]).namespace(&tenant().slug, "api");
        node.decider.reset(&tenant().id, &tag, Some("ann")).await.unwrap();
        assert_eq!(node.spend("ann", limit, 5).await, 5);
        node.change(Mode::Redis);
        assert_eq!(node.spend("ann", limit, QUOTA).await, QUOTA - 5, "{limit:?}");
    }
}

/// Gone before there can be an answer.
async fn ask_and_leave(node: &Node, limit: Limit) {
    let mut asking = Box::pin(node.warm("ann", limit, 1));
    poll_fn(|context| {
        assert!(asking.as_mut().poll(context).is_pending(), "it was answered at once");
        Poll::Ready(())
    })
    .await;
}

#[tokio::test]
async fn who_leaves_while_redis_is_told_takes_nothing_of_it_along() {
    for limit in limits(QUOTA) {
        for silent in [false, true] {
            let [node] = nodes(Mode::Memory);
            assert_eq!(node.spend("ann", limit, 60).await, 60);
            node.change(Mode::Redis);
            node.shared.silent.store(silent, Ordering::Relaxed);
            ask_and_leave(&node, limit).await;
            settle_down().await;
            node.shared.silent.store(false, Ordering::Relaxed);
            let more = node.spend("ann", limit, QUOTA).await;
            assert_eq!(60 + more, QUOTA, "silent: {silent}, {limit:?}");
        }
    }
}

#[tokio::test]
async fn who_does_not_count_in_redis_needs_none_to_set_counters_back() {
    let limit = limits(QUOTA)[0];
    for fleet in [Mode::Memory, Mode::Shadow, Mode::Redis] {
        for own in [Mode::Memory, Mode::Shadow, Mode::Redis] {
            let [node] = nodes(fleet);
            node.fleet.table().set_nodes(1);
            node.change_tenant(fleet, own);
            assert_eq!(node.spend("ann", limit, QUOTA).await, QUOTA);
            node.shared.silent.store(true, Ordering::Relaxed);
            let tag = CellHasher::new([9; 16]).namespace(&tenant().slug, "api");
            let reset = node.decider.reset(&tenant().id, &tag, Some("ann")).await;
            if own == Mode::Redis {
                assert!(matches!(reset, Err(OriginError::NotReset)), "{fleet:?} {reset:?}");
            } else {
                assert_eq!(reset.unwrap(), 1, "{fleet:?} {own:?}");
                assert_eq!(node.spend("ann", limit, QUOTA).await, QUOTA, "{fleet:?} {own:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_way_from_redis_through_memory_and_shadow_back_to_redis_counts_all_once() {
    for limit in limits(QUOTA) {
        let [node] = nodes(Mode::Redis);
        node.fleet.table().set_nodes(1);
        assert_eq!(node.spend("ann", limit, 40).await, 40);
        node.change(Mode::Memory);
        assert_eq!(node.spend("ann", limit, 7).await, 7);
        node.change(Mode::Shadow);
        assert_eq!(node.spend("ann", limit, 5).await, 5);
        node.change(Mode::Redis);
        let more = node.spend("ann", limit, QUOTA).await;
        // A lease in hand when shared limits were given up counts as spent.
        assert!(52 + more <= QUOTA && more >= 30, "{more} more by {limit:?}");
    }
}

#[tokio::test]
async fn a_window_in_which_nobody_counted_in_memory_is_told_nothing_twice() {
    for limit in limits(QUOTA) {
        let [node] = nodes(Mode::Memory);
        assert_eq!(node.spend("ann", limit, 60).await, 60);
        node.change(Mode::Shadow);
        node.shared.now.fetch_add(2 * MINUTE, Ordering::Relaxed);
        assert_eq!(node.spend("ann", limit, 30).await, 30);
        node.change(Mode::Redis);
        assert_eq!(node.spend("ann", limit, QUOTA).await, 70, "{limit:?}");
    }
}
