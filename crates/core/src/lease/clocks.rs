//! What must hold for a record whose clock goes far ahead and comes back: it goes on, and nothing is granted twice.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::{Boot, Record, Take, Taken, Totals};
use crate::{Algorithm, Limit, Millis, Quota, Width};

const NOW: u64 = 1_700_000_000_000;
const WIDTH: u64 = 1_000;
const FAR: u64 = NOW + 20 * WIDTH;

fn sliding() -> Limit {
    Limit::sliding_window(Quota::new(100).unwrap(), Width::from_millis(WIDTH).unwrap())
}

fn bucket() -> Limit {
    Limit::token_bucket(Quota::new(100).unwrap(), Width::from_millis(WIDTH).unwrap(), None)
}

fn take(limit: Limit, seq: u64, need: u64) -> Take {
    Take {
        boot: Boot(1),
        seq,
        win: 0,
        totals: Totals::default(),
        need,
        more: 0,
        forgotten: 0,
        ask: 0,
        bundled: false,
        nodes: 1,
        limit,
    }
}

fn told(kept: &mut Option<Record>, call: Take, now: u64) -> Taken {
    let win = match call.limit.algorithm {
        Algorithm::SlidingWindow(width) => width.start_of(Millis(now)).0,
        _ => 0,
    };
    Record::take(kept, &Take { win, ..call }, false, Millis(now))
}

#[test]
fn what_was_counted_far_ahead_counts_when_the_clock_is_back_and_for_no_longer_than_usual() {
    for limit in [sliding(), bucket()] {
        let mut kept = None;
        assert!(told(&mut kept, take(limit, 1, 10), NOW).took);
        assert!(told(&mut kept, take(limit, 2, 60), FAR).took);
        let back = told(&mut kept, take(limit, 3, 41), NOW + 1);
        assert!(!back.took, "{limit:?}");
        assert!(told(&mut kept, take(limit, 4, 40), NOW + 1).took, "{limit:?}");
        assert!(told(&mut kept, take(limit, 5, 100), NOW + 2 * WIDTH).took, "{limit:?}");
    }
}

#[test]
fn a_clock_that_goes_back_by_little_waits() {
    let mut kept = None;
    assert!(told(&mut kept, take(sliding(), 1, 60), NOW + WIDTH).took);
    assert_eq!(told(&mut kept, take(sliding(), 2, 0), NOW).win, NOW + WIDTH);
    let mut kept = None;
    assert!(told(&mut kept, take(bucket(), 1, 100), NOW + WIDTH).took);
    for (seq, at, took) in [(2, 0, false), (3, WIDTH, false), (4, WIDTH + 10, true)] {
        assert_eq!(told(&mut kept, take(bucket(), seq, 1), NOW + at).took, took, "{at}");
    }
}

#[test]
fn what_was_lent_far_ahead_is_not_given_back_once_that_window_comes_again() {
    let mut kept = None;
    let other = |seq, totals| Take { boot: Boot(2), ask: 40, totals, ..take(sliding(), seq, 0) };
    let lent = told(&mut kept, other(1, Totals::default()), FAR).lent;
    assert!(lent > 0);
    assert!(told(&mut kept, take(sliding(), 1, 1), NOW).took);
    assert!(told(&mut kept, take(sliding(), 2, 100), FAR).took);
    let totals = Totals { granted: lent, returned: lent, ..Totals::default() };
    told(&mut kept, other(2, totals), FAR + 1);
    assert!(!told(&mut kept, take(sliding(), 3, 1), FAR + 2).took);
}
