//! The lease of the next window, on one node whose origin is a record at hand: when it is asked for, from when on it is spent,
//! and what becomes of it when something goes wrong in between.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tollkeeper_core::{Boot, Cost, Millis, Stand, Take, Totals};
use tollkeeper_decide::{Ceilings, LeaseAsk, LeaseMark, LeaseTable, Link, Missed, NearLease};

use super::rules::{Desk, HOUR, SECOND, START, ask, fixed, sliding};

/// Ten seconds wide, so that a moment of the cell's own is found in steps.
const WIDTH: u64 = 10 * SECOND;
const NEXT: u64 = START.0 + WIDTH;

/// Marks in the order they were written.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<LeaseMark>>>);

impl Ceilings for Written {
    fn raise(&self, mark: LeaseMark) {
        self.0.lock().unwrap().push(mark);
    }
}

/// Asks every 100 ms until the cell has asked for its next window, which it must in this one.
fn until_ahead(desk: &mut Desk, ask: &LeaseAsk) -> Take {
    while desk.now.0 < NEXT - 100 {
        desk.now = desk.now + 100;
        desk.ask(ask);
        if let Some(ahead) = desk.calls.iter().find(|call| call.win == NEXT) {
            return *ahead;
        }
    }
    panic!("the window ends and nobody asked for the next: {:?}", desk.calls);
}

/// The same, without an answer to it.
fn until_ahead_unheard(desk: &mut Desk, ask: &LeaseAsk) {
    while desk.now.0 < NEXT - 100 {
        desk.now = desk.now + 100;
        let (NearLease::Dealt(_, Some(errand)) | NearLease::Waits(_, Some(errand))) =
            desk.near(ask, Link::Up)
        else {
            continue;
        };
        if errand.take.win != NEXT {
            desk.run(errand);
            continue;
        }
        assert!(desk.hear(&errand).lent > 0);
        desk.table.absorb(&errand, Err(Missed::Silent), desk.now, desk.now);
        return;
    }
    panic!("the window ends and nobody asked for the next");
}

fn busy(quota: u64) -> (Desk, LeaseAsk) {
    let mut desk = Desk::new();
    let one = ask(1, fixed(quota, WIDTH));
    for _ in 0..20 {
        desk.ask(&one);
    }
    (desk, one)
}

/// What the origin has lent of the next window and not heard to be spent or given back.
fn lent_of_next(desk: &mut Desk, one: &LeaseAsk) -> u64 {
    let before = std::mem::replace(&mut desk.now, Millis(NEXT - 1));
    let look = Take {
        boot: Boot(99),
        seq: 1,
        win: NEXT,
        totals: Totals::default(),
        need: 0,
        more: 0,
        forgotten: 0,
        ask: 0,
        bundled: false,
        nodes: 1,
        limit: one.limit,
    };
    let outstanding = desk.take(one.key, &look).outstanding;
    desk.now = before;
    outstanding
}

#[test]
fn a_busy_cell_has_its_lease_when_the_window_begins_and_makes_no_call_at_the_edge() {
    let (mut desk, one) = busy(1_000);
    let ahead = until_ahead(&mut desk, &one);
    assert_eq!((ahead.need, ahead.totals), (0, Totals::default()));
    assert!(ahead.ask >= 20);
    let calls = desk.calls.len();
    for ms in 0..40 {
        desk.now = Millis(NEXT - 20 + ms);
        assert!(desk.admits(&one), "{ms}");
    }
    assert_eq!(desk.calls.len(), calls, "{:?}", &desk.calls[calls..]);
}

#[test]
fn of_the_next_window_nothing_is_spent_for_it_alone_before_it_has_surely_begun() {
    let (mut desk, one) = busy(25);
    until_ahead(&mut desk, &one);
    // This window is used up: what is lent of the next one does not help.
    desk.now = Millis(NEXT - 50);
    while desk.admits(&one) {}
    for at in NEXT - 40..NEXT {
        desk.now = Millis(at);
        assert!(!desk.admits(&one), "{} ms before the edge", NEXT - at);
    }
    let calls = desk.calls.len();
    desk.now = Millis(NEXT + 12);
    assert!(desk.admits(&one));
    assert_eq!(desk.calls.len(), calls);
}

#[test]
fn around_the_edge_a_request_is_paid_in_both_windows() {
    let (mut desk, one) = busy(1_000);
    until_ahead(&mut desk, &one);
    // Redis' clock may be at either side of the edge here.
    desk.now = Millis(NEXT);
    let calls = desk.calls.len();
    assert!(desk.admits(&one));
    let bundled = LeaseAsk { bundled: true, ..one };
    let (spent, kept) = (desk.ask(&bundled).units.unwrap(), desk.ask(&bundled).units.unwrap());
    assert!(desk.table.settle(&[spent], desk.now));
    desk.table.release(kept);
    assert_eq!(desk.calls.len(), calls);
    desk.now = Millis(NEXT + 100);
    let told = desk.table.recall(one.key, desk.now + SECOND).unwrap();
    assert_eq!((told.take.win, told.take.totals.used), (NEXT, 2));
}

#[test]
fn who_comes_once_or_twice_asks_for_no_next_window() {
    let mut desk = Desk::new();
    let one = ask(1, fixed(1_000, WIDTH));
    for window in 0..4 {
        for at in [100, 9_800] {
            desk.now = START + window * WIDTH + at;
            assert!(desk.admits(&one));
        }
    }
    assert!(desk.calls.len() <= 8 && desk.calls.iter().all(|call| call.need == 1));
    let told = desk.table.tick(0, 1, desk.now + WIDTH);
    assert!(told.is_empty(), "nothing is given back: {told:?}");
}

#[test]
fn sliding_windows_ask_for_nothing_ahead() {
    let mut desk = Desk::new();
    let one = ask(1, sliding(1_000, WIDTH));
    for _ in 0..99 {
        desk.now = desk.now + 100;
        desk.ask(&one);
    }
    assert!(desk.calls.iter().all(|call| call.win <= START.0), "{:?}", desk.calls);
}

#[test]
fn a_lease_ahead_that_nobody_uses_goes_back_early_in_its_window() {
    let (mut desk, one) = busy(1_000);
    until_ahead(&mut desk, &one);
    assert!(lent_of_next(&mut desk, &one) > 0);
    let mut told = Vec::new();
    for at in (NEXT..NEXT + WIDTH * 3 / 10).step_by(100) {
        desk.now = Millis(at);
        told.extend(desk.tick());
    }
    assert_eq!(told.len(), 1, "one call: {told:?}");
    assert_eq!((told[0].win, told[0].totals.held(), told[0].ask), (NEXT, 0, 0));
    assert_eq!(lent_of_next(&mut desk, &one), 0);
    desk.now = Millis(NEXT + WIDTH + 70 * SECOND);
    desk.tick();
    assert_eq!(desk.table.stats().cells, 0);
}

#[test]
fn a_lease_ahead_that_was_granted_unheard_is_found_after_the_edge_and_goes_back() {
    let (mut desk, one) = busy(1_000);
    until_ahead_unheard(&mut desk, &one);
    assert!(lent_of_next(&mut desk, &one) > 0);
    for at in (NEXT..NEXT + 3 * SECOND).step_by(100) {
        desk.now = Millis(at);
        desk.tick();
    }
    assert_eq!(lent_of_next(&mut desk, &one), 0);
}

#[test]
fn an_origin_that_forgot_is_told_of_the_next_window_too() {
    let (mut desk, one) = busy(1_000);
    until_ahead(&mut desk, &one);
    let lent = lent_of_next(&mut desk, &one);
    desk.records.clear();
    for errand in desk.assert_all() {
        desk.run(errand);
    }
    desk.tick();
    assert_eq!(lent_of_next(&mut desk, &one), lent);
}

#[test]
fn a_node_that_ends_gives_both_windows_back() {
    let (mut desk, one) = busy(1_000);
    until_ahead(&mut desk, &one);
    for errand in desk.table.close(desk.now).0 {
        desk.run(errand);
    }
    assert_eq!(lent_of_next(&mut desk, &one), 0);
}

#[test]
fn a_lease_ahead_of_a_larger_limit_is_not_spent_for_a_smaller_one() {
    let (mut desk, one) = busy(1_000);
    until_ahead(&mut desk, &one);
    let small = ask(1, fixed(5, WIDTH));
    desk.now = Millis(NEXT + 20);
    let calls = desk.calls.len();
    let admitted = (0..10).filter(|_| desk.admits(&small)).count();
    let first = desk.calls[calls];
    assert_eq!((first.win, first.limit, first.totals.held()), (NEXT, small.limit, 0));
    assert!(first.totals.returned > 0, "the larger limit's lease goes back first");
    assert_eq!(admitted, 5);
}

#[test]
fn the_journal_knows_of_a_lease_ahead_before_any_of_it_is_spent() {
    let written = Written::default();
    let mut desk = Desk::new();
    desk.table = LeaseTable::new(64 * 16, Boot(7)).keeping(Arc::new(written.clone()));
    let one = ask(1, fixed(1_000, WIDTH));
    for _ in 0..20 {
        desk.ask(&one);
    }
    until_ahead(&mut desk, &one);
    let marks = written.0.lock().unwrap().clone();
    let mark = marks.iter().rev().find(|mark| mark.win == NEXT).unwrap();
    assert!(mark.totals.granted > 0 && mark.ceiling == 0 && mark.lapse.0 < NEXT + WIDTH);
    assert!(desk.table.marks().iter().any(|mark| mark.win == NEXT));
    for at in [NEXT, NEXT + 20] {
        desk.now = Millis(at);
        assert!(desk.admits(&one));
        let known = written.0.lock().unwrap();
        let spent = known.iter().rev().find(|mark| mark.win == NEXT).unwrap();
        assert!(spent.ceiling >= spent.totals.used && spent.totals.used > 0, "{spent:?}");
    }
}

#[test]
fn a_wide_window_is_asked_for_once_within_its_last_minute() {
    let mut desk = Desk::new();
    let one = ask(1, fixed(100_000, HOUR));
    for _ in 0..20 {
        desk.ask(&one);
    }
    let edge = one.limit.window_at(START).1;
    desk.now = Millis(edge.0 - 61 * SECOND);
    while desk.now.0 < edge.0 - 100 {
        assert!(desk.admits(&one));
        desk.now = desk.now + 100;
    }
    let ahead: Vec<_> = desk.calls.iter().filter(|call| call.win == edge.0).collect();
    assert_eq!(ahead.len(), 1);
}

/// At the edge a call about the window that is over is answered with the time alone, and the cell turns to the next.
#[test]
fn what_others_were_lent_ahead_and_give_back_is_not_missed_after_an_answer_that_tells_only_the_time()
 {
    let (mut desk, one) = busy(1_000);
    let lent = Totals { granted: 600, ..Totals::default() };
    let other = |seq, totals| Take {
        boot: Boot(8),
        seq,
        win: NEXT,
        totals,
        need: 0,
        more: 0,
        forgotten: 0,
        ask: 0,
        bundled: false,
        nodes: 2,
        limit: one.limit,
    };
    desk.take(one.key, &other(1, lent));
    until_ahead(&mut desk, &one);
    desk.now = Millis(NEXT);
    let much = LeaseAsk { cost: Cost::new(200).unwrap(), ..one };
    let NearLease::Waits(_, Some(first)) = desk.near(&much, Link::Up) else { panic!("no call") };
    let taken = desk.hear(&first);
    assert_eq!((first.take.win, taken.stand), (START.0, Stand::WrongWindow));
    let second = desk.table.absorb(&first, Ok(&taken), desk.now, desk.now).next.unwrap();
    assert_eq!(second.take.win, NEXT);
    desk.take(one.key, &other(2, Totals { returned: 600, ..lent }));
    let taken = desk.hear(&second);
    assert!(!desk.table.absorb(&second, Ok(&taken), desk.now, desk.now).lost);
}

#[test]
fn a_record_of_the_next_window_that_vanished_and_was_made_anew_is_missed_once_it_has_begun() {
    let (mut desk, one) = busy(1_000);
    let other = |seq, need, ask| Take {
        boot: Boot(8),
        seq,
        win: NEXT,
        totals: Totals::default(),
        need,
        more: 0,
        forgotten: 0,
        ask,
        bundled: false,
        nodes: 2,
        limit: one.limit,
    };
    let held = Totals { granted: 300, used: 300, ..Totals::default() };
    desk.take(one.key, &Take { totals: held, ..other(1, 0, 0) });
    until_ahead(&mut desk, &one);
    desk.records.clear();
    desk.now = Millis(NEXT + 20);
    desk.take(one.key, &Take { boot: Boot(9), ..other(1, 7, 0) });
    let calls = desk.calls.len();
    while desk.calls.len() == calls {
        assert!(desk.admits(&one));
    }
    assert_eq!(desk.missed, 1);
}

#[test]
fn a_window_that_comes_again_to_an_origin_without_history_is_told_what_was_spent_of_it() {
    let (mut desk, one) = busy(25);
    let spent = 20 + (0..9).filter(|_| desk.admits(&one)).count();
    assert_eq!(spent, 25);
    // The origin lost its records, and its clock is two windows back; the node's goes on.
    desk.records.clear();
    let mut admitted = HashMap::new();
    for passed in (SECOND..3 * WIDTH).step_by(50) {
        let now = START + passed;
        let name = || unreachable!("the cell is known");
        let (mut dealt, errand) = match desk.table.near(&one, name, |id| id, Link::Up, now) {
            NearLease::Dealt(dealt, errand) => (vec![(0, dealt)], errand),
            NearLease::Waits(_, errand) => (Vec::new(), errand),
        };
        let mut next: Vec<_> = errand.into_iter().chain(desk.table.tick(0, 1, now)).collect();
        desk.now = Millis(now.0 - 2 * WIDTH);
        while let Some(call) = next.pop() {
            let taken = desk.hear(&call);
            let turn = desk.table.absorb(&call, Ok(&taken), now, now);
            dealt.extend(turn.dealt);
            next.extend(turn.next);
        }
        let yes = dealt.iter().filter(|(_, dealt)| dealt.outcome.admitted()).count();
        *admitted.entry(desk.now.0 - desk.now.0 % WIDTH).or_insert(0) += yes;
    }
    assert_eq!(admitted[&(START.0 - WIDTH)], 25, "of a window that nobody knows any more");
    assert_eq!(admitted[&START.0], 0, "of one that was used up before");
}

#[test]
fn a_cost_above_what_is_held_ahead_asks_for_all_of_itself() {
    let (mut desk, one) = busy(1_000);
    until_ahead(&mut desk, &one);
    desk.now = Millis(NEXT + 20);
    let calls = desk.calls.len();
    let much = LeaseAsk { cost: Cost::new(900).unwrap(), ..one };
    assert!(desk.admits(&much));
    let call = desk.calls[calls];
    assert_eq!((call.win, call.need, call.totals.held()), (NEXT, 900, 0));
}
