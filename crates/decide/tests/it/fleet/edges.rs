//! The end of a window while a call is under way.

use tollkeeper_core::{State, Take, Totals};
use tollkeeper_decide::{Link, NearLease};

use super::rules::{Desk, SECOND, START, ask, sliding};

#[test]
fn a_lease_that_ends_with_an_answer_about_the_next_window_goes_back() {
    let mut desk = Desk::new();
    let one = ask(1, sliding(1_000, SECOND));
    desk.now = START + 900;
    let mut spent = 0;
    let errand = loop {
        match desk.near(&one, Link::Up) {
            // Enough is held, and a call for more leaves behind the answer.
            NearLease::Dealt(_, Some(errand)) if spent > 100 => break errand,
            NearLease::Dealt(_, Some(errand)) | NearLease::Waits(_, Some(errand)) => {
                desk.run(errand);
            }
            NearLease::Dealt(..) => {}
            NearLease::Waits(_, None) => panic!("nobody else waits"),
        }
        spent += 1;
    };
    spent += 1;
    assert!(errand.take.totals.held() > 0, "{errand:?}");
    let sent = desk.now;
    desk.now = START + SECOND;
    let taken = desk.hear(&errand);
    assert_eq!(taken.win, desk.now.0);
    let mut next = desk.table.absorb(&errand, Ok(&taken), sent, desk.now).next;
    while let Some(errand) = next {
        let taken = desk.hear(&errand);
        next = desk.table.absorb(&errand, Ok(&taken), desk.now, desk.now).next;
    }
    desk.tick();
    let looks = Take { need: 0, ask: 0, totals: Totals::default(), ..errand.take };
    let looks = Take { seq: u64::MAX >> 11, win: desk.now.0, ..looks };
    let State::Sliding(window) = desk.take(one.key, &looks).state else { panic!("it slides") };
    assert_eq!(window.previous, spent);
}
