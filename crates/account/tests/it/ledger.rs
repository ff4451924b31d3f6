//! The ledger: every decision is counted once, under what it was, whichever thread made it.

use std::sync::Arc;

use tokio::runtime::Runtime;
use tollkeeper_account::{Code, Kind, Ledger, Reading};
use tollkeeper_core::{Cost, Limit, Millis, Permissions, Quota, Width};
use tollkeeper_decide::{
    CellHasher, CellKey, Cells, Decided, Decider, Directory, KeyHash, Lifetime, LimitAsk,
    LimitCheck, Limited, Loading, Missing, NamespaceRecord, ParkedCell, RootKey, Shelf, Tenant,
    Which,
};

use crate::changes::NOW;

/// Knows every namespace and has nothing on the shelf.
struct Anything;

impl Directory for Anything {
    fn root_key(&self, _: KeyHash) -> Loading<Option<RootKey>> {
        Box::pin(async { Ok(None) })
    }

    fn namespace(&self, _: &str, name: &str) -> Loading<Option<NamespaceRecord>> {
        let record = NamespaceRecord {
            id: name.into(),
            name: name.into(),
            deleted: false,
            overrides: Vec::new(),
        };
        Box::pin(async { Ok(Some(record)) })
    }

    fn create_namespace(&self, _: &str, _: &str) -> Loading<()> {
        Box::pin(async { Ok(()) })
    }
}

impl Shelf for Anything {
    fn put(&self, _: Vec<ParkedCell>) -> Loading<()> {
        Box::pin(async { Ok(()) })
    }

    fn find(&self, _: Vec<CellKey>) -> Loading<Vec<ParkedCell>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn remove(&self, _: Which) -> Loading<Vec<CellKey>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn sweep(&self, _: Millis) -> Loading<Vec<CellKey>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

struct Node {
    runtime: Runtime,
    decider: Decider,
    caller: Arc<RootKey>,
}

// === impl Node ===

impl Node {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .unwrap();
        let decider = Decider::new(
            Arc::new(Cells::new(1000)),
            CellHasher::new([1; 16]),
            Arc::new(Anything),
            Arc::new(Anything),
            Lifetime { fresh_ms: 1000, stale_ms: 2000 },
            runtime.handle().clone(),
        );
        let tenant = Tenant { id: "ws".into(), slug: "ws".into(), enabled: true };
        let permissions = Permissions::everything();
        let caller = Arc::new(RootKey { id: "rk".into(), tenant, permissions, enabled: true });
        Self { runtime, decider, caller }
    }

    fn decide(&self, identifier: &str, quota: u64) -> Decided<Limited> {
        let limit =
            Limit::sliding_window(Quota::new(quota).unwrap(), Width::from_millis(60_000).unwrap());
        let check = LimitCheck { namespace: "api", identifier, limit, cost: Cost::ONE };
        let ask = LimitAsk {
            caller: Arc::clone(&self.caller),
            action: "limit",
            missing: Missing::Refuse,
            checks: [check].into_iter().collect(),
        };
        let warm = self.runtime.block_on(self.decider.warm(&ask, NOW, &mut |_, _| ())).unwrap();
        self.decider.limit(warm, NOW)
    }
}

fn counted(reading: &Reading, kind: Kind, code: Code) -> u64 {
    reading.checks[kind as usize][code as usize]
}

#[test]
fn every_decision_is_counted_once_under_its_kind_and_code() {
    const THREADS: usize = 6;
    const EACH: usize = 300;
    let node = Node::new();
    // Fewer pages than threads: some share one.
    let ledger = Ledger::new(4);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (node, ledger) = (&node, ledger.at_page(thread));
            let kind = Kind::ALL[thread % Kind::ALL.len()];
            scope.spawn(move || {
                for _ in 0..EACH {
                    let decided = node.decide(&thread.to_string(), 100);
                    let answer = ledger.record(kind, decided);
                    assert_eq!(answer.at(), NOW);
                    assert_eq!(answer.made().limits.len(), 1);
                }
            });
        }
    });
    let reading = ledger.read();
    for kind in Kind::ALL {
        let both = [Code::Valid, Code::RateLimited].map(|code| counted(&reading, kind, code));
        assert_eq!(both, [200, 400], "{kind:?}");
    }
    assert_eq!(reading.checks.iter().flatten().sum::<u64>(), (THREADS * EACH) as u64);
    assert_eq!(ledger.at_page(3).read(), reading);
}

#[test]
fn the_labels_of_kinds_and_codes_are_all_different_and_in_order() {
    let mut labels: Vec<&str> = Kind::ALL.map(Kind::label).into();
    labels.extend(Code::ALL.map(Code::label));
    let count = labels.len();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), count);
    assert!(Kind::ALL.iter().enumerate().all(|(at, kind)| *kind as usize == at));
    assert!(Code::ALL.iter().enumerate().all(|(at, code)| *code as usize == at));
}
