//! Cells that nobody asks for sleep, and nothing of what they hold or did is lost by it.

use tollkeeper_core::Limit;
use tollkeeper_decide::{CellName, Link, NearLease, Place};

use super::rules::{Desk, HOUR, START, ask, fixed, sliding};

const CELL: u64 = 3;

/// A node with a lease of a cell that nobody has asked for since, and that sleeps.
fn holder(limit: Limit) -> Desk {
    let mut desk = Desk::new();
    let one = ask(CELL, limit);
    for _ in 0..3 {
        assert!(desk.admits(&one));
    }
    // What it spent is told first.
    for second in [2, 4] {
        desk.now = START + second * 1_000;
        desk.tick();
    }
    assert_eq!(desk.table.asleep(), 1, "it holds a lease, and sleeps");
    desk
}

fn kinds() -> [Limit; 2] {
    [fixed(100, HOUR), sliding(100, HOUR)]
}

#[test]
fn who_is_asked_for_once_sleeps_at_once_and_spends_no_call_more_for_it() {
    for limit in kinds() {
        let mut desk = Desk::new();
        assert!(desk.admits(&ask(CELL, limit)));
        assert_eq!((desk.table.asleep(), desk.calls.len()), (1, 1));
        for second in 1..60 {
            desk.now = START + second * 1_000;
            assert_eq!(desk.tick(), []);
        }
        assert_eq!(desk.table.asleep(), 1, "it still counts");
        assert!(desk.admits(&ask(CELL, limit)));
        assert_eq!(desk.calls.len(), 2);
        assert_eq!(desk.calls[1].totals.plain, 1, "it knows what it did");
    }
}

#[test]
fn a_lease_that_sleeps_is_spent_without_a_call() {
    for limit in kinds() {
        let desk = holder(limit);
        let NearLease::Dealt(dealt, None) = desk.near(&ask(CELL, limit), Link::Up) else {
            panic!("it has units in hand")
        };
        assert!(dealt.outcome.admitted() && dealt.units.is_some());
        assert_eq!(desk.table.asleep(), 0);
    }
}

#[test]
fn a_lease_that_sleeps_returns_when_others_lack_it() {
    for limit in kinds() {
        let desk = holder(limit);
        let errand = desk.table.recall(ask(CELL, limit).key, desk.now).unwrap();
        assert_eq!(errand.take.totals.held(), 0);
        assert!(errand.take.totals.returned > 0);
    }
}

#[test]
fn a_lease_that_sleeps_returns_when_the_node_ends() {
    for limit in kinds() {
        let desk = holder(limit);
        let (errands, left) = desk.table.close(desk.now);
        assert_eq!((errands.len(), left), (1, vec![]));
        assert_eq!(errands[0].take.totals.held(), 0);
    }
}

#[test]
fn a_lease_that_sleeps_is_known_to_the_journal() {
    for limit in kinds() {
        let desk = holder(limit);
        let marks = desk.table.marks();
        assert_eq!(marks.len(), 1);
        assert!(marks[0].totals.held() > 0 && *marks[0].name.identifier == *CELL.to_string());
        assert_eq!(desk.table.asleep(), 1, "a look does not wake it");
    }
}

#[test]
fn a_lease_that_sleeps_ends_with_its_window() {
    let mut desk = holder(sliding(100, HOUR));
    let held = desk.table.marks()[0].totals.held();
    desk.now = START + HOUR;
    let calls = desk.tick();
    assert_eq!(calls.len(), 1);
    assert_eq!((calls[0].totals.held(), calls[0].totals.returned), (0, held));
}

#[test]
fn a_fixed_windows_lease_sleeps_until_it_is_forgotten_with_the_window() {
    let mut desk = holder(fixed(100, HOUR));
    let calls = desk.calls.len();
    for second in 5..2 * HOUR / 1_000 {
        desk.now = START + second * 1_000;
        desk.tick();
        assert_eq!(desk.table.asleep(), desk.table.stats().cells, "{second} s");
    }
    assert_eq!((desk.table.stats().cells, desk.calls.len()), (0, calls));
}

#[test]
fn an_origin_that_forgot_is_told_by_cells_that_sleep_and_they_sleep_until_it_is() {
    for limit in kinds() {
        let desk = holder(limit);
        let others = |_: &CellName| false;
        desk.table.assert_all(others);
        assert!(desk.table.tick(0, 1, desk.now).is_empty());
        desk.table.assert_all(|name| *name.identifier == *CELL.to_string());
        desk.table.look(Place::shard(0), 1, usize::MAX, |_| false, desk.now);
        assert_eq!(desk.table.asleep(), 1, "nobody hears it yet");
        let errands = desk.table.tick(0, 1, desk.now);
        assert_eq!(errands.len(), 1);
        assert_eq!(errands[0].take.totals.counted(), desk.table.marks()[0].totals.counted());
    }
}

/// Refused a moment ago, it asks anew where the counter was set back meanwhile.
#[test]
fn a_refusal_that_sleeps_is_forgotten_when_the_counter_is_set_back() {
    let limit = sliding(1, HOUR);
    let mut desk = Desk::new();
    let one = ask(CELL, limit);
    assert!(desk.admits(&one) && !desk.admits(&one));
    assert_eq!(desk.table.asleep(), 1);
    desk.table.forget_where(|_| true);
    let asleep_again = desk.table.asleep();
    assert!(matches!(desk.near(&one, Link::Up), NearLease::Waits(..)));
    assert_eq!(asleep_again, 1);
}
