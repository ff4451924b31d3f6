//! Credits are money: granted once, refilled once, given back once, whoever asks and however often.

use std::collections::HashSet;

use tollkeeper_core::{CreditRefill, Millis, RefillEvery};
use tollkeeper_decide::{Bank, CreditLease};
use tollkeeper_store::{
    Credits, CreditsChange, CreditsPatch, KeyPatch, KeyTerms, Patch, StoreError,
};

use crate::{Fresh, NOW};

on_both! {
    two_processes_are_never_granted_the_same_credits,
    a_repeated_message_changes_nothing,
    what_is_given_back_is_there_again_and_only_once,
    a_refill_is_due_once_and_fills_up_to_its_amount,
    a_lease_that_nobody_spoke_of_for_a_whole_period_does_not_shrink_the_next_refill,
    setting_the_balance_counts_what_is_out_on_lease,
    a_lease_of_a_silent_process_is_in_no_balance_and_comes_back_with_its_journal,
    a_balance_that_is_set_is_exactly_what_can_be_spent_whoever_comes_back,
    a_silent_lease_does_not_shrink_a_refill,
    what_a_process_without_a_journal_held_counts_as_spent,
    a_key_without_a_limit_has_nothing_to_lease,
    an_update_changes_balance_and_refill_apart,
}

const A: [u8; 16] = [1; 16];
const B: [u8; 16] = [2; 16];
const DAY: u64 = 86_400_000;

fn known(granted: u64, spent: u64) -> CreditLease {
    CreditLease { granted, spent, left: 0 }
}

async fn key_with(fresh: &Fresh, remaining: u64, refill: Option<CreditRefill>) -> String {
    let credits = Some(Credits { remaining, refill });
    fresh.key(KeyTerms { credits, ..KeyTerms::default() }).await.0
}

async fn balance(fresh: &Fresh, key_id: &str, now: Millis) -> Option<u64> {
    let view = fresh.store.key_view(&fresh.tenant_id, key_id, now).await.unwrap().unwrap();
    view.credits.map(|credits| credits.remaining)
}

async fn two_processes_are_never_granted_the_same_credits(fresh: Fresh) {
    let key = key_with(&fresh, 1000, None).await;
    let other = fresh.another().await;
    let mut asks = tokio::task::JoinSet::new();
    for node in 0..20_u8 {
        let store = if node % 2 == 0 { fresh.store.clone() } else { other.clone() };
        let key = key.clone();
        asks.spawn(async move {
            let mut lease = CreditLease::default();
            for _ in 0..5 {
                let asked = store.lease(&key, [node; 16], lease, 17, NOW).await;
                lease = asked.unwrap().unwrap();
            }
            lease.granted
        });
    }
    let granted: Vec<u64> = asks.join_all().await;
    assert_eq!(granted.iter().sum::<u64>(), 1000);
    assert!(granted.iter().collect::<HashSet<_>>().len() <= 7);
    assert_eq!(balance(&fresh, &key, NOW).await, Some(1000), "none of it is spent");
}

async fn a_repeated_message_changes_nothing(fresh: Fresh) {
    let key = key_with(&fresh, 100, None).await;
    let store = &fresh.store;
    for _ in 0..3 {
        let lease = store.lease(&key, A, known(0, 0), 10, NOW).await.unwrap().unwrap();
        assert_eq!(lease, CreditLease { granted: 10, spent: 0, left: 90 });
    }
    for _ in 0..3 {
        let lease = store.lease(&key, A, known(10, 8), 10, NOW).await.unwrap().unwrap();
        assert_eq!(lease, CreditLease { granted: 20, spent: 8, left: 80 });
    }
    for spent in [12, 12, 9] {
        store.report(&key, A, spent).await.unwrap();
        assert_eq!(balance(&fresh, &key, NOW).await, Some(88));
    }
    store.report(&key, B, 50).await.unwrap();
    assert_eq!(balance(&fresh, &key, NOW).await, Some(88));
}

async fn what_is_given_back_is_there_again_and_only_once(fresh: Fresh) {
    let key = key_with(&fresh, 100, None).await;
    let store = &fresh.store;
    store.lease(&key, A, known(0, 0), 40, NOW).await.unwrap();
    for _ in 0..3 {
        store.give_back(&key, A, 15).await.unwrap();
    }
    store.give_back(&key, B, 0).await.unwrap();
    store.give_back("key_gone", A, 0).await.unwrap();
    assert_eq!(balance(&fresh, &key, NOW).await, Some(85));
    let rest = store.lease(&key, B, known(0, 0), 1000, NOW).await.unwrap().unwrap();
    assert_eq!((rest.granted, rest.left), (85, 0));
    // The same process goes on from its totals, and is told them if it forgot.
    store.give_back(&key, B, 0).await.unwrap();
    let forgot = store.lease(&key, A, known(0, 0), 5, NOW).await.unwrap().unwrap();
    assert_eq!((forgot.granted, forgot.spent, forgot.left), (20, 15, 80));
    let again = store.lease(&key, A, known(15, 15), 5, NOW).await.unwrap().unwrap();
    assert_eq!((again.granted, again.spent, again.left), (20, 15, 80));
    // Long after, a lease of which something is out is still known, and one of which nothing is, is not.
    let later = Millis(NOW.0 + 1);
    assert_eq!(store.forget_ended_leases(later).await.unwrap(), 1);
    assert_eq!(balance(&fresh, &key, NOW).await, Some(85));
}

async fn a_refill_is_due_once_and_fills_up_to_its_amount(fresh: Fresh) {
    let refill = CreditRefill { every: RefillEvery::Day, amount: 50 };
    let key = key_with(&fresh, 20, Some(refill)).await;
    let store = &fresh.store;
    let first = store.lease(&key, A, known(0, 0), 20, NOW).await.unwrap().unwrap();
    assert_eq!((first.granted, first.left), (20, 0));
    store.report(&key, A, 15).await.unwrap();
    let tomorrow = Millis(NOW.0 + DAY);
    assert_eq!(balance(&fresh, &key, tomorrow).await, Some(50), "shown before it is written");
    // Five are still out on lease: 45 make it fifty.
    let next = store.lease(&key, A, known(20, 15), 100, tomorrow).await.unwrap().unwrap();
    assert_eq!((next.granted, next.left), (65, 0));
    let again = store.lease(&key, B, known(0, 0), 10, tomorrow).await.unwrap().unwrap();
    assert_eq!((again.granted, again.left), (0, 0));
    let rich = key_with_more_than_its_refill(&fresh, refill).await;
    let lease = store.lease(&rich, A, known(0, 0), 1, tomorrow).await.unwrap().unwrap();
    assert_eq!(lease.left, 79);
}

async fn key_with_more_than_its_refill(fresh: &Fresh, refill: CreditRefill) -> String {
    let credits = Some(Credits { remaining: 80, refill: Some(refill) });
    let project = fresh.project("rich").await;
    fresh.key_in(&project, KeyTerms { credits, ..KeyTerms::default() }).await.0
}

async fn a_lease_that_nobody_spoke_of_for_a_whole_period_does_not_shrink_the_next_refill(
    fresh: Fresh,
) {
    let refill = CreditRefill { every: RefillEvery::Day, amount: 50 };
    let key = key_with(&fresh, 50, Some(refill)).await;
    let store = &fresh.store;
    store.lease(&key, A, known(0, 0), 30, NOW).await.unwrap();
    let at = |days: u64| Millis(NOW.0 + days * DAY);
    let one = store.lease(&key, B, known(0, 0), 1, at(1)).await.unwrap().unwrap();
    assert_eq!(one.left, 19, "the other process may still spend its thirty");
    let two = store.lease(&key, B, known(1, 1), 1, at(2)).await.unwrap().unwrap();
    assert_eq!(two.left, 49, "it is gone");
    store.give_back(&key, A, 10).await.unwrap();
    assert_eq!(balance(&fresh, &key, at(2)).await, Some(50));
}

async fn setting_the_balance_counts_what_is_out_on_lease(fresh: Fresh) {
    let key = key_with(&fresh, 100, None).await;
    let store = &fresh.store;
    let set = async |change| {
        let changed = store.update_credits(fresh.by(), &key, change).await.unwrap();
        changed.value.map(|credits| credits.remaining)
    };
    store.lease(&key, A, known(0, 0), 40, NOW).await.unwrap();
    assert_eq!(set(CreditsChange::Increment(10)).await, Some(110));
    assert_eq!(set(CreditsChange::Decrement(20)).await, Some(90));
    assert_eq!(set(CreditsChange::Set(Some(60))).await, Some(60));
    let rest = store.lease(&key, B, known(0, 0), 1000, NOW).await.unwrap().unwrap();
    assert_eq!(rest.granted, 20);
    store.give_back(&key, B, 0).await.unwrap();
    // Below what is out: nothing more is granted, and what comes back pays the debt first.
    assert_eq!(set(CreditsChange::Set(Some(10))).await, Some(10));
    let none = store.lease(&key, B, known(0, 0), 5, NOW).await.unwrap().unwrap();
    assert_eq!((none.granted, none.left), (0, 0));
    store.give_back(&key, A, 0).await.unwrap();
    assert_eq!(balance(&fresh, &key, NOW).await, Some(10));
    assert_eq!(set(CreditsChange::Decrement(99)).await, Some(0));
    store.lease(&key, A, known(0, 0), 1, NOW).await.unwrap();
    assert_eq!(set(CreditsChange::Set(Some(30))).await, Some(30));
    let held = store.lease(&key, A, known(0, 0), 8, NOW).await.unwrap().unwrap();
    assert_eq!(held.granted, 8);
    assert_eq!(set(CreditsChange::Set(None)).await, None);
    assert_eq!(store.lease(&key, A, held, 8, NOW).await.unwrap(), None);
    // Limited again: what was out all the time is part of the new balance.
    assert_eq!(set(CreditsChange::Set(Some(10))).await, Some(10));
    let rest = store.lease(&key, B, known(0, 0), 99, NOW).await.unwrap().unwrap();
    assert_eq!(rest.granted, 2);
    assert_eq!(set(CreditsChange::Set(None)).await, None);
    let refused = store.update_credits(fresh.by(), &key, CreditsChange::Increment(1)).await;
    assert!(matches!(refused, Err(StoreError::CreditsUnlimited)));
}

/// As if nothing had been heard of any process for so long.
async fn silence(fresh: &Fresh, how_long: &'static str) {
    assert_eq!(fresh.count(how_long).await, 1);
}

const ALMOST: &str =
    "UPDATE credit_leases SET heard_at = heard_at - 540000 RETURNING CAST(1 AS BIGINT)";
const TEN_MINUTES: &str =
    "UPDATE credit_leases SET heard_at = heard_at - 600001 RETURNING CAST(1 AS BIGINT)";

async fn a_lease_of_a_silent_process_is_in_no_balance_and_comes_back_with_its_journal(
    fresh: Fresh,
) {
    let key = key_with(&fresh, 1000, None).await;
    let store = &fresh.store;
    store.lease(&key, A, known(0, 0), 100, NOW).await.unwrap();
    store.report(&key, A, 7).await.unwrap();
    silence(&fresh, ALMOST).await;
    assert_eq!(balance(&fresh, &key, NOW).await, Some(993), "it may be alive");
    store.report(&key, A, 7).await.unwrap();
    silence(&fresh, ALMOST).await;
    assert_eq!(balance(&fresh, &key, NOW).await, Some(993), "and it was");
    silence(&fresh, TEN_MINUTES).await;
    assert_eq!(balance(&fresh, &key, NOW).await, Some(900), "which is all that can be spent");
    let more = store.update_credits(fresh.by(), &key, CreditsChange::Increment(1)).await.unwrap();
    assert_eq!(more.value.map(|credits| credits.remaining), Some(901));
    // The next process of its data directory knows how much was spent.
    store.give_back(&key, A, 8).await.unwrap();
    assert_eq!(balance(&fresh, &key, NOW).await, Some(993));
    assert_eq!(store.void_old_leases().await.unwrap(), 0);
}

async fn a_balance_that_is_set_is_exactly_what_can_be_spent_whoever_comes_back(fresh: Fresh) {
    let key = key_with(&fresh, 1000, None).await;
    let store = &fresh.store;
    store.lease(&key, A, known(0, 0), 100, NOW).await.unwrap();
    silence(&fresh, TEN_MINUTES).await;
    let set = CreditsChange::Set(Some(50));
    let set = store.update_credits(fresh.by(), &key, set).await.unwrap();
    assert_eq!(set.value.map(|credits| credits.remaining), Some(50));
    // It was cut off and is back: all that it held is gone.
    let back = store.lease(&key, A, known(100, 7), 0, NOW).await.unwrap().unwrap();
    assert_eq!((back.granted, back.spent, back.left), (100, 100, 50));
    store.give_back(&key, A, 7).await.unwrap();
    let all = store.lease(&key, B, known(0, 0), 1000, NOW).await.unwrap().unwrap();
    assert_eq!((all.granted, all.left), (50, 0));
    // The same where it is set with the key's other terms.
    silence(&fresh, TEN_MINUTES_B).await;
    let credits = Patch::Set(CreditsPatch { remaining: Patch::Set(30), refill: Patch::Keep });
    let patch = KeyPatch { credits, ..KeyPatch::default() };
    store.update_key(fresh.by(), &key, patch).await.unwrap();
    store.give_back(&key, B, 0).await.unwrap();
    assert_eq!(balance(&fresh, &key, NOW).await, Some(30));
}

const TEN_MINUTES_B: &str = "UPDATE credit_leases SET heard_at = heard_at - 600001 WHERE granted > spent RETURNING CAST(1 AS BIGINT)";

async fn a_silent_lease_does_not_shrink_a_refill(fresh: Fresh) {
    let refill = CreditRefill { every: RefillEvery::Day, amount: 50 };
    let key = key_with(&fresh, 50, Some(refill)).await;
    let store = &fresh.store;
    store.lease(&key, A, known(0, 0), 30, NOW).await.unwrap();
    silence(&fresh, TEN_MINUTES).await;
    let tomorrow = Millis(NOW.0 + DAY);
    assert_eq!(balance(&fresh, &key, tomorrow).await, Some(50));
    let lease = store.lease(&key, B, known(0, 0), 1, tomorrow).await.unwrap().unwrap();
    assert_eq!(lease.left, 49);
    store.give_back(&key, A, 0).await.unwrap();
    assert_eq!(balance(&fresh, &key, tomorrow).await, Some(50), "never above its amount");
}

async fn what_a_process_without_a_journal_held_counts_as_spent(fresh: Fresh) {
    let key = key_with(&fresh, 100, None).await;
    let store = &fresh.store;
    for boot in [A, B] {
        store.lease(&key, boot, known(0, 0), 10, NOW).await.unwrap();
    }
    assert_eq!(store.void_leases_of(A).await.unwrap(), 1);
    store.give_back(&key, A, 0).await.unwrap();
    assert_eq!(balance(&fresh, &key, NOW).await, Some(90));
    assert_eq!(store.void_leases_but(&[B]).await.unwrap(), 0);
    assert_eq!(store.void_leases_but(&[A]).await.unwrap(), 1);
    assert_eq!(balance(&fresh, &key, NOW).await, Some(80));
}

async fn a_key_without_a_limit_has_nothing_to_lease(fresh: Fresh) {
    let (key, _) = fresh.key(KeyTerms::default()).await;
    assert_eq!(fresh.store.lease(&key, A, known(0, 0), 5, NOW).await.unwrap(), None);
    assert_eq!(fresh.store.lease("key_gone", A, known(0, 0), 5, NOW).await.unwrap(), None);
    fresh.store.give_back(&key, A, 0).await.unwrap();
    assert_eq!(balance(&fresh, &key, NOW).await, None);
}

async fn an_update_changes_balance_and_refill_apart(fresh: Fresh) {
    let key = key_with(&fresh, 5, None).await;
    let refill = CreditRefill { every: RefillEvery::Month { on: 31 }, amount: 9 };
    let update = async |credits| {
        let patch = KeyPatch { credits, ..KeyPatch::default() };
        fresh.store.update_key(fresh.by(), &key, patch).await?;
        let view = fresh.store.key_view(&fresh.tenant_id, &key, NOW).await?.unwrap();
        Ok::<_, StoreError>(view.credits)
    };
    let both = |remaining, refill| Patch::Set(CreditsPatch { remaining, refill });
    let with_refill = update(both(Patch::Keep, Patch::Set(refill))).await.unwrap();
    assert_eq!(with_refill, Some(Credits { remaining: 5, refill: Some(refill) }));
    let set = update(both(Patch::Set(8), Patch::Keep)).await.unwrap();
    assert_eq!(set, Some(Credits { remaining: 8, refill: Some(refill) }));
    let cleared = update(both(Patch::Keep, Patch::Clear)).await.unwrap();
    assert_eq!(cleared, Some(Credits { remaining: 8, refill: None }));
    assert_eq!(update(both(Patch::Clear, Patch::Keep)).await.unwrap(), None);
    let refused = update(both(Patch::Keep, Patch::Set(refill))).await;
    assert!(matches!(refused, Err(StoreError::CreditsUnlimited)));
    let limited = update(both(Patch::Set(3), Patch::Set(refill))).await.unwrap();
    assert_eq!(limited, Some(Credits { remaining: 3, refill: Some(refill) }));
    assert_eq!(update(Patch::Clear).await.unwrap(), None);
}
