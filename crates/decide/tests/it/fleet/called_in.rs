//! A request that is refused what other nodes hold: it waits while that is called in, and asks once more.

use tollkeeper_core::{Boot, Cost, Limit, Quota, Take, Totals, Width};
use tollkeeper_decide::{CellKey, Dealt, Errand, LeaseAsk, LeaseTable, Link, NearLease, Turn};

use super::rules::{Desk, HOUR, SECOND, ask, fixed};

/// A node that shares the limit, and so much of it that was lent to that one.
pub(super) struct Other {
    said: Take,
    held: u64,
}

// === impl Other ===

impl Other {
    /// It has borrowed what it could in so many calls.
    pub(super) fn borrows(desk: &mut Desk, ask: &LeaseAsk, calls: u64) -> Self {
        let win = ask.limit.window_at(desk.now).0.0;
        let mut said = Take {
            boot: Boot(8),
            seq: 0,
            win,
            totals: Totals::default(),
            need: 0,
            more: 0,
            forgotten: 0,
            ask: ask.limit.ceiling(),
            bundled: false,
            nodes: 1,
            limit: ask.limit,
        };
        for seq in 1..=calls {
            said.seq = seq;
            said.totals = desk.take(ask.key, &Take { need: u64::from(seq == 1), ..said }).totals;
        }
        Self { held: said.totals.held(), said }
    }

    pub(super) fn gives_back(&mut self, desk: &mut Desk, key: CellKey) {
        self.said.totals.returned += std::mem::take(&mut self.held);
        self.said.seq += 1;
        desk.take(key, &Take { ask: 0, ..self.said });
    }

    /// Once more, what it could in one call.
    pub(super) fn borrows_again(mut self, desk: &mut Desk, key: CellKey) -> Self {
        self.said.seq += 1;
        self.said.totals = desk.take(key, &self.said).totals;
        Self { held: self.said.totals.held(), said: self.said }
    }
}

fn costing(cost: u64) -> LeaseAsk {
    LeaseAsk { cost: Cost::new(cost).unwrap(), ..ask(1, fixed(1_000, HOUR)) }
}

fn absorb(desk: &mut Desk, errand: &Errand) -> Turn<u64> {
    let taken = desk.hear(errand);
    desk.table.absorb(errand, Ok(&taken), desk.now, desk.now)
}

/// The first call for it, and what comes of that.
pub(super) fn first(desk: &mut Desk, ask: &LeaseAsk) -> (u64, Turn<u64>) {
    let NearLease::Waits(id, Some(errand)) = desk.near(ask, Link::Up) else {
        panic!("it was decided without a call")
    };
    (id, absorb(desk, &errand))
}

/// Those that follow until it is dealt with.
pub(super) fn second(desk: &mut Desk, ask: &LeaseAsk, in_ms: Option<u64>) -> Dealt {
    let (dealt, _) = later(desk, ask, in_ms);
    dealt
}

/// The same, and how many there were.
fn later(desk: &mut Desk, ask: &LeaseAsk, mut in_ms: Option<u64>) -> (Dealt, u32) {
    for calls in 1.. {
        desk.now = desk.now + in_ms.unwrap();
        let errand = desk.table.ask_again(ask.key, desk.now).unwrap();
        let turn = absorb(desk, &errand);
        in_ms = turn.again_in;
        if let Some((_, dealt)) = turn.dealt.first() {
            assert_eq!(in_ms, None);
            return (*dealt, calls);
        }
    }
    unreachable!("it is dealt with, or waits")
}

#[test]
fn a_cost_that_others_hold_units_for_is_admitted_once_they_have_given_back() {
    let mut desk = Desk::new();
    let large = costing(400);
    let mut other = Other::borrows(&mut desk, &large, 3);
    assert!(other.held > 700, "{}", other.held);
    let (_, turn) = first(&mut desk, &large);
    assert!(turn.recall && turn.again_in.is_some() && turn.dealt.is_empty() && turn.next.is_none());
    other.gives_back(&mut desk, large.key);
    let dealt = second(&mut desk, &large, turn.again_in);
    assert!(dealt.outcome.admitted() && dealt.units.is_some());
}

#[test]
fn who_waits_for_others_in_vain_is_refused_by_the_limit_and_not_for_want_of_an_answer() {
    let mut desk = Desk::new();
    let large = costing(400);
    Other::borrows(&mut desk, &large, 3);
    let (_, turn) = first(&mut desk, &large);
    let dealt = second(&mut desk, &large, turn.again_in);
    assert!(!dealt.outcome.admitted() && !dealt.degraded);
    assert!(desk.table.ask_again(large.key, desk.now).is_none(), "nobody waits any more");
}

#[test]
fn who_waits_for_others_asks_as_often_as_there_is_time_for_and_no_longer_than_its_patience() {
    for (patience, calls) in [(3, None), (11, Some(3)), (400, Some(3))] {
        let mut desk = Desk::new();
        desk.table = LeaseTable::new(64 * 16, Boot(7)).with_patience(patience);
        let large = costing(400);
        Other::borrows(&mut desk, &large, 3);
        let began = desk.now;
        let (_, turn) = first(&mut desk, &large);
        let made = turn.again_in.map(|ms| later(&mut desk, &large, Some(ms)).1);
        assert_eq!(made, calls, "{patience}");
        assert!(desk.now.since(began) <= patience);
    }
}

#[test]
fn what_others_give_back_late_is_had_all_the_same() {
    let mut desk = Desk::new();
    let large = costing(400);
    let mut other = Other::borrows(&mut desk, &large, 3);
    let (_, turn) = first(&mut desk, &large);
    desk.now = desk.now + turn.again_in.unwrap();
    let errand = desk.table.ask_again(large.key, desk.now).unwrap();
    let again = absorb(&mut desk, &errand);
    assert!(again.dealt.is_empty());
    other.gives_back(&mut desk, large.key);
    assert!(second(&mut desk, &large, again.again_in).outcome.admitted());
}

#[test]
fn who_gives_up_while_others_are_asked_is_refused_by_the_limit_and_leaves_nobody_behind() {
    let mut desk = Desk::new();
    let large = costing(400);
    Other::borrows(&mut desk, &large, 3);
    let (id, _) = first(&mut desk, &large);
    let dealt = desk.table.give_up(large.key, id, desk.now).unwrap();
    assert!(!dealt.outcome.admitted() && !dealt.degraded && dealt.units.is_none());
    assert!(desk.table.give_up(large.key, id, desk.now).is_none());
    assert!(desk.table.ask_again(large.key, desk.now).is_none());
}

#[test]
fn nobody_waits_for_what_others_do_not_hold() {
    let mut desk = Desk::new();
    assert!(desk.admits(&costing(700)));
    let (_, turn) = first(&mut desk, &costing(400));
    assert!(!turn.recall && turn.again_in.is_none());
    assert!(!turn.dealt.first().unwrap().1.outcome.admitted());
}

#[test]
fn others_are_decided_while_one_waits_for_what_is_called_in() {
    let mut desk = Desk::new();
    let large = costing(400);
    let mut other = Other::borrows(&mut desk, &large, 3);
    let (_, turn) = first(&mut desk, &large);
    assert!(desk.admits(&costing(1)), "there is enough for a small one");
    other.gives_back(&mut desk, large.key);
    assert!(second(&mut desk, &large, turn.again_in).outcome.admitted());
}

#[test]
fn of_a_line_that_lacks_what_others_hold_one_asks_for_it() {
    let width = Width::from_millis(SECOND).unwrap();
    let limit = Limit::token_bucket(Quota::new(1_000).unwrap(), width, None);
    let large = LeaseAsk { limit, ..costing(400) };
    let mut desk = Desk::new();
    Other::borrows(&mut desk, &large, 3);
    let before = desk.calls.len();
    let NearLease::Waits(_, Some(errand)) = desk.near(&large, Link::Up) else { panic!("no call") };
    for _ in 0..20 {
        assert!(matches!(desk.near(&large, Link::Up), NearLease::Waits(_, None)));
    }
    desk.run(errand);
    assert!(desk.calls.len() - before <= 2, "{} calls", desk.calls.len() - before);
}

#[test]
fn who_was_asked_to_give_back_borrows_for_those_who_wait_and_for_nobody_else() {
    let mut desk = Desk::new();
    let width = Width::from_millis(SECOND).unwrap();
    let limit = Limit::token_bucket(Quota::new(1_000).unwrap(), width, None);
    let one = LeaseAsk { limit, ..costing(1) };
    for _ in 0..50 {
        assert!(desk.admits(&one));
    }
    let asks_for = |desk: &mut Desk| loop {
        match desk.near(&one, Link::Up) {
            NearLease::Waits(_, errand) => {
                let errand = errand.unwrap();
                desk.run(errand.clone());
                return errand.take.ask;
            }
            NearLease::Dealt(_, None) => {}
            NearLease::Dealt(_, Some(errand)) => return errand.take.ask,
        }
    };
    desk.now = desk.now + 60;
    if let Some(errand) = desk.table.recall(one.key, desk.now) {
        desk.run(errand);
    }
    assert_eq!(asks_for(&mut desk), 1, "who lacks it has not had the time to ask again");
    desk.now = desk.now + 10;
    assert!(asks_for(&mut desk) > 50, "and borrows as before once that time is over");
}
