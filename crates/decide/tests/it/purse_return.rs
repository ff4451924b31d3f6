//! Credits that go back to the bank: all that was not spent, once, and before memory runs out.

use std::sync::Arc;

use tollkeeper_decide::{Filled, LEASE_LIFE_MS, OriginError};

use crate::bank::MemoryBank;
use crate::purse::{LOST, NOW, REFUSED, hold, key, purse, spend, spent};

#[tokio::test]
async fn what_is_given_back_is_counted_on_from_its_totals() {
    let bank = MemoryBank::with(100);
    let purse = purse(&bank);
    for _ in 0..5 {
        assert!(spent(&purse, 1).await);
    }
    purse.give_back("key_1").await.unwrap();
    assert_eq!((bank.row("key_1"), bank.balance("key_1")), (Some((5, 5)), 95));
    assert!(purse.is_empty() && purse.totals().is_empty());
    let taken = spend(&purse, 1).await.unwrap();
    assert_eq!((taken.enough, taken.spent, taken.balance), (true, 6, 94));
}

#[tokio::test]
async fn a_give_back_that_failed_neither_doubles_nor_forgets_anything() {
    for fate in [LOST, REFUSED] {
        let bank = MemoryBank::with(100);
        let purse = purse(&bank);
        for _ in 0..5 {
            assert!(spent(&purse, 1).await);
        }
        bank.next(fate);
        assert!(purse.give_back("key_1").await.is_err());
        assert_eq!(purse.totals(), [(key(), 5)]);
        let mut passed = 5;
        while spent(&purse, 1).await {
            passed += 1;
        }
        assert_eq!((passed, bank.balance("key_1")), (100, 0), "{fate:?}");
    }
}

#[tokio::test]
async fn what_was_set_aside_before_everything_was_given_back_is_not_spent() {
    let bank = MemoryBank::with(5);
    let purse = purse(&bank);
    let held = hold(&purse, 5, NOW).await.unwrap();
    purse.give_back("key_1").await.unwrap();
    assert_eq!(bank.balance("key_1"), 5);
    assert!(!purse.take(held).enough);
    let held = hold(&purse, 5, NOW).await.unwrap();
    purse.give_back("key_1").await.unwrap();
    let again = hold(&purse, 5, NOW).await.unwrap();
    // What is void frees nothing of what was set aside since.
    drop(held);
    assert!(hold(&purse, 1, NOW).await.is_none());
    assert!(purse.take(again).enough);
}

#[tokio::test]
async fn the_bank_hears_of_each_spending_once() {
    let bank = MemoryBank::with(100);
    let purse = purse(&bank);
    assert!(spent(&purse, 3).await);
    bank.next(REFUSED);
    assert!(purse.report(10, NOW).await.is_err());
    assert_eq!(purse.report(0, NOW).await.unwrap(), 0);
    assert_eq!(purse.report(10, NOW).await.unwrap(), 1);
    assert_eq!(bank.row("key_1"), Some((3, 3)));
    assert_eq!(purse.report(10, NOW).await.unwrap(), 0);
}

#[tokio::test]
async fn a_lease_of_which_the_bank_heard_nothing_for_five_minutes_is_not_spent_from() {
    let bank = MemoryBank::with(100);
    let purse = purse(&bank);
    drop(purse.fill(&key(), 10, NOW).await.unwrap());
    bank.fail(true);
    let passes = async |now| matches!(purse.fill(&key(), 1, now).await, Ok(Filled::Held(_)));
    let after = |ms: u64| NOW + LEASE_LIFE_MS + ms;
    assert!(passes(NOW + (LEASE_LIFE_MS - 1)).await);
    assert!(!passes(after(0)).await, "the bank may give it to somebody else soon");
    let free = purse.fill(&key(), 0, after(0)).await;
    assert!(matches!(free, Ok(Filled::Held(_))), "what costs nothing needs no lease");
    // A word that arrives in time prolongs it, and one that arrives too late does not.
    bank.fail(false);
    let Ok(Filled::Held(held)) = purse.fill(&key(), 1, NOW).await else { panic!("in hand") };
    assert!(purse.take(held).enough);
    assert_eq!(purse.report(10, NOW + 1_000).await.unwrap(), 1);
    bank.fail(true);
    assert!(passes(after(999)).await && !passes(after(1_000)).await);
    bank.fail(false);
    let Ok(Filled::Held(held)) = purse.fill(&key(), 1, NOW).await else { panic!("in hand") };
    assert!(purse.take(held).enough);
    assert_eq!(purse.report(10, after(1_000)).await.unwrap(), 1);
    bank.fail(true);
    assert!(!passes(after(1_001)).await);
    // The bank had written it off: what was left of it is not spent on top of the new.
    bank.fail(false);
    for (granted, spent) in bank.vault.lock().unwrap().rows.values_mut() {
        *spent = *granted;
    }
    let left = bank.balance("key_1");
    let mut passed = 0;
    while let Ok(Filled::Held(held)) = purse.fill(&key(), 1, after(2_000)).await {
        assert!(purse.take(held).enough);
        passed += 1;
    }
    assert_eq!(passed, left);
}

#[tokio::test]
async fn credits_that_nobody_used_for_a_minute_go_back_and_others_stay() {
    let bank = MemoryBank::with(100);
    bank.add("key_2", 100);
    let purse = purse(&bank);
    let (idle, busy) = (Arc::from("key_2"), key());
    drop(purse.fill(&idle, 10, NOW).await.unwrap());
    drop(purse.fill(&busy, 10, NOW).await.unwrap());
    drop(purse.fill(&busy, 1, NOW + 1).await.unwrap());
    assert_eq!(purse.tidy(NOW + 59_999).await.unwrap(), 0);
    assert_eq!(purse.tidy(NOW + 60_000).await.unwrap(), 1);
    assert_eq!((bank.balance("key_1"), bank.balance("key_2")), (90, 100));
    let held = purse.fill(&busy, 10, NOW).await.unwrap();
    // Somebody is between warm and decided: it is in use, however long ago that began.
    assert_eq!(purse.tidy(NOW + 600_000).await.unwrap(), 0);
    drop(held);
    assert_eq!(purse.tidy(NOW + 600_000).await.unwrap(), 1);
    assert!(purse.is_empty());
}

#[tokio::test]
async fn beyond_the_bound_those_used_longest_ago_go_back() -> Result<(), OriginError> {
    const BOUND: usize = 100_000;
    let bank = MemoryBank::default();
    let purse = purse(&bank);
    let names: Vec<Arc<str>> = (0..BOUND + 40).map(|at| format!("key_{at}").into()).collect();
    for (at, name) in names.iter().enumerate() {
        bank.add(name, 1);
        drop(purse.fill(name, 1, NOW + at as u64 / 100).await?);
    }
    // The very first is used again.
    drop(purse.fill(&names[0], 1, NOW + 30_000).await?);
    assert_eq!(purse.tidy(NOW + 30_000).await?, 40);
    assert_eq!(purse.len(), BOUND);
    let given_back = |at: &usize| bank.balance(&names[*at]) == 1;
    assert_eq!((0..100).filter(given_back).count(), 40);
    assert!(!given_back(&0) && !(100..BOUND + 40).any(|at| given_back(&at)));
    Ok(())
}

#[tokio::test]
async fn an_end_gives_everything_back_but_what_was_spent() {
    let bank = MemoryBank::with(1_000);
    let purse = purse(&bank);
    for number in 2..200 {
        bank.add(&format!("key_{number}"), 50);
        drop(purse.fill(&format!("key_{number}").into(), 7, NOW).await.unwrap());
    }
    for _ in 0..10 {
        assert!(spent(&purse, 1).await);
    }
    bank.next(REFUSED);
    assert!(purse.close().await.is_err());
    purse.close().await.unwrap();
    assert_eq!(bank.balance("key_1"), 990);
    assert!((2..200).all(|number| bank.balance(&format!("key_{number}")) == 50));
}
