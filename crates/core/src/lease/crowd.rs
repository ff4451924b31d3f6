//! What must hold for a record that more boots have called than any fleet has: processes that start and end all the time.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;

use proptest::prelude::*;

use super::{Boot, Record, Stand, Take, Totals};
use crate::{Limit, Millis, Quota, Width, Window};

const START: u64 = 1_700_000_000_000;
const WIDTH: u64 = 100_000;
const QUOTA: u64 = 1_000_000;

/// They live, and call every second.
const LIVING: u64 = 3;

fn limit(sliding: bool) -> Limit {
    let (quota, width) = (Quota::new(QUOTA).unwrap(), Width::from_millis(WIDTH).unwrap());
    if sliding {
        Limit::sliding_window(quota, width)
    } else {
        Limit::fixed_window(quota, Window::Aligned(width))
    }
}

#[derive(Clone, Copy, Debug)]
struct Call {
    need: u64,
    ask: u64,
    used: u64,
    returned: u64,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = (0_u64..4, 0_u64..40, 0_u64..20, 0_u64..20);
    let call = call.prop_map(|(need, ask, used, returned)| Call { need, ask, used, returned });
    prop::collection::vec(call, 64..2_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_boot_that_calls_every_second_is_never_counted_twice(
        sliding in any::<bool>(),
        dead in 1_u64..60,
        calls in calls(),
    ) {
        let limit = limit(sliding);
        let mut kept = None;
        let mut boots: HashMap<u64, (u64, Totals)> = HashMap::new();
        for (at, call) in (0_u64..).zip(calls) {
            // Within a second all that live call, and so many more that never will again.
            let (round, place) = (at / (LIVING + dead), at % (LIVING + dead));
            let boot = if place < LIVING { u64::MAX - place } else { at };
            let now = START + round * 1_000 + place * 1_000 / (LIVING + dead);
            if now >= START + WIDTH {
                break;
            }
            let (seq, known) = boots.entry(boot).or_default();
            *seq += 1;
            known.used += call.used.min(known.held());
            known.returned += call.returned.min(known.held());
            let take = Take {
                boot: Boot(boot),
                seq: *seq,
                win: START,
                totals: *known,
                need: call.need,
                more: 0,
                forgotten: 0,
                ask: call.ask,
                bundled: false,
                nodes: LIVING,
                limit,
            };
            let taken = Record::take(&mut kept, &take, false, Millis(now));
            prop_assert_eq!(taken.stand, Stand::Heard);
            *known = known.merged(taken.totals);
            let counted: u64 = boots.values().map(|(_, totals)| totals.counted()).sum();
            prop_assert_eq!(taken.free(&limit), QUOTA - counted);
        }
    }
}
