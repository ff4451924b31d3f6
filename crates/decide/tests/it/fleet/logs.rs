//! Logs: who waits for one is served at once, and who comes a moment too early for it waits.

use tollkeeper_core::{Cost, Limit, Quota, Width};
use tollkeeper_decide::{LeaseAsk, Link, NearLease, Stage, Turn};

use super::rules::{Desk, SECOND, ask};

fn log(quota: u64) -> Limit {
    let width = Width::from_millis(SECOND).unwrap();
    Limit::sliding_log(Quota::new(quota).unwrap(), width).unwrap()
}

/// Several ask while the call of the first is under way; what its answer deals.
fn all_at_once(desk: &mut Desk, asks: &[LeaseAsk]) -> Turn<u64> {
    let mut first = None;
    for ask in asks {
        let NearLease::Waits(_, errand) = desk.near(ask, Link::Up) else {
            panic!("it was decided without a call")
        };
        first = first.or(errand);
    }
    let errand = first.unwrap();
    let taken = desk.hear(&errand);
    let turn = desk.table.absorb(&errand, Ok(&taken), desk.now, desk.now);
    match turn.next {
        Some(next) => {
            let taken = desk.hear(&next);
            let later = desk.table.absorb(&next, Ok(&taken), desk.now, desk.now);
            Turn { dealt: turn.dealt.into_iter().chain(later.dealt).collect(), ..later }
        }
        None => turn,
    }
}

fn admitted(turn: &Turn<u64>) -> usize {
    turn.dealt.iter().filter(|(_, dealt)| dealt.outcome.admitted()).count()
}

/// A record that one call made knows its millisecond only; from the second on it is a hash.
fn made(desk: &mut Desk, limit: Limit) {
    desk.admits(&ask(1, limit));
    desk.now = desk.now + (2 * SECOND - 1);
}

#[test]
fn a_line_is_served_by_the_second_call_and_nothing_of_a_log_is_lent_for_it() {
    let mut desk = Desk::new();
    made(&mut desk, log(10));
    let calls = desk.calls.len();
    let turn = all_at_once(&mut desk, &[ask(1, log(10)); 5]);
    assert_eq!(admitted(&turn), 5);
    assert!(turn.dealt.iter().all(|(_, dealt)| dealt.units.unwrap().stage == Stage::Taken));
    let said = &desk.calls[calls..];
    // The first call left before the others had come.
    assert_eq!(
        said.iter().map(|take| (take.need, take.more)).collect::<Vec<_>>(),
        [(1, 0), (1, 3)]
    );
    desk.now = desk.now + SECOND / 2;
    assert_eq!(desk.tick(), [], "there is nothing to give back");
}

#[test]
fn a_line_is_served_as_far_as_the_log_goes() {
    let mut desk = Desk::new();
    made(&mut desk, log(3));
    let turn = all_at_once(&mut desk, &[ask(1, log(3)); 5]);
    assert_eq!((admitted(&turn), turn.dealt.len()), (3, 5));
}

#[test]
fn what_is_spent_together_with_others_is_lent_and_not_spent_at_once() {
    let mut desk = Desk::new();
    made(&mut desk, log(10));
    let bundled = LeaseAsk { bundled: true, ..ask(1, log(10)) };
    let turn = all_at_once(&mut desk, &[ask(1, log(10)), bundled, bundled]);
    assert_eq!(admitted(&turn), 3);
    let aside = |(_, dealt): &&(u64, tollkeeper_decide::Dealt)| {
        matches!(dealt.units.unwrap().stage, Stage::Aside { .. })
    };
    assert_eq!(turn.dealt.iter().filter(aside).count(), 2);
    assert!(desk.calls.iter().all(|take| take.more == 0));
}

/// 20 in ten seconds, of which 8 count at any time.
#[test]
fn an_origin_that_forgot_a_log_is_told_what_still_counts_and_not_what_was_ever_spent() {
    let mut desk = Desk::new();
    let width = Width::from_millis(10_000).unwrap();
    let slow = ask(1, Limit::sliding_log(Quota::new(20).unwrap(), width).unwrap());
    for _ in 0..100 {
        desk.now = desk.now + 1_250;
        assert!(desk.admits(&slow));
    }
    for errand in {
        desk.records.clear();
        desk.assert_all()
    } {
        desk.run(errand);
    }
    let mut left = 0;
    while desk.admits(&slow) {
        left += 1;
    }
    // An eighth of the width more than counts may be told, and what a lapsed lease took.
    assert!((9..=12).contains(&left), "{left} left of 12");
    // Nothing of the last width is left out.
    desk.records.clear();
    for errand in desk.assert_all() {
        desk.run(errand);
    }
    assert!(!desk.admits(&slow));
}

#[test]
fn who_comes_a_moment_too_early_for_a_log_waits_for_it_and_is_admitted() {
    let mut desk = Desk::new();
    made(&mut desk, log(3));
    assert_eq!(admitted(&all_at_once(&mut desk, &[ask(1, log(3)); 3])), 3);
    desk.now = desk.now + (SECOND - 2);
    let early = all_at_once(&mut desk, &[ask(1, log(3)); 3]);
    let wait = early.again_in.unwrap();
    assert!(early.dealt.is_empty() && (1..=3).contains(&wait), "{early:?}");
    desk.now = desk.now + wait;
    let errand = desk.table.ask_again(ask(1, log(3)).key, desk.now).unwrap();
    let taken = desk.hear(&errand);
    let turn = desk.table.absorb(&errand, Ok(&taken), desk.now, desk.now);
    assert_eq!(admitted(&turn), 3);
}

#[test]
fn who_comes_much_too_early_for_a_log_is_refused_at_once() {
    let mut desk = Desk::new();
    made(&mut desk, log(1));
    assert!(desk.admits(&ask(1, log(1))));
    desk.now = desk.now + SECOND / 2;
    let early = all_at_once(&mut desk, &[ask(1, log(1)); 2]);
    assert_eq!((early.again_in, early.dealt.len(), admitted(&early)), (None, 2, 0));
    assert!(matches!(desk.near(&ask(1, log(1)), Link::Up), NearLease::Dealt(..)), "and remembered");
}

#[test]
fn a_line_of_mixed_costs_spends_nothing_for_nobody() {
    let costing = |cost| LeaseAsk { cost: Cost::new(cost).unwrap(), ..ask(1, log(100)) };
    let mut desk = Desk::new();
    made(&mut desk, log(100));
    assert!(desk.admits(&costing(51)));
    desk.now = desk.now + 1;
    let turn = all_at_once(&mut desk, &[1, 1, 50, 1].map(costing));
    assert_eq!(admitted(&turn), 3, "{turn:?}");
    desk.now = desk.now + SECOND / 2;
    assert!(desk.admits(&costing(46)), "all that the three did not cost is there");
}

#[test]
fn what_is_asked_for_behind_a_line_is_never_less_than_the_first_of_it_needs() {
    let costing = |cost| LeaseAsk { cost: Cost::new(cost).unwrap(), ..ask(1, log(100)) };
    let mut desk = Desk::new();
    made(&mut desk, log(100));
    let calls = desk.calls.len();
    // The first call is on its way when the line forms.
    let turn = all_at_once(&mut desk, &[3, 2, 2, 2, 1, 1].map(costing));
    let said = &desk.calls[calls + 1];
    assert_eq!((said.need, said.more, said.ask), (2, 4, 4), "the need and the two ones");
    assert_eq!(admitted(&turn), 6, "and they are lent for");
}
