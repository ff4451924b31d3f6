//! Every order in which threads may meet, as far as a random scheduler gets: no deadlock, and never more
//! admitted than the limit. Run with `--features shuttle`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use shuttle::thread;
use tollkeeper_core::{Quota, Window};

use super::*;
use crate::CellHasher;

const NOW: Millis = Millis(1_700_000_000_000);
const ITERATIONS: usize = 5_000;

fn asks(identifiers: &[usize], quota: u64) -> Vec<CellAsk> {
    let tag = CellHasher::new([3; 16]).namespace("acme", "api");
    let limit = Limit::fixed_window(Quota::new(quota).unwrap(), Window::Day);
    let ask = |identifier: &usize| CellAsk {
        key: tag.cell(&identifier.to_string(), &limit),
        namespace: tag.tag,
        limit,
        cost: Cost::ONE,
    };
    identifiers.iter().map(ask).collect()
}

/// Spends this bundle some times; returns how often it was admitted.
fn spender(
    cells: &Arc<Cells>,
    identifiers: &'static [usize],
    times: usize,
) -> thread::JoinHandle<u64> {
    let cells = Arc::clone(cells);
    thread::spawn(move || {
        let asks = asks(identifiers, 3);
        (0..times).map(|_| u64::from(cells.spend_all(&asks, Vec::new(), NOW).passed)).sum()
    })
}

fn remaining(cells: &Cells, identifier: usize) -> u64 {
    let mut ask = asks(&[identifier], 3)[0];
    ask.cost = Cost::PEEK;
    cells.spend(&ask, Vec::new(), NOW).remaining
}

/// Two shards with room for one cell each, and three identifiers: bundles span both, and cells keep leaving.
fn small() -> Arc<Cells> {
    let cells = Cells::with_shards(2, 1);
    let shards = asks(&[1, 2, 3], 3).into_iter().map(|ask| cells.shard_of(ask.key));
    assert_eq!(shards.collect::<std::collections::HashSet<_>>().len(), 2);
    Arc::new(cells)
}

#[test]
fn bundles_in_any_order_neither_deadlock_nor_admit_more_than_the_limit() {
    let run = || {
        let cells = small();
        let one = spender(&cells, &[1, 2], 2);
        let other = spender(&cells, &[2, 1], 2);
        let third = spender(&cells, &[3, 2], 2);
        let admitted = [one, other, third].map(|thread| thread.join().unwrap());
        let left = [1, 2, 3].map(|identifier| 3 - remaining(&cells, identifier));
        assert_eq!(left, [admitted[0] + admitted[1], admitted.iter().sum(), admitted[2]]);
        assert_eq!(left[1], 3);
    };
    shuttle::check_random(run, ITERATIONS);
}

#[test]
fn housekeeping_in_between_neither_deadlocks_nor_frees_what_was_spent() {
    let run = || {
        let cells = small();
        let one = spender(&cells, &[1, 2], 2);
        let other = spender(&cells, &[2, 1, 3], 2);
        let keeper = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || {
                cells.drain_changes(|_| ());
                cells.sweep(0, 1, NOW);
                cells.snapshot(0, NOW);
            })
        };
        let shelver = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || {
                cells.renew_filter();
                let keys: Vec<CellKey> = cells.hand_over().iter().map(|cell| cell.key).collect();
                cells.shelved(&keys);
                cells.adopt_filter(&[]);
                cells.far(asks(&[1, 2, 3], 3).iter().map(|ask| ask.key))
            })
        };
        let admitted = one.join().unwrap() + other.join().unwrap();
        keeper.join().unwrap();
        drop(shelver.join().unwrap());
        assert_eq!(admitted, 3);
        assert_eq!([remaining(&cells, 1), remaining(&cells, 2)], [0, 0]);
    };
    shuttle::check_random(run, ITERATIONS);
}

#[test]
fn a_reset_meets_bundles_without_deadlock_and_gives_back_one_limit_at_most() {
    let run = || {
        let cells = small();
        let one = spender(&cells, &[1, 2], 3);
        let other = spender(&cells, &[2, 1], 3);
        let resetter = {
            let cells = Arc::clone(&cells);
            let namespace = asks(&[1], 3)[0].namespace;
            thread::spawn(move || cells.reset(Which::Namespace(namespace)))
        };
        let admitted = one.join().unwrap() + other.join().unwrap();
        resetter.join().unwrap();
        assert!((3..=6).contains(&admitted), "{admitted}");
    };
    shuttle::check_random(run, ITERATIONS);
}

#[test]
fn evictions_of_a_full_table_meet_rounds_without_deadlock_and_lose_nothing() {
    let run = || {
        let cells = small();
        let one = spender(&cells, &[1, 2], 2);
        let other = spender(&cells, &[2, 1], 2);
        let shelver = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || {
                // A shelf that never takes anything: all must still be in reach.
                cells.renew_filter();
                cells.hand_over();
                cells.take_back();
                cells.adopt_filter(&[]);
            })
        };
        let admitted = one.join().unwrap() + other.join().unwrap();
        shelver.join().unwrap();
        assert_eq!((admitted, cells.stats().lost), (3, 0));
        assert_eq!([remaining(&cells, 1), remaining(&cells, 2)], [0, 0]);
    };
    shuttle::check_random(run, ITERATIONS);
}
