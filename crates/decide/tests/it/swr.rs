//! The record cache: how long what is served, how often what is loaded, and what is never kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::oneshot;
use tollkeeper_core::Millis;
use tollkeeper_decide::{Lifetime, Loading, Near, OriginError, Swr};

const LIFETIME: Lifetime = Lifetime { fresh_ms: 100, stale_ms: 1000 };

type Cache = Swr<u32, u64>;

fn cache() -> Cache {
    Swr::new(100, 100, LIFETIME)
}

fn ready(value: Option<u64>) -> Loading<Option<u64>> {
    Box::pin(async move { Ok(value) })
}

fn failing() -> Loading<Option<u64>> {
    Box::pin(async { Err(OriginError::new("off")) })
}

/// A load that answers when it is told to.
fn awaited() -> (oneshot::Sender<Option<u64>>, Loading<Option<u64>>) {
    let (tell, told) = oneshot::channel();
    (tell, Box::pin(async move { told.await.map_err(OriginError::new) }))
}

async fn put(cache: &Cache, key: u32, value: Option<u64>, now: u64) {
    assert_eq!(cache.fetch(key, Millis(now), || ready(value)).await.unwrap(), value);
}

/// Fresh: `f` or, if this reader should renew, `d`; stale: `s` or, if this reader should renew, `r`; absent: `a`, unknown: `u`.
fn near(cache: &Cache, key: u32, now: u64) -> (char, u64) {
    match cache.near(&key, Millis(now)) {
        Near::Known(Some(value)) => ('f', value),
        Near::Known(None) => ('a', 0),
        Near::Due(value) => ('d', value),
        Near::Stale { value, renew: true } => ('r', value),
        Near::Stale { value, renew: false } => ('s', value),
        Near::Unknown => ('u', 0),
    }
}

#[tokio::test]
async fn an_entry_is_fresh_then_stale_then_gone() {
    let cache = cache();
    assert_eq!(near(&cache, 1, 0), ('u', 0));
    put(&cache, 1, Some(7), 1000).await;
    assert_eq!(near(&cache, 1, 1000), ('f', 7));
    assert_eq!([1051, 1100].map(|now| near(&cache, 1, now)), [('d', 7), ('f', 7)]);
    cache.postpone(&1);
    assert_eq!(near(&cache, 1, 1101), ('r', 7));
    assert_eq!(near(&cache, 1, 2000), ('s', 7));
    assert_eq!(near(&cache, 1, 2001), ('u', 0));
}

#[tokio::test]
async fn entries_that_came_together_are_renewed_one_after_the_other() {
    let cache = Swr::new(10_000, 100, Lifetime { fresh_ms: 10_000, stale_ms: 60_000 });
    for key in 0..1000 {
        put(&cache, key, Some(1), 0).await;
    }
    let mut largest = 0;
    for now in (0..=10_000).step_by(100) {
        let due = (0..1000).filter(|key| near(&cache, *key, now).0 == 'd').count();
        assert!(now > 5000 || due == 0, "{due} are renewed at {now} ms");
        largest = largest.max(due);
    }
    assert!(largest <= 25, "{largest} are renewed within 100 ms");
}

#[tokio::test]
async fn what_is_past_its_hard_limit_is_not_served_even_while_the_load_fails() {
    let cache = cache();
    put(&cache, 1, Some(7), 1000).await;
    assert!(cache.fetch(1, Millis(2001), failing).await.is_err());
    assert_eq!(near(&cache, 1, 2001), ('u', 0));
    put(&cache, 1, Some(8), 2001).await;
    assert_eq!(near(&cache, 1, 2001), ('f', 8));
}

#[tokio::test]
async fn one_reader_renews_a_stale_entry_and_the_next_one_if_that_failed() {
    let cache = cache();
    put(&cache, 1, Some(7), 0).await;
    assert_eq!([200, 201, 202].map(|now| near(&cache, 1, now)), [('r', 7), ('s', 7), ('s', 7)]);
    cache.renew(1, Millis(203), failing()).await;
    assert_eq!([204, 205].map(|now| near(&cache, 1, now)), [('r', 7), ('s', 7)]);
    cache.renew(1, Millis(206), ready(Some(8))).await;
    assert_eq!(near(&cache, 1, 256), ('f', 8));
}

#[tokio::test]
async fn a_renewal_that_finds_nothing_removes_the_entry() {
    let cache = cache();
    put(&cache, 1, Some(7), 0).await;
    cache.renew(1, Millis(200), ready(None)).await;
    assert_eq!((near(&cache, 1, 200), cache.is_empty()), (('u', 0), true));
}

#[tokio::test]
async fn forgetting_another_key_does_not_end_the_renewals_of_this_one() {
    let cache = cache();
    put(&cache, 1, Some(7), 0).await;
    assert_eq!(near(&cache, 1, 200), ('r', 7));
    let (tell, load) = awaited();
    let forget = async {
        cache.forget(&2);
        tell.send(Some(8)).unwrap();
    };
    tokio::join!(cache.renew(1, Millis(200), load), forget);
    assert_eq!(near(&cache, 1, 201), ('r', 7));
}

#[tokio::test]
async fn a_thousand_callers_at_once_share_one_load() {
    let cache = Arc::new(cache());
    for answer in [Some(7), None] {
        let loads = Arc::new(AtomicUsize::new(0));
        let fetch = |_| {
            let (cache, loads) = (Arc::clone(&cache), Arc::clone(&loads));
            let key = u32::from(answer.is_some());
            let load = move || {
                loads.fetch_add(1, Ordering::Relaxed);
                Box::pin(async move {
                    tokio::task::yield_now().await;
                    Ok(answer)
                }) as _
            };
            tokio::spawn(async move { cache.fetch(key, Millis(0), load).await.unwrap() })
        };
        let callers: Vec<_> = (0..1000).map(fetch).collect();
        for caller in callers {
            assert_eq!(caller.await.unwrap(), answer);
        }
        assert_eq!(loads.load(Ordering::Relaxed), 1, "{answer:?}");
    }
}

#[tokio::test]
async fn those_who_waited_for_a_load_that_failed_share_its_failure() {
    let cache = Arc::new(cache());
    let loads = Arc::new(AtomicUsize::new(0));
    let fetch = |_| {
        let (cache, loads) = (Arc::clone(&cache), Arc::clone(&loads));
        let load = move || {
            loads.fetch_add(1, Ordering::Relaxed);
            Box::pin(async {
                tokio::task::yield_now().await;
                Err(OriginError::new("off"))
            }) as _
        };
        tokio::spawn(async move { cache.fetch(1, Millis(0), load).await })
    };
    let callers: Vec<_> = (0..1000).map(fetch).collect();
    for caller in callers {
        assert!(caller.await.unwrap().is_err());
    }
    assert_eq!(loads.load(Ordering::Relaxed), 1);
    put(&cache, 1, Some(7), 0).await;
}

#[tokio::test]
async fn a_failing_load_is_not_remembered_as_absent() {
    let cache = cache();
    assert!(cache.fetch(1, Millis(0), failing).await.is_err());
    assert_eq!(near(&cache, 1, 0), ('u', 0));
}

#[tokio::test]
async fn a_load_that_began_before_a_forget_is_answered_and_not_kept() {
    for answer in [Some(7), None] {
        let cache = cache();
        let (tell, load) = awaited();
        let forget = async {
            cache.forget(&1);
            tell.send(answer).unwrap();
        };
        let (fetched, ()) = tokio::join!(cache.fetch(1, Millis(0), || load), forget);
        assert_eq!(fetched.unwrap(), answer);
        assert_eq!(near(&cache, 1, 0), ('u', 0));
    }
}

#[tokio::test]
async fn a_renewal_that_began_before_a_forget_is_not_kept() {
    let cache = cache();
    put(&cache, 1, Some(7), 0).await;
    let (tell, load) = awaited();
    let forget = async {
        cache.forget(&1);
        tell.send(Some(7)).unwrap();
    };
    tokio::join!(cache.renew(1, Millis(200), load), forget);
    assert_eq!(near(&cache, 1, 200), ('u', 0));
}

#[tokio::test]
async fn a_caller_that_comes_after_a_forget_gets_a_load_that_began_after_it() {
    let cache = cache();
    let (tell_old, old) = awaited();
    let first = cache.fetch(1, Millis(0), || old);
    let then = async {
        cache.forget(&1);
        let (tell_new, new) = awaited();
        tell_new.send(Some(8)).unwrap();
        let second = cache.fetch(1, Millis(0), || new);
        tell_old.send(Some(7)).unwrap();
        second.await
    };
    let (first, second) = tokio::join!(first, then);
    assert_eq!((first.unwrap(), second.unwrap()), (Some(7), Some(8)));
    assert_eq!(near(&cache, 1, 0), ('f', 8));
}

#[tokio::test]
async fn a_flood_of_absent_names_pushes_out_nothing_that_was_found() {
    let cache = cache();
    for key in 0..50 {
        put(&cache, key, Some(u64::from(key)), 0).await;
    }
    for key in 1000..11_000 {
        put(&cache, key, None, 0).await;
    }
    assert!((0..50).all(|key| near(&cache, key, 0) == ('f', u64::from(key))));
    assert_eq!(cache.len(), 50);
}

#[tokio::test]
async fn what_is_absent_is_believed_only_while_it_is_fresh() {
    let cache = cache();
    put(&cache, 1, None, 0).await;
    assert_eq!([near(&cache, 1, 100), near(&cache, 1, 101)], [('a', 0), ('u', 0)]);
    put(&cache, 1, Some(7), 101).await;
    assert_eq!(near(&cache, 1, 101), ('f', 7));
}
