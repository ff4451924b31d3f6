//! What must hold for every algorithm, whatever the limit, the costs and the clock.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;

use super::State;
use crate::{
    AMOUNT_MAX, Admission, Algorithm, Check, Cost, Limit, Millis, Outcome, Quota, Width, Window,
    settle,
};

const CASES: u32 = 10_000;
const START: u64 = 1_700_000_000_123;

#[derive(Clone, Copy, Debug)]
struct Ask {
    advance_ms: u64,
    cost: u64,
}

fn quota(amount: u64) -> Quota {
    Quota::new(amount).unwrap()
}

fn limits() -> impl Strategy<Value = Limit> {
    let width = prop_oneof![1_u64..50, 900_u64..5000, 3_600_000_u64..40_000_000_000];
    let amount = prop_oneof![1_u64..5, 5_u64..2000];
    (0..6, amount, width, 1_u64..3000).prop_map(|(kind, amount, width, burst)| {
        let width = Width::from_millis(width).unwrap();
        match kind {
            0 => Limit::fixed_window(quota(amount), Window::Aligned(width)),
            1 => Limit::fixed_window(quota(amount), Window::Month),
            2 => Limit::sliding_window(quota(amount), width),
            3 => Limit::sliding_log(quota(amount), width).unwrap(),
            4 => Limit::token_bucket(quota(amount), width, None),
            _ => Limit::token_bucket(quota(amount), width, Some(quota(burst))),
        }
    })
}

/// Asks spread so that they fill the limit within a few windows, whatever its size.
fn cases() -> impl Strategy<Value = (Limit, Vec<Ask>)> {
    limits().prop_flat_map(|limit| {
        let gap = width_ms(&limit) / 4 + 2;
        let cost =
            prop_oneof![4 => 0..limit.quota.get() / 3 + 2, 1 => 0..limit.quota.get() * 2 + 2];
        let ask = (0..gap, cost).prop_map(|(advance_ms, cost)| Ask { advance_ms, cost });
        (Just(limit), prop::collection::vec(ask, 1..24))
    })
}

fn width_ms(limit: &Limit) -> u64 {
    match limit.algorithm {
        Algorithm::FixedWindow(Window::Aligned(width))
        | Algorithm::SlidingWindow(width)
        | Algorithm::SlidingLog(width)
        | Algorithm::TokenBucket { width, .. } => width.millis(),
        Algorithm::FixedWindow(_) => 31 * 86_400_000,
    }
}

/// Runs the asks from `START` and shows each outcome, with its state before and after.
fn walk(limit: &Limit, asks: &[Ask], mut see: impl FnMut(&State, Cost, Millis, &Outcome, &State)) {
    let mut state = State::fresh(limit);
    let mut now = Millis(START);
    for ask in asks {
        now = now + ask.advance_ms;
        let cost = Cost::new(ask.cost).unwrap();
        let (outcome, next) = state.clone().spend(limit, cost, now);
        see(&state, cost, now, &outcome, &next);
        state = next;
    }
}

/// The most that the algorithm's own definition lets through, given all that was admitted.
fn within_definition(limit: &Limit, admitted: &[(Millis, u64)]) -> bool {
    let Some(&(now, _)) = admitted.last() else { return true };
    let quota = u128::from(limit.quota.get());
    let sum = |from: Millis, to: Millis| -> u128 {
        admitted
            .iter()
            .filter(|(at, _)| from <= *at && *at < to)
            .map(|(_, cost)| u128::from(*cost))
            .sum()
    };
    match limit.algorithm {
        Algorithm::FixedWindow(window) => {
            let (start, end) = window.bounds(now);
            sum(start, end) <= quota
        }
        Algorithm::SlidingWindow(width) => {
            let start = width.start_of(now);
            let previous = sum(Millis(start.0 - width.millis()), start);
            let left = u128::from(width.millis() - now.since(start));
            // The share of the previous window by the hand of the clock; rounding only ever adds to it.
            sum(start, start + width.millis()) + previous * left / u128::from(width.millis())
                <= quota
        }
        Algorithm::SlidingLog(width) => {
            sum(Millis(now.0 + 1 - width.millis().min(now.0)), now + 1) <= quota
        }
        Algorithm::TokenBucket { width, capacity } => admitted.iter().all(|(from, _)| {
            let flowed = u128::from(now.since(*from)) * quota;
            let spent = sum(*from, now + 1) * u128::from(width.millis());
            spent <= u128::from(capacity.get()) * u128::from(width.millis()) + flowed
        }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(CASES) })]

    #[test]
    fn no_interval_admits_more_than_the_algorithm_defines((limit, asks) in cases()) {
        let mut admitted = Vec::new();
        let mut held = true;
        walk(&limit, &asks, |_, cost, now, outcome, _| {
            if outcome.admitted() {
                admitted.push((now, cost.get()));
                held &= within_definition(&limit, &admitted);
            }
        });
        prop_assert!(held, "{admitted:?}");
    }

    #[test]
    fn a_denied_cost_passes_at_its_retry_time_and_not_a_millisecond_earlier((limit, asks) in cases()) {
        let mut held = true;
        walk(&limit, &asks, |before, cost, now, outcome, after| {
            if let Admission::NotUntil(at) = outcome.admission {
                for state in [before, after] {
                    held &= at > now && state.probe(&limit, cost, at).admitted();
                    held &= !state.probe(&limit, cost, Millis(at.0 - 1)).admitted();
                }
            }
        });
        prop_assert!(held);
    }

    #[test]
    fn a_cost_above_the_limit_is_never_possible_and_every_other_is_some_day((limit, asks) in cases()) {
        let mut held = true;
        walk(&limit, &asks, |_, cost, _, outcome, _| {
            held &= (cost.get() > outcome.limit) == (outcome.admission == Admission::Never);
        });
        prop_assert!(held);
    }

    #[test]
    fn the_reset_never_moves_within_a_window((limit, asks) in cases()) {
        let window = match limit.algorithm {
            Algorithm::FixedWindow(window) => window,
            Algorithm::SlidingWindow(width) => Window::Aligned(width),
            _ => return Ok(()),
        };
        let mut held = true;
        walk(&limit, &asks, |_, _, now, outcome, _| held &= outcome.reset == window.bounds(now).1);
        prop_assert!(held);
    }

    #[test]
    fn time_going_backwards_never_refills((limit, asks) in cases(), back_ms in 1_u64..100_000_000_000) {
        let mut held = true;
        walk(&limit, &asks, |_, _, now, _, after| {
            let earlier = Millis(now.0.saturating_sub(back_ms));
            let at_now = after.probe(&limit, Cost::PEEK, now).remaining;
            let (stepped_back, kept) = after.clone().spend(&limit, Cost::PEEK, earlier);
            held &= stepped_back.remaining <= at_now;
            // And the excursion leaves no trace once the clock is right again.
            held &= kept.probe(&limit, Cost::PEEK, now).remaining <= at_now;
        });
        prop_assert!(held);
    }

    #[test]
    fn what_is_spent_while_the_clock_is_behind_counts_in_the_newest_window_it_has_shown(
        (limit, asks) in cases(), ahead_ms in 1_u64..10_000_000,
    ) {
        let mut held = true;
        walk(&limit, &asks, |_, _, now, _, after| {
            let (seen, ahead) = after.clone().spend(&limit, Cost::ONE, now + ahead_ms);
            if !seen.admitted() {
                return;
            }
            let (back, kept) = ahead.spend(&limit, Cost::ONE, now);
            let later = kept.probe(&limit, Cost::PEEK, now + ahead_ms).remaining;
            held &= later <= seen.remaining - u64::from(back.admitted());
        });
        prop_assert!(held);
    }

    #[test]
    fn a_denial_spends_nothing_and_an_admission_exactly_its_cost((limit, asks) in cases()) {
        let mut held = true;
        walk(&limit, &asks, |before, cost, now, outcome, after| {
            let had = before.probe(&limit, Cost::PEEK, now).remaining;
            let spent = if outcome.admitted() { cost.get() } else { 0 };
            held &= outcome.remaining == had - spent;
            held &= after.probe(&limit, Cost::PEEK, now).remaining == had - spent;
            held &= before.probe(&limit, cost, now) == *outcome;
        });
        prop_assert!(held);
    }

    #[test]
    fn what_is_foreseen_is_what_spending_comes_to((limit, asks) in cases()) {
        walk(&limit, &asks, |before, cost, now, outcome, after| {
            let (foreseen, next) = before.ahead(&limit, cost, now);
            assert_eq!(foreseen, *outcome);
            assert_eq!(next.is_none(), matches!(before, State::Log(_)));
            assert!(next.is_none_or(|next| next == *after));
        });
    }

    #[test]
    fn a_cell_is_as_good_as_fresh_from_its_idle_moment_on((limit, asks) in cases(), later in 0_u64..10_000) {
        let mut held = true;
        walk(&limit, &asks, |_, _, _, _, after| {
            let idle = after.idle_at(&limit) + later;
            if idle.0 >= START {
                let fresh = State::fresh(&limit).probe(&limit, Cost::ONE, idle);
                held &= after.probe(&limit, Cost::ONE, idle) == fresh;
            }
        });
        prop_assert!(held);
    }

    #[test]
    fn a_state_survives_its_bytes((limit, asks) in cases(), cut in 0_usize..64) {
        let mut states = Vec::new();
        walk(&limit, &asks, |_, _, _, _, after| states.push(after.clone()));
        for state in states {
            let mut bytes = Vec::new();
            state.encode(&mut bytes);
            prop_assert_eq!(State::decode(&bytes), Some(state));
            bytes.truncate(cut.min(bytes.len() - 1));
            // A torn state is refused, or (a log cut between entries) is at least a state.
            let _ = State::decode(&bytes);
        }
    }

    #[test]
    fn garbage_never_decodes_to_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Some(state) = State::decode(&bytes) {
            let mut again = Vec::new();
            state.encode(&mut again);
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn nothing_overflows_near_the_largest_amount(
        near in 0_u64..4, costs in prop::collection::vec(0_u64..4, 1..12), kind in 0..3,
        width in prop_oneof![Just(1000_u64), Just(crate::WIDTH_MS_MAX)], gap in 0_u64..2_000,
    ) {
        let big = quota(AMOUNT_MAX - near);
        let width = Width::from_millis(width).unwrap();
        let limit = match kind {
            0 => Limit::fixed_window(big, Window::Aligned(width)),
            1 => Limit::sliding_window(big, width),
            _ => Limit::token_bucket(big, width, Some(quota(AMOUNT_MAX))),
        };
        let asks: Vec<_> = costs.iter().map(|off| Ask { advance_ms: gap, cost: AMOUNT_MAX - off }).collect();
        let mut admitted = Vec::new();
        let mut held = true;
        walk(&limit, &asks, |_, cost, now, outcome, _| {
            held &= outcome.remaining <= outcome.limit;
            if outcome.admitted() {
                admitted.push((now, cost.get()));
                held &= within_definition(&limit, &admitted);
            }
        });
        prop_assert!(held);
    }

    #[test]
    fn no_moment_is_later_than_json_carries_and_before_the_last_one_it_is_exact(
        amount in 1_u64..4, costs in prop::collection::vec(0_u64..AMOUNT_MAX, 1..12),
        burst in (AMOUNT_MAX - 3..=AMOUNT_MAX), width in 1..crate::WIDTH_MS_MAX, gap in 0_u64..2_000,
    ) {
        let width = Width::from_millis(width).unwrap();
        let limit = Limit::token_bucket(quota(amount), width, Some(quota(burst)));
        let asks: Vec<_> = costs.iter().map(|cost| Ask { advance_ms: gap, cost: *cost }).collect();
        let mut held = true;
        walk(&limit, &asks, |before, cost, now, outcome, after| {
            let foreseen = limit.after(before.probe(&limit, Cost::PEEK, now), cost);
            let idle = after.idle_at(&limit);
            held &= outcome.reset.max(foreseen.reset).max(idle) <= Millis::LAST;
            if let Admission::NotUntil(at) = outcome.admission {
                held &= at <= Millis::LAST && !before.probe(&limit, cost, Millis(at.0 - 1)).admitted();
                held &= at == Millis::LAST || before.probe(&limit, cost, at).admitted();
            }
        });
        prop_assert!(held);
    }

    #[test]
    fn a_denied_bundle_consumes_nothing(
        (limit_a, asks) in cases(), limit_b in limits(), shared in any::<bool>(),
    ) {
        let mut states = [State::fresh(&limit_a), State::fresh(&limit_b)];
        let mut now = Millis(START);
        for ask in asks {
            now = now + ask.advance_ms;
            let cost = Cost::new(ask.cost).unwrap();
            let second = if shared { Check { limit: limit_a, cost: Cost::ONE, slot: 0 } }
                else { Check { limit: limit_b, cost: Cost::ONE, slot: 1 } };
            let checks = [Check { limit: limit_a, cost, slot: 0 }, second];
            let before = states.clone();
            let settled = settle(&checks, &mut states, now);
            let spent: [u64; 2] = if settled.passed {
                if shared { [cost.get() + 1, 0] } else { [cost.get(), 1] }
            } else {
                [0, 0]
            };
            prop_assert_eq!(settled.passed, settled.outcomes.iter().all(Outcome::admitted));
            for (slot, limit) in [(0, &limit_a), (1, &limit_b)] {
                let had = before[slot].probe(limit, Cost::PEEK, now).remaining;
                let has = states[slot].probe(limit, Cost::PEEK, now).remaining;
                prop_assert_eq!(had - has, spent[slot]);
            }
        }
    }
}

#[test]
fn a_quota_of_zero_blocks_every_cost_but_answers_a_peek() {
    let width = Width::from_millis(1000).unwrap();
    let window = Window::Aligned(width);
    let zero = quota(0);
    for limit in [
        Limit::fixed_window(zero, window),
        Limit::sliding_window(zero, width),
        Limit::sliding_log(zero, width).unwrap(),
        Limit::token_bucket(zero, width, Some(quota(5))),
    ] {
        let state = State::fresh(&limit);
        assert_eq!(state.probe(&limit, Cost::ONE, Millis(START)).admission, Admission::Never);
        assert!(state.probe(&limit, Cost::PEEK, Millis(START)).admitted());
    }
}

#[test]
fn a_state_takes_four_words_so_that_a_cell_fits_a_cache_line() {
    assert_eq!(size_of::<State>(), 32);
}

#[test]
fn asks_that_spend_nothing_leave_no_trace_whatever_limit_they_came_with() {
    let width = Width::from_millis(2_592_000_000).unwrap();
    let small = Limit::token_bucket(quota(2), width, None);
    let (_, empty) = State::fresh(&small).spend(&small, Cost::new(2).unwrap(), Millis(START));
    let huge = Limit::token_bucket(quota(AMOUNT_MAX), width, None);
    let denied = Limit::token_bucket(quota(AMOUNT_MAX), width, Some(quota(1)));
    let (_, peeked) = empty.clone().spend(&huge, Cost::PEEK, Millis(START + 1000));
    let (_, refused) = empty.clone().spend(&denied, Cost::new(2).unwrap(), Millis(START + 1000));
    assert_eq!((&peeked, &refused), (&empty, &empty));
}

#[test]
fn two_checks_of_the_largest_amount_on_one_cell_do_not_both_pass() {
    let width = Width::from_millis(1000).unwrap();
    let limit = Limit::sliding_window(quota(AMOUNT_MAX), width);
    let check = Check { limit, cost: Cost::new(AMOUNT_MAX).unwrap(), slot: 0 };
    let mut states = [State::fresh(&limit)];
    assert!(!settle(&[check, check], &mut states, Millis(START)).passed);
    assert!(settle(&[check], &mut states, Millis(START)).passed);
}
