//! What must hold for the record of a bucket that is asked for under several terms, and by boots that were not heard for long.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::{Boot, Record, Take, Taken, Totals};
use crate::{Limit, Millis, Quota, Width};

const START: u64 = 1_700_000_000_000;

fn bucket(quota: u64, width: u64, burst: u64) -> Limit {
    let (quota, width) = (Quota::new(quota).unwrap(), Width::from_millis(width).unwrap());
    Limit::token_bucket(quota, width, Quota::new(burst))
}

fn take(limit: Limit, boot: u64, seq: u64, need: u64) -> Take {
    Take {
        boot: Boot(boot),
        seq,
        win: 0,
        totals: Totals::default(),
        need,
        more: 0,
        forgotten: 0,
        ask: need,
        bundled: false,
        nodes: 1,
        limit,
    }
}

fn told(kept: &mut Option<Record>, call: &Take, now: u64) -> Taken {
    Record::take(kept, call, false, Millis(now))
}

#[test]
fn a_large_bucket_is_not_full_again_because_a_small_one_was_asked_for() {
    for (quota, burst) in [(1, 1), (1_000, 1), (0, 0)] {
        let (large, small) = (bucket(1, 1_000, 1_000), bucket(quota, 1_000, burst));
        let mut kept = None;
        assert!(told(&mut kept, &take(large, 1, 1, 1_000), START).took);
        told(&mut kept, &take(small, 1, 2, 1), START);
        let later = told(&mut kept, &take(large, 1, 3, 1_000), START + 20_000);
        let free = later.free(&large);
        assert!(!later.took && free <= 20, "{free} free after a bucket of {quota}, {burst}");
    }
}

#[test]
fn a_record_of_a_bucket_ends_however_slowly_it_once_filled() {
    let mut kept = None;
    told(&mut kept, &take(bucket(1, 1_000, 10), 1, 1, 10), START);
    told(&mut kept, &take(bucket(10, 1_000, 10), 1, 2, 1), START);
    let again = told(&mut kept, &take(bucket(10, 1_000, 10), 1, 3, 1), START + 40_000);
    assert!(again.took && again.made);
}

/// A loan of which some was spent and the rest was given back by a call that nobody heard, until all of it was written off.
#[test]
fn what_a_boot_gives_back_after_it_was_written_off_is_missing_from_no_later_loan() {
    let limit = bucket(100, 10_000, 100);
    let mut kept = None;
    let lent = told(&mut kept, &Take { ask: 50, ..take(limit, 1, 1, 1) }, START).lent;
    assert!(lent > 20);
    let unheard = Totals { plain: 1, granted: lent, used: 9, returned: lent - 9 };
    let call = Take { totals: unheard, ..take(limit, 1, 2, 1) };
    let heard = told(&mut kept, &Take { ask: 40, ..call }, START + 11_000);
    let now = unheard.merged(heard.totals);
    assert!(heard.lent > 0);
    assert_eq!(now.held(), heard.lent, "{heard:?}");
    // All of it is spent and told: nothing is lent any more.
    let spent = Totals { used: now.used + now.held(), ..now };
    let all = told(&mut kept, &Take { totals: spent, ..take(limit, 1, 3, 0) }, START + 11_001);
    assert_eq!(all.outstanding, 0);
    let full = told(&mut kept, &take(limit, 1, 4, 100), START + 40_000);
    assert!(full.took, "{full:?}");
}
