//! Bursts, and costs of one beside costs of many: what is there is had, by whoever it is enough for.

use tollkeeper_core::{Boot, Cost, Limit, Quota, Take, Totals, Width};
use tollkeeper_decide::{LeaseAsk, Link, NearLease};

use super::called_in::{Other, first, second};
use super::rules::{Desk, HOUR, SECOND, ask, fixed, sliding};

fn bucket(quota: u64) -> Limit {
    let width = Width::from_millis(SECOND).unwrap();
    Limit::token_bucket(Quota::new(quota).unwrap(), width, None)
}

fn costing(cost: u64, limit: Limit) -> LeaseAsk {
    LeaseAsk { cost: Cost::new(cost).unwrap(), ..ask(1, limit) }
}

/// As many ones as there are.
fn drain(desk: &mut Desk, limit: Limit) -> u64 {
    (0..limit.ceiling()).take_while(|_| desk.admits(&ask(1, limit))).count() as u64
}

#[test]
fn who_is_refused_for_its_cost_leaves_what_is_free_to_smaller_ones() {
    let mut desk = Desk::new();
    let limit = bucket(1_000);
    assert!(desk.admits(&costing(950, limit)));
    assert!(!desk.admits(&costing(125, limit)));
    assert_eq!(drain(&mut desk, limit), 50);
}

#[test]
fn the_same_where_windows_slide() {
    let mut desk = Desk::new();
    let limit = sliding(1_000, 10 * SECOND);
    desk.now = desk.now + (10 * SECOND - desk.now.0 % (10 * SECOND));
    assert!(desk.admits(&costing(1_000, limit)));
    // Half of the window before is over, and half of its units are free.
    desk.now = desk.now + 15 * SECOND;
    assert!(desk.admits(&costing(450, limit)));
    assert!(!desk.admits(&costing(125, limit)));
    assert_eq!(drain(&mut desk, limit), 50);
}

#[test]
fn a_bucket_fills_while_nobody_asks_for_what_was_spent_in_a_burst() {
    let mut desk = Desk::new();
    let limit = bucket(1_000);
    assert_eq!(drain(&mut desk, limit), 1_000);
    for _ in 0..5 {
        desk.now = desk.now + 200;
        desk.tick();
    }
    assert!(drain(&mut desk, limit) >= 990, "what was spent counted as lent, and was not refilled");
}

#[test]
fn who_asks_now_and_then_tells_a_bucket_no_more_often_than_is_worth_it() {
    let mut desk = Desk::new();
    let limit = bucket(10_000);
    for _ in 0..200 {
        assert!(desk.admits(&ask(1, limit)));
    }
    let before = desk.calls.len();
    for _ in 0..20 {
        assert!(desk.admits(&ask(1, limit)));
        desk.now = desk.now + 200;
        desk.tick();
    }
    assert!(desk.calls.len() - before <= 3, "{} calls", desk.calls.len() - before);
}

#[test]
fn the_same_of_a_small_bucket() {
    let mut desk = Desk::new();
    let limit = bucket(50);
    for _ in 0..10 {
        assert!(desk.admits(&ask(1, limit)));
    }
    let before = desk.calls.len();
    for _ in 0..40 {
        assert!(desk.admits(&ask(1, limit)));
        desk.now = desk.now + 200;
        desk.tick();
    }
    let calls = desk.calls.len() - before;
    assert!(calls <= 16, "{calls} calls");
    // And what it is not told at once is told once nobody asks any more.
    for _ in 0..10 {
        desk.now = desk.now + 200;
        desk.tick();
    }
    assert_eq!(drain(&mut desk, limit), 50);
}

#[test]
fn units_that_are_not_free_yet_keep_their_date_when_some_are_called_in() {
    let mut desk = Desk::new();
    let limit = bucket(1_040);
    assert!(desk.admits(&costing(1_040, limit)));
    // The first is refused, and lent what flows back soon.
    assert!(!desk.admits(&ask(1, limit)));
    desk.run(desk.table.recall(ask(1, limit).key, desk.now).unwrap());
    assert!(!desk.admits(&ask(1, limit)), "spent before it had flowed back");
}

#[test]
fn nobody_is_asked_for_what_the_caller_holds_itself() {
    let mut desk = Desk::new();
    let limit = fixed(1_000, HOUR);
    let aside = desk.ask(&LeaseAsk { bundled: true, ..costing(600, limit) });
    assert!(aside.units.is_some());
    let (_, turn) = first(&mut desk, &costing(500, limit));
    assert!(!turn.recall && turn.again_in.is_none());
}

#[test]
fn a_large_cost_waits_for_what_others_were_asked_for_a_moment_ago() {
    let mut desk = Desk::new();
    let large = costing(400, fixed(1_000, HOUR));
    let mut other = Other::borrows(&mut desk, &large, 3);
    let (_, turn) = first(&mut desk, &large);
    other.gives_back(&mut desk, large.key);
    assert!(second(&mut desk, &large, turn.again_in).outcome.admitted());
    let mut other = other.borrows_again(&mut desk, large.key);
    let (_, turn) = first(&mut desk, &large);
    assert!(!turn.recall, "not so soon again");
    other.gives_back(&mut desk, large.key);
    assert!(second(&mut desk, &large, turn.again_in).outcome.admitted());
}

#[test]
fn what_large_costs_spend_is_no_reason_to_borrow() {
    let mut desk = Desk::new();
    let limit = fixed(1_000, HOUR);
    for _ in 0..4 {
        assert!(desk.admits(&costing(125, limit)));
        assert!(desk.admits(&ask(1, limit)));
    }
    let last = *desk.calls.last().unwrap();
    let rest = 1_000 - 4 * 126 - 8;
    let other =
        Take { boot: Boot(8), seq: 1, totals: Totals::default(), need: rest, ask: 0, ..last };
    assert!(desk.take(ask(1, limit).key, &other).took, "lent to a node that spends four ones");
}

#[test]
fn a_small_cost_does_not_borrow_for_the_large_ones_behind_it() {
    let mut desk = Desk::new();
    let limit = fixed(1_000, HOUR);
    let NearLease::Waits(_, Some(call)) = desk.near(&ask(1, limit), Link::Up) else {
        panic!("no call")
    };
    // They come while the first call is under way, and the first of them is small.
    for cost in [1, 125, 125] {
        assert!(matches!(desk.near(&costing(cost, limit), Link::Up), NearLease::Waits(_, None)));
    }
    let taken = desk.hear(&call);
    let next = desk.table.absorb(&call, Ok(&taken), desk.now, desk.now).next.unwrap();
    assert_eq!((next.take.need, next.take.ask), (1, 1), "what is lent is never enough for those");
}

#[test]
fn what_is_large_is_not_rounded_down() {
    for (quota, large) in [(47, 3), (48, 3), (1_000, 63)] {
        let limit = fixed(quota, HOUR);
        let asked_after = |cost| {
            let mut desk = Desk::new();
            assert!(desk.admits(&costing(cost, limit)));
            assert!(desk.admits(&costing(1, limit)));
            desk.calls.last().unwrap().ask
        };
        // What large costs spend is nobody's pace, and of others as much again is asked for.
        assert_eq!(asked_after(large), 1, "{large} of {quota}");
        assert_eq!(asked_after(large - 1), large - 1, "{} of {quota}", large - 1);
    }
}

#[test]
fn what_is_in_hand_here_counts_for_a_cost_that_comes_while_a_call_is_under_way() {
    let mut desk = Desk::new();
    let limit = fixed(1_000, HOUR);
    assert!(desk.admits(&costing(600, limit)));
    let mut left = 400;
    let call = loop {
        left -= 1;
        match desk.near(&ask(1, limit), Link::Up) {
            NearLease::Dealt(_, Some(call)) => break call,
            NearLease::Dealt(..) => {}
            NearLease::Waits(_, call) => desk.run(call.unwrap()),
        }
    };
    let rest = costing(left, limit);
    assert!(matches!(desk.near(&rest, Link::Up), NearLease::Waits(_, None)));
    let taken = desk.hear(&call);
    let turn = desk.table.absorb(&call, Ok(&taken), desk.now, desk.now);
    let Some(next) = turn.next else { panic!("it was refused what its own node holds") };
    let taken = desk.hear(&next);
    let turn = desk.table.absorb(&next, Ok(&taken), desk.now, desk.now);
    assert!(turn.dealt.first().unwrap().1.outcome.admitted());
}
