//! Many keys that do not exist: storage is asked for so many of them and no more, and nobody else notices.

use std::sync::Arc;

use tokio::task::JoinSet;
use tollkeeper_core::Verdict;
use tollkeeper_decide::{KeyHash, KeyText, OriginError, VerifyAsk, WarmError};

use crate::keys::{NOW, Node, ask, node};

/// What the budget lets through at once, and then within the patience of those who wait.
const LOADS_MAX: usize = 1_125;

fn unknown<'a>(number: u64) -> VerifyAsk<'a> {
    let mut hash = [0xEE; 32];
    hash[..8].copy_from_slice(&number.to_be_bytes());
    let key = KeyText { ours: KeyHash(hash), imported: KeyHash(hash), intact: true };
    VerifyAsk { key: Some(key), ..ask(1) }
}

/// How many of so many were told that there is no such key; all others were told that nobody looked.
async fn flood(node: &Arc<Node>, keys: std::ops::Range<u64>) -> usize {
    let mut asks = JoinSet::new();
    for number in keys {
        let node = Arc::clone(node);
        asks.spawn(async move {
            match node.decider.warm_key(&unknown(number), NOW, &mut |_, _| ()).await {
                Ok(warm) => {
                    assert_eq!(node.decider.verify(warm, NOW).open().verdict, Verdict::NotFound);
                    true
                }
                Err(WarmError::Origin(OriginError::Spared)) => false,
                Err(other) => panic!("{other}"),
            }
        });
    }
    asks.join_all().await.into_iter().filter(|told| *told).count()
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_unknown_keys_costs_its_budget_and_known_keys_stay_valid_all_along() {
    let node = Arc::new(node());
    node.add(1, |_| ());
    assert_eq!(node.verify(&ask(1)).await.verdict, Verdict::Valid);
    assert_eq!(flood(&node, 0..30_000).await, LOADS_MAX);
    assert_eq!(node.directory.loads(), LOADS_MAX + 1);
    assert_eq!(node.verify(&ask(1)).await.verdict, Verdict::Valid);
    let loads = node.decider.key_loads();
    assert_eq!((loads.asked, loads.refused), (LOADS_MAX as u64 + 1, 30_000 - LOADS_MAX as u64));
    // Nobody remembers a key as unknown that was not looked up.
    node.directory.add_key(unknown(29_999).key.unwrap().ours, crate::keys::key(9));
    let later = NOW + 20_000;
    let warm = node.decider.warm_key(&unknown(29_999), later, &mut |_, _| ()).await.unwrap();
    assert_eq!(node.decider.verify(warm, later).open().verdict, Verdict::Valid);
}

#[tokio::test(start_paused = true)]
async fn keys_that_exist_are_loaded_however_many_they_are() {
    let node = Arc::new(node());
    for number in 0..30_000 {
        node.directory.add_key(unknown(number).key.unwrap().ours, crate::keys::key(9));
    }
    for number in 0..30_000 {
        assert!(node.warm(&unknown(number)).await.is_ok(), "{number}");
    }
    assert_eq!(node.decider.key_loads().refused, 0);
}

/// Nothing runs behind a reader until the test itself waits for something.
#[tokio::test]
async fn records_that_are_all_due_at_once_are_renewed_by_and_by_and_served_meanwhile() {
    const KEYS: u64 = 14;
    const RENEWALS_MAX: u64 = 4;
    let node = node();
    for number in 0..KEYS {
        node.directory.add_key(unknown(number).key.unwrap().ours, crate::keys::key(9));
        node.warm(&unknown(number)).await.unwrap();
    }
    let stale = NOW + 20_000;
    for round in 1..=4 {
        for number in 0..KEYS {
            let warm = node.decider.warm_key(&unknown(number), stale, &mut |_, _| ()).await;
            let verified = node.decider.verify(warm.unwrap(), stale).open();
            assert_eq!(verified.verdict, Verdict::Valid);
        }
        let renewed = (round * RENEWALS_MAX).min(KEYS);
        assert_eq!(node.decider.key_loads().asked, KEYS + renewed);
        for _ in 0..KEYS {
            tokio::task::yield_now().await;
        }
    }
}
