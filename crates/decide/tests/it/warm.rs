//! What an ask needs before it is decided: a namespace, a permission, the limit that counts, its cells.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tollkeeper_core::{Cost, Limit, Millis, Quota, Sharing, Width};
use tollkeeper_decide::{
    CacheName, CellHasher, Cells, Decider, Freshness, KeyHash, Lifetime, LimitAsk, LimitCheck,
    Limited, Missing, RootKey, Warm, WarmError,
};

use crate::bank::{MemoryBank, ports};
use crate::memory::{Hold, MemoryDirectory, MemoryShelf, override_of, root_key, tenant};
use crate::world::settle_down;

const NOW: Millis = Millis(1_700_000_000_000);
const LIFETIME: Lifetime = Lifetime { fresh_ms: 10_000, stale_ms: 60_000 };

struct Node {
    directory: MemoryDirectory,
    shelf: MemoryShelf,
    decider: Arc<Decider>,
}

fn node(cells_max: usize) -> Node {
    let (directory, shelf) = (MemoryDirectory::default(), MemoryShelf::default());
    let decider = Decider::new(
        Arc::new(Cells::new(cells_max)),
        CellHasher::new([9; 16]),
        ports(&directory, &shelf, &MemoryBank::default()),
        LIFETIME,
        Handle::current(),
    );
    Node { directory, shelf, decider: Arc::new(decider) }
}

fn sliding(quota: u64) -> Limit {
    Limit::sliding_window(Quota::new(quota).unwrap(), Width::from_millis(60_000).unwrap())
}

fn check<'a>(namespace: &'a str, identifier: &'a str, quota: u64, cost: u64) -> LimitCheck<'a> {
    LimitCheck {
        namespace,
        identifier,
        limit: sliding(quota),
        cost: Cost::new(cost).unwrap(),
        sharing: Sharing::default(),
    }
}

// === impl Node ===

impl Node {
    async fn warm(
        &self,
        caller: &Arc<RootKey>,
        missing: Missing,
        checks: &[LimitCheck<'_>],
    ) -> Result<Warm, WarmError> {
        let ask = LimitAsk {
            caller: Arc::clone(caller),
            action: "limit",
            missing,
            once: false,
            checks: checks.into(),
        };
        self.decider.warm(&ask, NOW, &mut |_, _| ()).await
    }

    async fn limit(&self, checks: &[LimitCheck<'_>]) -> Limited {
        let warm = self.warm(&root_key(&["*"]), Missing::Refuse, checks).await.unwrap();
        self.decider.limit(warm, NOW).open()
    }
}

#[tokio::test]
async fn an_unknown_namespace_is_made_only_for_who_may() {
    let node = node(100);
    let new = [check("new", "id", 10, 1)];
    let narrow = root_key(&["ratelimit.*.limit"]);
    let refused = node.warm(&narrow, Missing::Create, &new).await.unwrap_err();
    assert!(
        matches!(refused, WarmError::Forbidden { action: "create_namespace", .. }),
        "{refused}"
    );
    let missing = node.warm(&root_key(&["*"]), Missing::Refuse, &new).await.unwrap_err();
    assert!(matches!(missing, WarmError::NamespaceMissing(name) if name == "new"));
    assert!(node.directory.names().is_empty());

    let may = root_key(&["ratelimit.*.create_namespace", "ratelimit.*.limit"]);
    let warm = node.warm(&may, Missing::Create, &new).await.unwrap();
    assert!(node.decider.limit(warm, NOW).open().passed);
    assert_eq!(node.directory.names(), ["new"]);
    node.warm(&narrow, Missing::Refuse, &new).await.unwrap();
}

#[tokio::test]
async fn a_deleted_namespace_is_gone_and_not_made_again() {
    let node = node(100);
    node.directory.add_deleted("old");
    let gone = node.warm(&root_key(&["*"]), Missing::Create, &[check("old", "id", 10, 1)]).await;
    assert!(matches!(gone.unwrap_err(), WarmError::NamespaceGone(name) if name == "old"));
    assert_eq!(node.directory.names(), ["old"]);
}

#[tokio::test]
async fn without_the_permission_on_every_namespace_of_a_bundle_nothing_is_spent() {
    let node = node(100);
    node.directory.add("mine", Vec::new());
    node.directory.add("theirs", Vec::new());
    let caller = root_key(&["ratelimit.rlns_mine.limit"]);
    let both = [check("mine", "id", 10, 1), check("theirs", "id", 10, 1)];
    let refused = node.warm(&caller, Missing::Refuse, &both).await.unwrap_err();
    assert!(
        matches!(&refused, WarmError::Forbidden { id, action: "limit", .. } if id == "rlns_theirs")
    );
    assert_eq!(node.decider.cells().stats().live, 0);
    node.warm(&caller, Missing::Refuse, &both[..1]).await.unwrap();
}

#[tokio::test]
async fn a_namespace_is_found_by_name_and_by_id_and_counts_once() {
    let node = node(100);
    node.directory.add("api", Vec::new());
    assert_eq!(node.limit(&[check("api", "id", 10, 1)]).await.limits[0].outcome.remaining, 9);
    assert_eq!(node.limit(&[check("rlns_api", "id", 10, 1)]).await.limits[0].outcome.remaining, 8);
}

#[tokio::test]
async fn an_override_replaces_the_limit_that_was_asked_for() {
    let node = node(100);
    node.directory.add("api", vec![override_of("vip", 5, 1000), override_of("v*", 0, 1000)]);
    let exact = node.limit(&[check("api", "vip", 10, 1)]).await.limits.remove(0);
    assert_eq!((exact.outcome.limit, exact.outcome.remaining), (5, 4));
    assert_eq!(exact.override_id.as_deref(), Some("rlor_vip"));
    let blocked = node.limit(&[check("api", "visitor", 10, 1)]).await;
    assert!(!blocked.passed);
    assert_eq!(blocked.limits[0].override_id.as_deref(), Some("rlor_v*"));
    let plain = node.limit(&[check("api", "other", 10, 1)]).await.limits.remove(0);
    assert_eq!((plain.outcome.limit, plain.override_id), (10, None));
}

#[tokio::test]
async fn a_changed_override_counts_from_the_forget_on() {
    let node = node(100);
    node.directory.add("api", Vec::new());
    assert_eq!(node.limit(&[check("api", "id", 10, 1)]).await.limits[0].limit, sliding(10));
    node.directory.replace("api", vec![override_of("id", 3, 60_000)]);
    assert_eq!(node.limit(&[check("api", "id", 10, 1)]).await.limits[0].limit, sliding(10));
    node.decider.forget_namespace(&tenant().id, &["api", "rlns_api"]);
    // The same algorithm and width: the new limit goes on counting where the old one was.
    let one = node.limit(&[check("api", "id", 10, 1)]).await.limits.remove(0);
    assert_eq!((one.limit, one.outcome.remaining), (sliding(3), 0));
}

#[tokio::test]
async fn a_cost_of_zero_never_denies() {
    let node = node(100);
    node.directory.add("api", vec![override_of("blocked", 0, 1000)]);
    assert!(node.limit(&[check("api", "id", 3, 3)]).await.passed);
    for checks in [
        vec![check("api", "id", 3, 0)],
        vec![check("api", "blocked", 3, 0)],
        vec![check("api", "id", 3, 0), check("api", "blocked", 3, 0), check("api", "new", 3, 1)],
    ] {
        let limited = node.limit(&checks).await;
        assert!(limited.passed && limited.limits[0].outcome.remaining == 0, "{limited:?}");
    }
}

#[tokio::test]
async fn a_namespace_is_loaded_once_while_it_is_fresh() {
    let node = node(100);
    node.directory.add("api", Vec::new());
    for _ in 0..100 {
        node.limit(&[check("api", "id", 1000, 1), check("api", "other", 1000, 1)]).await;
    }
    assert_eq!(node.directory.loads(), 1);
    let mut seen = Vec::new();
    for now in [NOW, NOW + 10_001, NOW + 90_000] {
        node.decider
            .namespace(&tenant(), "api", now, &mut |_, fresh| seen.push(fresh))
            .await
            .unwrap();
    }
    assert_eq!(seen, [Freshness::Fresh, Freshness::Stale, Freshness::Miss]);
}

#[tokio::test]
async fn storage_that_does_not_answer_is_neither_absence_nor_a_denial() {
    let node = node(100);
    node.directory.add("api", Vec::new());
    node.directory.fail(true);
    let caller = root_key(&["*"]);
    let failed = node.warm(&caller, Missing::Create, &[check("api", "id", 10, 1)]).await;
    assert!(matches!(failed.unwrap_err(), WarmError::Origin(_)));
    assert_eq!(node.directory.names(), ["api"]);
    node.directory.fail(false);
    assert!(node.limit(&[check("api", "id", 10, 1)]).await.passed);
    let mut seen = Vec::new();
    let hash = KeyHash([1; 32]);
    let unknown =
        node.decider.root_key(hash, NOW, &mut |name, fresh| seen.push((name, fresh))).await;
    assert!(unknown.unwrap().is_none());
    assert_eq!(seen, [(CacheName::RootKey, Freshness::Miss)]);
}

#[tokio::test]
async fn a_parked_cell_is_never_answered_from_nothing() {
    let node = node(1);
    node.directory.add("api", Vec::new());
    node.limit(&[check("api", "a", 10, 4)]).await;
    node.limit(&[check("api", "b", 10, 1)]).await;
    for _ in 0..3 {
        node.decider.overflow().shelve().await.unwrap();
    }
    assert_eq!(node.shelf.len(), 1);
    node.shelf.fail(true);
    let caller = root_key(&["*"]);
    let asked = node.warm(&caller, Missing::Refuse, &[check("api", "a", 10, 1)]).await;
    assert!(matches!(asked.unwrap_err(), WarmError::Origin(_)));
    node.shelf.fail(false);
    assert_eq!(node.limit(&[check("api", "a", 10, 1)]).await.limits[0].outcome.remaining, 5);
}

#[tokio::test(start_paused = true)]
async fn a_first_ask_is_never_denied_for_lack_of_room() {
    let node = node(1);
    node.directory.add("api", Vec::new());
    node.shelf.fill(true);
    // More than the parking holds, with a shelf that takes none of it.
    for number in 0..65_600 {
        assert!(node.limit(&[check("api", &number.to_string(), 10, 1)]).await.passed);
    }
    assert!(node.decider.overflow().shelve().await.is_err());
    let stats = node.decider.cells().stats();
    assert_eq!((stats.live, stats.evicted, stats.lost), (1, 65_599, 65_599 - 65_536));
}

#[tokio::test]
async fn a_reset_runs_to_its_end_even_if_whoever_asked_is_gone() {
    let node = node(1);
    node.directory.add("api", Vec::new());
    node.limit(&[check("api", "a", 10, 4)]).await;
    node.limit(&[check("api", "b", 10, 4)]).await;
    node.shelf.hold(Hold::BeforeWriting);
    let decider = Arc::clone(&node.decider);
    let round = tokio::spawn(async move { decider.overflow().shelve().await });
    settle_down().await;
    let found =
        node.decider.namespace(&tenant(), "api", NOW, &mut |_, _| ()).await.unwrap().unwrap();
    // Polled once, so that it waits for the round, and then dropped.
    let tenant_id = tenant().id;
    let reset =
        tokio::time::timeout(Duration::ZERO, node.decider.reset(&tenant_id, &found.tag, None));
    assert!(reset.await.is_err());
    node.shelf.release();
    round.await.unwrap().unwrap();
    let other = node.decider.hasher().namespace("nobody", "nothing");
    node.decider.reset(&tenant().id, &other, None).await.unwrap();
    for name in ["a", "b"] {
        assert_eq!(node.limit(&[check("api", name, 10, 1)]).await.limits[0].outcome.remaining, 9);
    }
}

#[tokio::test]
async fn a_reset_between_looking_and_deciding_counts_for_its_own_cells_and_no_others() {
    for (reset, remaining) in [("other", 5), ("a", 9)] {
        let node = node(1);
        node.directory.add("api", Vec::new());
        node.limit(&[check("api", "a", 10, 4)]).await;
        node.limit(&[check("api", "b", 10, 1)]).await;
        for _ in 0..3 {
            node.decider.overflow().shelve().await.unwrap();
        }
        let asked = [check("api", "a", 10, 1)];
        let warm = node.warm(&root_key(&["*"]), Missing::Refuse, &asked).await.unwrap();
        let found = node.decider.namespace(&tenant(), "api", NOW, &mut |_, _| ()).await.unwrap();
        node.decider.reset(&tenant().id, &found.unwrap().tag, Some(reset)).await.unwrap();
        let limited = node.decider.limit(warm, NOW).open();
        assert_eq!(limited.limits[0].outcome.remaining, remaining, "{reset}");
    }
}
