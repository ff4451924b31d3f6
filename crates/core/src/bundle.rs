//! A bundle: every limit of one request, spent together or not at all.
//! Pure. The caller holds the locks and puts the states back.

use crate::{Admission, Cost, Limit, Millis, Outcome, State};

#[cfg(test)]
mod tests;

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
    /// In the order of the checks. When the bundle passes, each reports what is left after all of it, and else what is left
    /// with nothing spent.
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
    let repeats = repeats(checks, states.len());
    if repeats && outcomes.iter().all(Outcome::admitted) {
        walk_through(checks, states, &mut outcomes, now);
    }
    let had_room = outcomes.iter().all(Outcome::admitted);
    let passed = had_room && condition();
    if passed {
        for check in checks {
            states[check.slot].step(&check.limit, check.cost, now);
        }
    }
    // Alone on its slot, what passed has said already what is left of it.
    if repeats || !passed {
        report_left(checks, states, &mut outcomes, now);
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

/// Is some slot asked more than once?
fn repeats(checks: &[Check], slots: usize) -> bool {
    let mut met = vec![false; slots];
    checks.iter().any(|check| std::mem::replace(&mut met[check.slot], true))
}

/// One slot fills at one rate, also where its checks differ in theirs: what was weighed together must pass step by step too,
/// as it will be spent.
fn walk_through(checks: &[Check], states: &[State], outcomes: &mut [Outcome], now: Millis) {
    let mut states = states.to_vec();
    for (check, outcome) in checks.iter().zip(outcomes) {
        *outcome = states[check.slot].step(&check.limit, check.cost, now);
    }
}

/// What each check would find if it asked for nothing now.
fn report_left(checks: &[Check], states: &[State], outcomes: &mut [Outcome], now: Millis) {
    for (check, outcome) in checks.iter().zip(outcomes) {
        let left = states[check.slot].probe(&check.limit, Cost::PEEK, now);
        *outcome = Outcome { admission: outcome.admission, ..left };
    }
}
