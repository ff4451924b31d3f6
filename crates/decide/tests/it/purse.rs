//! Credits in hand: nothing is spent that was not leased, nobody is denied what the bank has, and the bank
//! is asked seldom.

use std::sync::Arc;

use tokio::runtime::Handle;
use tollkeeper_core::Millis;
use tollkeeper_decide::{Filled, Held, Purse, Taken};

use crate::bank::{Fate, MemoryBank, pause};

pub(crate) const NOW: Millis = Millis(1_700_000_000_000);
pub(crate) const LOST: Fate = Fate { late: 1, times: 1, answered: false };
pub(crate) const REFUSED: Fate = Fate { late: 0, times: 0, answered: false };
const LATE: Fate = Fate { late: 20, times: 1, answered: true };

pub(crate) fn purse(bank: &MemoryBank) -> Arc<Purse> {
    Arc::new(Purse::new(Arc::new(bank.clone()), [7; 16], Handle::current()))
}

pub(crate) fn key() -> Arc<str> {
    Arc::from("key_1")
}

pub(crate) async fn hold(purse: &Purse, cost: u64, now: Millis) -> Option<Held> {
    match purse.fill(&key(), cost, now).await.unwrap() {
        Filled::Held(held) => Some(held),
        Filled::Short => None,
        Filled::Unlimited => panic!("the key has a limit"),
    }
}

pub(crate) async fn spend(purse: &Purse, cost: u64) -> Option<Taken> {
    hold(purse, cost, NOW).await.map(|held| purse.take(held))
}

pub(crate) async fn spent(purse: &Purse, cost: u64) -> bool {
    spend(purse, cost).await.is_some_and(|taken| taken.enough)
}

#[tokio::test]
async fn a_first_request_takes_exactly_its_cost_and_a_busy_key_a_tenth_of_what_is_left() {
    let bank = MemoryBank::with(1_000);
    let purse = purse(&bank);
    let taken = spend(&purse, 3).await.unwrap();
    assert_eq!(taken, Taken { enough: true, spent: 3, balance: 997 });
    assert_eq!((bank.row("key_1"), bank.balance("key_1")), (Some((3, 0)), 997));
    assert!(spent(&purse, 1).await);
    assert_eq!(bank.row("key_1"), Some((3 + 99, 3)));
    for _ in 0..98 {
        assert!(spent(&purse, 1).await);
    }
    assert_eq!(bank.leases(), 2);
}

#[tokio::test]
async fn a_cost_that_neither_hand_nor_bank_has_is_short_and_takes_nothing() {
    let bank = MemoryBank::with(10);
    let purse = purse(&bank);
    assert!(spent(&purse, 4).await);
    assert!(!spent(&purse, 7).await);
    assert!(spent(&purse, 6).await);
    assert!(!spent(&purse, 1).await);
    assert_eq!(purse.look("key_1").balance, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_threads_on_one_key_spend_exactly_the_balance() {
    let bank = MemoryBank::with(5_000);
    let purse = purse(&bank);
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let purse = Arc::clone(&purse);
            tokio::spawn(async move {
                let mut passed = 0;
                for _ in 0..500 {
                    passed += u64::from(spent(&purse, 1).await);
                }
                passed
            })
        })
        .collect();
    let mut passed = 0;
    for task in tasks {
        passed += task.await.unwrap();
    }
    assert_eq!(passed, 5_000);
    assert_eq!((bank.balance("key_1"), bank.most_under_way()), (0, 1));
    assert_eq!(purse.totals(), [(key(), 5_000)]);
}

#[tokio::test]
async fn nobody_is_denied_while_the_bank_has_what_all_who_wait_want() {
    let bank = MemoryBank::with(300);
    let purse = purse(&bank);
    bank.next(LATE);
    let waiting: Vec<_> = (0..300)
        .map(|_| {
            let purse = Arc::clone(&purse);
            tokio::spawn(async move { hold(&purse, 1, NOW).await })
        })
        .collect();
    let mut held = Vec::new();
    for one in waiting {
        held.push(one.await.unwrap().unwrap());
    }
    assert!(hold(&purse, 1, NOW).await.is_none());
    assert!(held.into_iter().all(|held| purse.take(held).enough));
}

#[tokio::test]
async fn what_was_set_aside_and_not_spent_is_free_again() {
    let purse = purse(&MemoryBank::with(1));
    let held = hold(&purse, 1, NOW).await.unwrap();
    assert!(hold(&purse, 1, NOW).await.is_none());
    drop(held);
    assert!(spent(&purse, 1).await);
    assert!(!spent(&purse, 1).await);
}

#[tokio::test]
async fn callers_of_one_key_share_a_lease_and_its_failure() {
    let bank = MemoryBank::with(100);
    let purse = purse(&bank);
    bank.fail(true);
    bank.next(LATE);
    let asking: Vec<_> = (0..50)
        .map(|_| {
            let purse = Arc::clone(&purse);
            tokio::spawn(async move { purse.fill(&key(), 1, NOW).await.is_err() })
        })
        .collect();
    for one in asking {
        assert!(one.await.unwrap());
    }
    assert_eq!(bank.leases(), 1);
    bank.fail(false);
    assert!(spent(&purse, 1).await);
}

#[tokio::test]
async fn an_empty_key_asks_the_bank_once_a_second() {
    let bank = MemoryBank::with(2);
    let purse = purse(&bank);
    assert!(spent(&purse, 2).await);
    let before = bank.leases();
    for ms in 0..10_000 {
        assert!(hold(&purse, 1, NOW + ms).await.is_none());
    }
    assert!(bank.leases() - before <= 10, "{}", bank.leases() - before);
    bank.add("key_1", 5);
    assert!(hold(&purse, 1, NOW + 11_000).await.is_some());
}

#[tokio::test]
async fn a_key_without_a_limit_at_the_bank_is_unlimited_and_asks_once_a_second() {
    let bank = MemoryBank::default();
    let purse = purse(&bank);
    for ms in 0..3_000 {
        let filled = purse.fill(&key(), 1, NOW + ms).await.unwrap();
        assert!(matches!(filled, Filled::Unlimited));
    }
    assert!(bank.leases() <= 3, "{}", bank.leases());
    bank.add("key_1", 1);
    assert!(hold(&purse, 1, NOW + 5_000).await.is_some());
}

#[tokio::test]
async fn asking_for_nothing_never_fails_and_shows_the_balance() {
    let bank = MemoryBank::with(0);
    let purse = purse(&bank);
    assert_eq!(spend(&purse, 0).await, Some(Taken { enough: true, spent: 0, balance: 0 }));
    bank.add("key_1", 9);
    assert!(hold(&purse, 9, NOW + 2_000).await.is_some());
    assert_eq!(spend(&purse, 0).await, Some(Taken { enough: true, spent: 0, balance: 9 }));
}

#[tokio::test]
async fn a_lease_whose_answer_was_lost_is_used_and_not_granted_again() {
    let bank = MemoryBank::with(10);
    let purse = purse(&bank);
    bank.next(LOST);
    assert!(purse.fill(&key(), 4, NOW).await.is_err());
    assert_eq!(bank.row("key_1"), Some((4, 0)));
    assert!(spent(&purse, 4).await);
    assert_eq!((bank.row("key_1"), bank.balance("key_1")), (Some((4, 0)), 6));
}

#[tokio::test]
async fn a_lease_whose_answer_was_lost_is_given_back_at_the_end() {
    let bank = MemoryBank::with(10);
    let purse = purse(&bank);
    bank.next(LOST);
    assert!(purse.fill(&key(), 4, NOW).await.is_err());
    purse.close().await.unwrap();
    assert_eq!(bank.balance("key_1"), 10);
}

#[tokio::test]
async fn a_lease_is_taken_in_even_if_whoever_asked_is_gone() {
    let bank = MemoryBank::with(10);
    let purse = purse(&bank);
    bank.next(LATE);
    let asking = Arc::clone(&purse);
    let asking = tokio::spawn(async move { asking.fill(&key(), 4, NOW).await.is_ok() });
    pause(5).await;
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    pause(60).await;
    assert_eq!(purse.look("key_1").balance, 10);
    // What was set aside for the one who left is not held for ever.
    assert!(spent(&purse, 4).await);
    assert_eq!(bank.leases(), 1);
}
