//! Sleeping and waking: nothing is forgotten by it, and nothing is late.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tollkeeper_core::{
    AMOUNT_MAX, FixedWindow, Limit, Quota, SlidingLog, SlidingWindow, TokenBucket, WIDTH_MS_MAX,
    Width, Window,
};

use super::*;
use crate::lease::ahead::{Ahead, NEVER};
use crate::lease::cell::Sender;
use crate::lease::pace::Pace;
use crate::lease::past::Past;
use crate::lease::sight::Sight;
use crate::lease::waiter::Waiter;
use crate::lease::{Consistency, LeaseAsk, OnOutage};

/// Small numbers, as they mostly are, and all others.
fn units() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..300_u64, 1 => 0..=AMOUNT_MAX]
}

fn moment() -> impl Strategy<Value = Millis> {
    let now = 1_800_000_000_000_u64;
    prop_oneof![
        1 => Just(Millis(0)),
        4 => (now - 100_000..now + 100_000).prop_map(Millis),
        1 => any::<u64>().prop_map(Millis),
    ]
}

fn totals() -> impl Strategy<Value = Totals> {
    (units(), units(), units(), units()).prop_map(|(plain, granted, used, returned)| Totals {
        plain,
        granted,
        used,
        returned,
    })
}

fn limit() -> impl Strategy<Value = Limit> {
    let parts = (0..6, units(), 1..=WIDTH_MS_MAX, units());
    parts.prop_map(|(kind, quota, width, capacity)| {
        let (width, capacity) = (Width::from_millis(width).unwrap(), Quota::new(capacity).unwrap());
        let algorithm = match kind {
            0 => Algorithm::FixedWindow(Window::Day),
            1 => Algorithm::FixedWindow(Window::Month),
            2 => Algorithm::FixedWindow(Window::Aligned(width)),
            3 => Algorithm::SlidingWindow(width),
            4 => Algorithm::SlidingLog(width),
            _ => Algorithm::TokenBucket { width, capacity },
        };
        Limit { quota: Quota::new(quota).unwrap(), algorithm }
    })
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![
        (moment(), units()).prop_map(|(start, used)| State::Fixed(FixedWindow { start, used })),
        (moment(), units(), units()).prop_map(|(start, used, previous)| {
            State::Sliding(SlidingWindow { start, used, previous })
        }),
        (units(), units(), moment()).prop_map(|(missing, fraction, at)| {
            State::Bucket(TokenBucket { missing, fraction, at })
        }),
        (moment(), moment(), units(), units()).prop_map(|(one, other, first, rest)| {
            let (one, other) = (one.min(other), one.max(other));
            let log = SlidingLog::from_parts(other, [(one, first), (other, rest)]);
            State::Log(Box::new(log.unwrap_or_default()))
        }),
    ]
}

fn sight() -> impl Strategy<Value = Sight> {
    (moment(), moment(), moment()).prop_map(|(origin, sent, heard)| Sight { origin, sent, heard })
}

/// Cells as they may sleep: nothing is under way, all is told.
fn cell() -> impl Strategy<Value = LeaseCell<()>> {
    let name = (any::<[u64; 2]>(), "\\PC{0,40}", limit());
    let heard = (totals(), state(), units(), sight(), any::<[bool; 2]>());
    let pace = (any::<u64>(), units(), units());
    let moments = vec(moment(), 6);
    let counts = (any::<u64>(), units(), units(), units(), any::<u32>());
    let past = (
        option::of((any::<u64>(), totals())),
        option::of((moment(), vec((moment(), units()), 0..9))),
    );
    (name, heard, pace, moments, counts, past).prop_map(
        |(
            ([subject, exact], identifier, limit),
            (totals, state, elsewhere, sight, [adopted, never]),
            (win_of_pace, spent, before_it),
            moments,
            (win, last_lent, ceiling, between, refusals),
            (before, past),
        )| {
            let scope = Arc::new(Scope::namespace("tenant", "requests"));
            let name = Arc::new(CellName::new(&scope, &identifier));
            let key = CellKey { subject, exact };
            let marks =
                |(last, marks): (Millis, Vec<_>)| Box::new(Past { last, marks: marks.into() });
            LeaseCell {
                win,
                totals,
                acked: totals,
                adopted,
                strange: false,
                lapse: moments[0],
                last_lent,
                seen: Some(Seen { state, elsewhere, sight }),
                pace: Pace { win: win_of_pace, spent, before: before_it },
                again_at: moments[1],
                refusals,
                ceiling,
                answered: moments[2],
                spent_at: moments[3],
                past: past.map(marks),
                before: before.map(Box::new),
                ahead_from: if never { NEVER } else { moments[4] },
                between,
                unused_by: if never { NEVER } else { moments[5] },
                ..LeaseCell::new(key, name, limit, sight)
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_cell_wakes_as_it_fell_asleep(mut cell in cell()) {
        let asleep = cell.asleep(Millis(0)).unwrap();
        let woken: LeaseCell<()> = asleep.woken(7);
        cell.lease = 7;
        prop_assert_eq!(asleep.key(), cell.key);
        prop_assert_eq!(asleep.holds(), cell.totals.held() > 0);
        prop_assert_eq!(format!("{woken:?}"), format!("{cell:?}"));
    }

    #[test]
    fn history_is_owed_by_a_cell_that_sleeps_as_by_one_that_does_not(mut cell in cell()) {
        let mut asleep = cell.asleep(Millis(0)).unwrap();
        asleep.owe();
        cell.owe();
        let woken: LeaseCell<()> = asleep.woken(cell.lease);
        prop_assert_eq!(format!("{woken:?}"), format!("{cell:?}"));
        prop_assert_eq!(asleep.is_due(|name| *name == *cell.name, Millis(0)), cell.owes);
        prop_assert!(!cell.owes || !asleep.is_due(|_| false, Millis(u64::MAX)));
    }

    /// Clocks are allowed for: a thousandth, and some milliseconds.
    #[test]
    fn a_cell_asleep_is_looked_at_when_its_lease_ends_and_when_it_may_be_forgotten(
        cell in cell(),
        wait_ms in 0..200_000_u64,
    ) {
        let asleep = cell.asleep(Millis(0)).unwrap();
        let now = cell.sight().heard + wait_ms;
        let soon = now + (wait_ms / 200 + 5);
        let tells = matches!(
            cell.limit.algorithm,
            Algorithm::SlidingWindow(_) | Algorithm::SlidingLog(_)
        );
        let ends = cell.totals.held() > 0 && now >= cell.lapse && tells;
        prop_assert!(!ends || asleep.is_due(|_| true, now));
        prop_assert!(!cell.is_forgettable(now) || asleep.is_due(|_| true, soon));
    }

    /// However long after its last answer it was laid down, and however often it was looked at before.
    #[test]
    fn a_cell_asleep_is_not_looked_at_before_anything_becomes_of_it(
        cell in cell(),
        laid_ms in 0..100_000_u64,
        wait_ms in 0..200_000_u64,
    ) {
        let laid = cell.sight().heard + laid_ms;
        let asleep = cell.asleep(laid + IDLE_MS).unwrap();
        let now = laid + wait_ms;
        let renewed = match cell.limit.algorithm {
            Algorithm::TokenBucket { .. } => cell.answered.min(cell.spent_at),
            _ => NEVER,
        };
        let first = [cell.lapse, cell.unused_by, renewed];
        let held = cell.totals.held() > 0 && first.iter().all(|first| now < *first);
        let by_window = cell.is_history_until() <= now;
        prop_assert!(!held || by_window || !asleep.is_due(|_| true, now));
        let empty = cell.totals.held() == 0 && now < cell.unused_by;
        prop_assert!(!empty || now >= laid + IDLE_MS || !asleep.is_due(|_| true, now));
    }
}

fn asked_once(limit: Limit) -> LeaseCell<()> {
    let scope = Arc::new(Scope::namespace("default", "requests"));
    let name = Arc::new(CellName::new(&scope, &"x".repeat(40)));
    let now = Millis(1_800_000_000_000);
    let sight = Sight { origin: now, sent: now, heard: now + 1 };
    let (start, _) = limit.window_at(now);
    let totals = Totals { plain: 1, ..Totals::default() };
    let (_, state) = State::fresh(&limit).spend(&limit, tollkeeper_core::Cost::ONE, now);
    LeaseCell {
        win: start.0,
        totals,
        acked: totals,
        adopted: true,
        strange: false,
        seen: Some(Seen { state, elsewhere: 0, sight }),
        lapse: now + 40_000,
        answered: now,
        spent_at: now + 1,
        pace: Pace { win: start.0, spent: 1, before: 0 },
        ..LeaseCell::new(CellKey { subject: 1, exact: 2 }, name, limit, sight)
    }
}

#[test]
fn a_cell_asleep_takes_a_quarter_of_one_that_is_awake() {
    let (quota, width) = (Quota::new(1_000).unwrap(), Width::from_millis(60_000).unwrap());
    let all = [
        Limit::sliding_window(quota, width),
        Limit::fixed_window(quota, Window::Aligned(width)),
        Limit::token_bucket(quota, width, None),
        Limit::sliding_log(quota, width).unwrap(),
    ];
    assert_eq!(size_of::<Slot<()>>(), 24);
    for limit in all {
        let asleep = asked_once(limit).asleep(Millis(0)).unwrap();
        // 40 are the identifier's. Up to 112 take 112 of the allocator.
        assert!(asleep.bytes.len() <= 112, "{limit:?}: {}", asleep.bytes.len());
    }
}

#[test]
fn nobody_sleeps_who_is_waited_for_or_has_something_to_tell() {
    let limit = Limit::sliding_window(Quota::new(9).unwrap(), Width::from_millis(1_000).unwrap());
    let asleep = |change: fn(&mut LeaseCell<()>)| {
        let mut cell = asked_once(limit);
        change(&mut cell);
        cell.asleep(Millis(0)).is_some()
    };
    assert!(asleep(|_| ()));
    let awake: [fn(&mut LeaseCell<()>); 17] = [
        |cell| cell.totals.plain += 1,
        |cell| cell.aside = 1,
        |cell| cell.pledged = 1,
        |cell| cell.dated.push_back((Millis(1), 1)),
        |cell| cell.owes = true,
        |cell| cell.owes_before = true,
        |cell| cell.doubts = true,
        |cell| cell.missed = true,
        |cell| cell.strange = true,
        |cell| cell.seen = None,
        |cell| cell.share = Some(Box::new(State::fresh(&cell.limit))),
        |cell| cell.share_terms = Some(Box::new((cell.limit, Millis(1)))),
        |cell| cell.ahead = Some(Box::new(Ahead::new(1, cell.limit, 1, cell.born))),
        |cell| cell.parked = Some(Box::default()),
        |cell| {
            cell.report(&sender());
        },
        |cell| cell.waiters.push_back(waiter(cell)),
        |cell| {
            let entries = (1..6).map(|at| (Millis(at), 1));
            let log = SlidingLog::from_parts(Millis(9), entries).unwrap();
            cell.seen.as_mut().unwrap().state = State::Log(Box::new(log));
        },
    ];
    assert_eq!(awake.map(asleep), [false; 17]);
}

fn sender() -> Sender {
    let now = Millis(1);
    Sender { boot: tollkeeper_core::Boot(1), seq: 1, nodes: 1, now, sight: Sight::guess(now) }
}

fn waiter(cell: &LeaseCell<()>) -> Waiter<()> {
    let ask = LeaseAsk {
        key: cell.key,
        limit: cell.limit,
        cost: tollkeeper_core::Cost::ONE,
        consistency: Consistency::Exact,
        on_outage: OnOutage::Share,
        bundled: false,
        beside: 0,
    };
    Waiter { id: 1, ask, tell: (), rounds: 0, waits: 0, until: Millis(1) }
}
