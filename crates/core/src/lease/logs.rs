//! What must hold for the record of a log whose holders are gone.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::{Boot, Record, Take, Taken, Totals};
use crate::{Limit, Millis, Quota, Width};

const START: u64 = 1_700_000_000_000;
const WIDTH: u64 = 1_000;

fn take(boot: u64, seq: u64, need: u64, ask: u64) -> Take {
    let (quota, width) = (Quota::new(20).unwrap(), Width::from_millis(WIDTH).unwrap());
    Take {
        boot: Boot(boot),
        seq,
        win: 0,
        totals: Totals::default(),
        need,
        more: 0,
        forgotten: 0,
        ask,
        bundled: false,
        nodes: 1,
        limit: Limit::sliding_log(quota, width).unwrap(),
    }
}

fn told(kept: &mut Option<Record>, call: &Take, now: u64) -> Taken {
    Record::take(kept, call, false, Millis(now))
}

#[test]
fn nobody_is_asked_for_what_a_dead_process_held_of_a_log_that_stays_in_use() {
    let mut kept = None;
    let lent = told(&mut kept, &take(1, 1, 1, 8), START).lent;
    assert!(lent > 1);
    let at_once = told(&mut kept, &take(2, 1, 20, 20), START + 1);
    assert!(!at_once.took && at_once.recall && at_once.outstanding == lent);
    let mut seq = 1;
    for now in (START + 50..START + 5 * WIDTH).step_by(20) {
        seq += 1;
        let taken = told(&mut kept, &take(2, seq, 1, 1), now);
        let gone = now > START + WIDTH / 50 + 1;
        assert!(gone && taken.outstanding == 0 && !taken.recall, "{now}: {taken:?}");
    }
}
