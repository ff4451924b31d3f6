//! A bundle: every limit of one request, spent together or not at all.
//! Pure. The caller holds the locks and puts the states back.

use crate::{Admission, Cost, Limit, Millis, Outcome, State};

/// One limit to check, against the state in `slot`. Two checks may share a slot.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    pub limit: Limit,
    pub cost: Cost,
    pub slot: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Everything passed and was spent.
    pub passed: bool,
    /// The limits alone had room. Without `passed` it was the condition beside them that did not hold.
    pub had_room: bool,
    /// In the order of the checks. When the bundle is denied, those that would have passed
    /// report what they have left unspent.
    pub outcomes: Vec<Outcome>,
}

/// Spends every check or none. A denied bundle leaves all counts as they were.
pub fn settle(checks: &[Check], states: &mut [State], now: Millis) -> Settled {
    settle_if(checks, states, now, || true)
}

/// The same, on one more condition (credits). It is asked last and only when every limit has room,
/// so that what it takes is never taken in vain.
pub fn settle_if(
    checks: &[Check],
    states: &mut [State],
    now: Millis,
    condition: impl FnOnce() -> bool,
) -> Settled {
    let mut outcomes = probe_all(checks, states, now);
    let had_room = outcomes.iter().all(Outcome::admitted);
    let passed = had_room && condition();
    if passed {
        for check in checks {
            spend_in_place(&mut states[check.slot], check, now);
        }
    } else {
        report_unspent(checks, states, &mut outcomes, now);
    }
    Settled { passed, had_room, outcomes }
}

/// Each check is weighed together with what earlier checks of the bundle take from the same slot.
fn probe_all(checks: &[Check], states: &[State], now: Millis) -> Vec<Outcome> {
    let mut taken = vec![Cost::PEEK; states.len()];
    let weigh = |check: &Check| {
        let total = taken[check.slot].plus(check.cost);
        let outcome = states[check.slot].probe(&check.limit, total, now);
        taken[check.slot] = total;
        // Asking for nothing never fails, also behind a check that took everything.
        if check.cost == Cost::PEEK && !outcome.admitted() {
            Outcome { admission: Admission::Admitted, ..outcome }
        } else {
            outcome
        }
    };
    checks.iter().map(weigh).collect()
}

fn spend_in_place(state: &mut State, check: &Check, now: Millis) {
    let old = std::mem::replace(state, State::Fixed(crate::FixedWindow::default()));
    *state = old.spend(&check.limit, check.cost, now).1;
}

fn report_unspent(checks: &[Check], states: &[State], outcomes: &mut [Outcome], now: Millis) {
    for (check, outcome) in checks.iter().zip(outcomes) {
        let unspent = states[check.slot].probe(&check.limit, Cost::PEEK, now);
        *outcome = Outcome { admission: outcome.admission, ..unspent };
    }
}
