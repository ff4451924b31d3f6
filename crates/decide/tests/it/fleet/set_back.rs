//! Counters that are set back: leases return before, by a few calls at a time, however many are named.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tollkeeper_core::Boot;
use tollkeeper_decide::{CellHasher, CellKey, Fleet, LeaseAsk, News, Scope};

use super::rules::{HOUR, SECOND, ask, fixed};
use super::upkeep::{Memory, asked, fleet, wait};

const SCOPES: u64 = 40;

fn scope(of: u64) -> Arc<Scope> {
    Arc::new(Scope::owner("t", &format!("rule:user:{of}")))
}

/// One request for an identifier that nobody else has.
async fn spend(fleet: &Arc<Fleet>, scope: &Arc<Scope>, place: u64) {
    let key = CellKey { subject: place, exact: place };
    let one = LeaseAsk { key, ..ask(place, fixed(100_000, SECOND)) };
    let gathered = fleet.obtain(&[asked(one, scope, &format!("i{place}"))]).await;
    assert!(gathered.passed && gathered.spend(fleet.now()));
}

/// A node that has borrowed of 50 identifiers under each of some rules.
async fn with_leases() -> (Arc<Memory>, Arc<Fleet>) {
    let (memory, fleet) = fleet();
    for place in 0..SCOPES * 50 {
        for _ in 0..3 {
            spend(&fleet, &scope(place % SCOPES), place).await;
        }
    }
    assert!(memory.lent() > 0, "nothing was lent");
    memory.crowd.store(0, Ordering::Relaxed);
    (memory, fleet)
}

/// Another node says that it is about to set these back.
fn hears_of(fleet: &Arc<Fleet>, scopes: impl Iterator<Item = u64>) {
    let hasher = CellHasher::new([9; 16]);
    for of in scopes {
        let news = News::Gather { by: Boot(9), scope: scope(of), identifier: None };
        fleet.hear(&news, &hasher);
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_set_back_by_a_few_calls_at_a_time() {
    let (memory, fleet) = fleet();
    let scope = Arc::new(Scope::namespace("t", "s"));
    for place in 0..2000 {
        let identifier = format!("i{place}");
        let key = CellKey { subject: place, exact: place };
        let one = LeaseAsk { key, ..ask(place, fixed(100_000, SECOND)) };
        // The third call is lent some of it beside its cost.
        for _ in 0..3 {
            let gathered = fleet.obtain(&[asked(one, &scope, &identifier)]).await;
            assert!(gathered.passed && gathered.spend(fleet.now()));
        }
    }
    assert_eq!(fleet.table().stats().cells, 2000);
    assert!(memory.lent() > 0, "nothing was lent");
    memory.crowd.store(0, Ordering::Relaxed);
    fleet.call_in_all(&[(&scope, None)]).await;
    let crowd = memory.crowd.load(Ordering::Relaxed);
    assert!((2..=32).contains(&crowd), "{crowd} calls at once");
    assert_eq!(memory.lent(), 0, "all of it was given back");
}

#[tokio::test(start_paused = true)]
async fn counters_of_many_rules_return_by_a_few_calls_at_a_time() {
    let (memory, fleet) = with_leases().await;
    let scopes: Vec<_> = (0..SCOPES).map(scope).collect();
    let counters: Vec<_> = scopes.iter().map(|scope| (scope, None)).collect();
    fleet.call_in_all(&counters).await;
    let crowd = memory.crowd.load(Ordering::Relaxed);
    assert!((2..=32).contains(&crowd), "{crowd} calls at once");
    assert_eq!(memory.lent(), 0);
}

#[tokio::test(start_paused = true)]
async fn so_they_do_where_as_many_messages_name_them() {
    let (memory, fleet) = with_leases().await;
    hears_of(&fleet, 0..SCOPES / 2);
    // The others come while the first are on their way.
    tokio::task::yield_now().await;
    hears_of(&fleet, SCOPES / 2..SCOPES);
    wait(1_000).await;
    let crowd = memory.crowd.load(Ordering::Relaxed);
    assert!((2..=32).contains(&crowd), "{crowd} calls at once");
    assert_eq!(memory.lent(), 0);
}

#[tokio::test(start_paused = true)]
async fn where_more_are_named_than_are_told_apart_all_return() {
    let (memory, fleet) = with_leases().await;
    // Those that it has leases of come first and last.
    hears_of(&fleet, (0..SCOPES / 2).chain(1_000..20_000).chain(SCOPES / 2..SCOPES));
    wait(1_000).await;
    assert_eq!(memory.lent(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_a_call_under_way_brings_returns_too() {
    let (memory, fleet) = fleet();
    let scope = scope(1);
    for _ in 0..2 {
        spend(&fleet, &scope, 1).await;
    }
    assert_eq!(memory.lent(), 0, "the third call is the first to borrow");
    memory.slow_ms.store(20, Ordering::Relaxed);
    let asking = {
        let (fleet, scope) = (Arc::clone(&fleet), Arc::clone(&scope));
        tokio::spawn(async move {
            let one = LeaseAsk {
                key: CellKey { subject: 1, exact: 1 },
                ..ask(1, fixed(100_000, SECOND))
            };
            drop(fleet.obtain(&[asked(one, &scope, "i1")]).await);
        })
    };
    wait(1).await;
    fleet.call_in_all(&[(&scope, None)]).await;
    asking.await.unwrap();
    assert!(memory.lent.lock().unwrap().contains_key("i1"));
    assert_eq!(memory.lent(), 0, "it was passed over");
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_longer_than_a_second_for_leases_to_return() {
    let (memory, fleet) = with_leases().await;
    memory.slow_ms.store(10_000, Ordering::Relaxed);
    let scope = scope(1);
    let counters = [(&scope, None)];
    let calling_in = fleet.call_in_all(&counters);
    assert!(tokio::time::timeout(Duration::from_secs(1), calling_in).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_is_asked_again_once_another_node_has_set_it_back() {
    let (memory, fleet) = fleet();
    let scope = scope(1);
    let one = ask(1, fixed(5, HOUR));
    for _ in 0..5 {
        assert!(fleet.obtain(&[asked(one, &scope, "i1")]).await.passed);
    }
    assert!(!fleet.obtain(&[asked(one, &scope, "i1")]).await.passed);
    memory.set_back();
    assert!(!fleet.obtain(&[asked(one, &scope, "i1")]).await.passed, "not remembered");
    let news = News::Reset { scope: Arc::clone(&scope), identifier: Some("i1".into()) };
    fleet.hear(&news, &CellHasher::new([9; 16]));
    wait(1).await;
    assert!(fleet.obtain(&[asked(one, &scope, "i1")]).await.passed);
}
