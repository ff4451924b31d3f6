//! What must hold for the record of a fixed window that is yet to begin, whoever calls and however often.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;

use proptest::prelude::*;

use super::{AHEAD_MS, Boot, Record, Stand, Take, Taken, Totals};
use crate::{Limit, Millis, Quota, Width, Window};

const EDGE: u64 = 1_700_000_000_000;

fn limit(quota: u64, width: u64) -> Limit {
    let width = Width::from_millis(width).unwrap();
    Limit::fixed_window(Quota::new(quota).unwrap(), Window::Aligned(width))
}

fn take(limit: Limit, seq: u64, need: u64, ask: u64) -> Take {
    let totals = Totals::default();
    Take {
        boot: Boot(1),
        seq,
        win: EDGE,
        totals,
        need,
        more: 0,
        forgotten: 0,
        ask,
        bundled: false,
        nodes: 2,
        limit,
    }
}

fn told(kept: &mut Option<Record>, call: &Take, now: u64) -> Taken {
    Record::take(kept, call, false, Millis(now))
}

#[test]
fn a_window_is_lent_from_at_most_a_minute_before_it_begins_and_never_spent_from() {
    for (width, first) in [(2_000, 2_000), (40_000, 40_000), (100_000_000, AHEAD_MS)] {
        let limit = limit(100, width);
        for (early, stand) in
            [(1, Stand::Heard), (first, Stand::Heard), (first + 1, Stand::WrongWindow)]
        {
            let taken = told(&mut None, &take(limit, 1, 0, 10), EDGE - early);
            assert_eq!((taken.stand, taken.took), (stand, false), "{early} of {width}");
            assert_eq!(taken.lent, if stand == Stand::Heard { 10 } else { 0 });
            let needed = told(&mut None, &take(limit, 1, 1, 10), EDGE - early);
            assert_eq!((needed.stand, needed.lent), (Stand::WrongWindow, 0));
        }
    }
}

#[test]
fn months_of_any_length_are_lent_from_before_they_begin() {
    let limit = Limit::fixed_window(Quota::new(100).unwrap(), Window::Month);
    let mut now = Millis(EDGE);
    for _ in 0..24 {
        let next = limit.window_at(now).1;
        let call = Take { win: next.0, ..take(limit, 1, 0, 10) };
        let mut kept = None;
        assert_eq!(told(&mut kept, &call, next.0 - 1).lent, 10);
        // It is there for all of its window.
        let end = limit.window_at(next).1;
        let used = Totals { granted: 10, used: 10, ..Totals::default() };
        let late = told(&mut kept, &Take { seq: 2, totals: used, ..call }, end.0 - 1);
        assert_eq!((late.made, late.totals.granted), (false, 10 + late.lent));
        now = next;
    }
}

#[test]
fn a_reset_before_the_window_begins_leaves_what_was_lent_of_it() {
    let limit = limit(10, 2_000);
    let mut kept = None;
    let lent = told(&mut kept, &take(limit, 1, 0, 10), EDGE - 100).lent;
    kept.as_mut().unwrap().reset();
    let other = Take { boot: Boot(2), ..take(limit, 1, 0, 0) };
    assert_eq!(told(&mut kept, &other, EDGE).free(&limit), 10 - lent);
}

/// One call of one of a few boots: what it gives back or spends of what it holds, and what it wants.
#[derive(Clone, Copy, Debug)]
struct Step {
    boot: u64,
    advance_ms: u64,
    used: u64,
    returned: u64,
    need: u64,
    ask: u64,
    /// Delivered so many times, and the answer to it lost.
    times: u64,
    lost: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0_u64..3, 0_u64..400, 0_u64..9, 0_u64..9, 0_u64..3, 0_u64..40, 1_u64..3, 0_u8..4);
    let step = step.prop_map(|(boot, advance_ms, used, returned, need, ask, times, lost)| Step {
        boot,
        advance_ms,
        used,
        returned,
        need,
        ask,
        times,
        lost: lost == 0,
    });
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// From two seconds before the edge to the window's end: all that boots hold and have spent of the window fits its limit,
    /// and nothing is spent of it by a call before it begins.
    #[test]
    fn what_is_lent_before_and_in_a_window_fits_its_limit(quota in 1_u64..200, steps in steps()) {
        let limit = limit(quota, 10_000);
        let (mut kept, mut now, mut seq) = (None, EDGE - 2_000, 0);
        let mut boots: HashMap<u64, Totals> = HashMap::new();
        for step in steps {
            now = (now + step.advance_ms).min(EDGE + 9_999);
            seq += 1;
            let known = boots.entry(step.boot).or_default();
            // Units are spent in the window only; they are given back at any time.
            known.used += if now >= EDGE { step.used.min(known.held()) } else { 0 };
            known.returned += step.returned.min(known.held());
            let need = if now >= EDGE { step.need } else { 0 };
            let call = Take { boot: Boot(step.boot), totals: *known, ..take(limit, seq, need, step.ask) };
            for _ in 0..step.times {
                let taken = told(&mut kept, &call, now);
                prop_assert_eq!(taken.stand, Stand::Heard);
                prop_assert!(now >= EDGE || !taken.took);
                prop_assert!(taken.totals.granted >= known.granted);
                if !step.lost {
                    *known = known.merged(taken.totals);
                }
            }
            let counted: u64 = boots.values().map(Totals::counted).sum();
            prop_assert!(counted <= quota, "{} of {}", counted, quota);
        }
    }
}
