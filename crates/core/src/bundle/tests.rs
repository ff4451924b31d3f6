//! Bundles that ask one cell several times, under limits that may differ.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;

use super::{Check, settle, settle_if};
use crate::{Admission, Algorithm, Cost, Limit, Millis, Outcome, Quota, State, Width, Window};

const WIDTH_MS: u64 = 1_000;
const START: u64 = 1_700_000_000_123;

/// Of one cell: same algorithm, same width.
fn limit(kind: u8, amount: u64) -> Limit {
    let (quota, width) = (Quota::new(amount).unwrap(), Width::from_millis(WIDTH_MS).unwrap());
    match kind {
        0 => Limit::fixed_window(quota, Window::Aligned(width)),
        1 => Limit::sliding_window(quota, width),
        2 => Limit::sliding_log(quota, width).unwrap(),
        _ => Limit::token_bucket(quota, width, None),
    }
}

fn check(kind: u8, amount: u64, cost: u64, slot: usize) -> Check {
    Check { limit: limit(kind, amount), cost: Cost::new(cost).unwrap(), slot }
}

fn remaining(outcomes: &[Outcome]) -> Vec<u64> {
    outcomes.iter().map(|outcome| outcome.remaining).collect()
}

#[test]
fn what_remains_is_said_after_all_that_the_bundle_takes() {
    for kind in 0..4 {
        for (asks, left) in [
            ([(10, 5), (2, 0)], [5, 0]),
            ([(2, 0), (10, 5)], [0, 5]),
            ([(3, 1), (5, 2)], [0, 2]),
            ([(5, 1), (5, 1)], [3, 3]),
        ] {
            let checks = asks.map(|(amount, cost)| check(kind, amount, cost, 0));
            let mut states = [State::fresh(&checks[0].limit)];
            let settled = settle(&checks, &mut states, Millis(START));
            assert!(settled.passed, "{kind} {asks:?}");
            assert_eq!(remaining(&settled.outcomes), left, "{kind} {asks:?}");
        }
    }
}

#[test]
fn a_bundle_that_does_not_pass_says_what_is_left_unspent() {
    for kind in 0..4 {
        let checks = [check(kind, 10, 5, 0), check(kind, 2, 0, 0), check(kind, 10, 2, 0)];
        let mut states = [State::fresh(&checks[0].limit)];
        let settled = settle_if(&checks, &mut states, Millis(START), || false);
        assert!(settled.had_room && !settled.passed);
        assert_eq!(remaining(&settled.outcomes), [10, 2, 10], "{kind}");
    }
}

#[test]
fn a_bucket_that_filled_at_a_slow_rate_does_not_pay_for_a_fast_one_in_the_same_bundle() {
    let (fast, slow) = (check(3, 1_000, 500, 0), check(3, 2, 1, 0));
    let Algorithm::TokenBucket { width, .. } = slow.limit.algorithm else { unreachable!() };
    let slow = Limit::token_bucket(slow.limit.quota, width, Some(fast.limit.quota));
    let slow = Check { limit: slow, cost: Cost::ONE, slot: 0 };
    let all = Cost::new(1_000).unwrap();
    let (_, empty) = State::fresh(&fast.limit).spend(&fast.limit, all, Millis(START));
    let mut states = [empty.clone()];
    let settled = settle(&[slow, fast], &mut states, Millis(START + WIDTH_MS));
    assert!(!settled.passed && !settled.had_room);
    assert_eq!(states, [empty]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_bundle_that_asks_one_cell_often_is_what_its_asks_come_to_one_by_one(
        kind in 0..4_u8,
        before in prop::collection::vec((0..2_000_u64, 0..9_u64), 0..4),
        asks in prop::collection::vec((1..20_u64, 0..5_u64, 0..2_usize), 1..6),
    ) {
        let mut now = Millis(START);
        let mut states = [0, 1].map(|_| State::fresh(&limit(kind, 9)));
        for (gap, cost) in before {
            now = now + gap;
            for state in &mut states {
                state.step(&limit(kind, 9), Cost::new(cost).unwrap(), now);
            }
        }
        let untouched = states.clone();
        let checks: Vec<_> =
            asks.into_iter().map(|(amount, cost, slot)| check(kind, amount, cost, slot)).collect();
        let settled = settle(&checks, &mut states, now);
        let mut alone = untouched.clone();
        let admitted = checks
            .iter()
            .all(|one| alone[one.slot].step(&one.limit, one.cost, now).admitted());
        prop_assert_eq!(settled.passed, settled.outcomes.iter().all(Outcome::admitted));
        // Of a bucket no more is taken at once than has come back at each of its rates.
        prop_assert!(admitted || !settled.passed);
        if kind < 3 {
            prop_assert_eq!(admitted, settled.passed);
        }
        let ends = if settled.passed { &alone } else { &untouched };
        for (one, outcome) in checks.iter().zip(&settled.outcomes) {
            let left = ends[one.slot].probe(&one.limit, Cost::PEEK, now);
            prop_assert_eq!(*outcome, Outcome { admission: outcome.admission, ..left });
            let said = states[one.slot].probe(&one.limit, Cost::PEEK, now);
            prop_assert_eq!(said, left);
            prop_assert!(one.cost != Cost::PEEK || outcome.admission == Admission::Admitted);
        }
    }
}
