//! The judge of a run: every admitted cost must be one that the algorithm itself, fed with all of
//! them in the order of true time, would have admitted too. Where a promise allows more, it says how much.

use std::collections::HashMap;

use tollkeeper_core::{Algorithm, Cost, Limit, Micros, Millis, Quota, State, Width};
use tollkeeper_decide::Consistency;

use super::world::START_MS;
use super::{Plan, Promise};

/// `fast` lets a tenth of the limit be under way untold.
const FAST_ALPHA: u64 = 10;

/// In the measured window so many requests may be missed of a cell, where its limit is so small that 5 % are less.
const FEW: u64 = 4;

#[derive(Debug, Default)]
pub struct Findings {
    pub asked: u64,
    pub admitted: u64,
    /// Units, and what one node with all the traffic would have admitted.
    pub units: u64,
    pub ideal: u64,
    /// The same in the window after recovery.
    pub late_units: u64,
    pub late_ideal: u64,
    pub calls: u64,
    /// When the origin heard them, by its clock.
    pub heard_at: Vec<u64>,
    pub waited: u64,
    pub degraded: u64,
    pub kills: u64,
    pub steps: u64,
    /// Records that vanished, and how often a node missed one.
    pub vanished: u64,
    pub missed: u64,
    /// Admitted although the limit was used up: the first one, told.
    pub over: Option<String>,
    pub over_units: u64,
    /// The most in one window of one cell.
    pub over_window: u64,
    /// Admitted by policy, without the origin.
    pub alone_units: u64,
    /// Of those, beyond a node's share.
    pub share_over: Option<String>,
    /// Requests that never got an answer, and cells that were never forgotten.
    pub hanging: usize,
    pub cells_left: usize,
}

#[derive(Debug, Default)]
pub(super) struct Judge {
    asked: Vec<Spent>,
    admitted: Vec<Spent>,
    resets: Vec<(u64, u64)>,
    /// When the measured window begins.
    pub(super) measured_from: u64,
}

/// A cost, and the moment it was decided on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spent {
    /// In the order of true time.
    pub(super) us: u64,
    /// On the origin's clock.
    pub(super) at: Micros,
    pub(super) cell: u64,
    pub(super) cost: u64,
    /// Under which limit it was asked for.
    pub(super) limit: Limit,
    /// Since when its units were set aside for it, both ways: a bundle waits for all of its cells.
    pub(super) since: (u64, Micros),
    /// By whom, where it was decided without the origin, and when as that one knew it.
    pub(super) alone: Option<Alone>,
}

/// Each node has one share for each life and each time without the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Alone {
    pub(super) node: usize,
    pub(super) life: u64,
    pub(super) outage: u64,
    pub(super) at: u64,
}

// === impl Findings ===

impl Findings {
    /// What of its plan's promise a run did not keep.
    pub fn broken(&self, plan: &Plan) -> Option<String> {
        let over = self.over.as_ref().map(|first| {
            let (all, worst) = (self.over_units, self.over_window);
            format!("{all} units over, {worst} in one window; first: {first}")
        });
        self.beyond(plan)
            .then(|| over.unwrap_or_else(|| "?".into()))
            .or_else(|| self.share_over.clone())
            .or_else(|| self.alarmed(plan))
            .or_else(|| self.dull(plan))
    }

    fn beyond(&self, plan: &Plan) -> bool {
        let limit = plan.largest();
        match plan.promise() {
            Promise::Nothing => self.over_units > 0,
            Promise::Policy => self.over_units > self.alone_units,
            Promise::Leases => self.over_units > self.vanished * limit.ceiling() / 2,
            Promise::Steps => {
                let each = limit.ceiling() * come_again(plan, &limit);
                self.over_units > self.steps * each * plan.cells
            }
            Promise::Fast => {
                let most = plan.traffic.costs.iter().copied().max().unwrap_or(1);
                let nodes = plan.nodes as u64;
                let cap = limit.ceiling() / (FAST_ALPHA * nodes) + most;
                self.over_window > limit.ceiling() / FAST_ALPHA + nodes * most + self.kills * cap
            }
        }
    }

    /// Nobody may miss a record where none was lost: every alarm costs each node a call.
    fn alarmed(&self, plan: &Plan) -> Option<String> {
        let faults = &plan.faults;
        let lossy = faults.wipes_ppm + faults.failovers_ppm + faults.vanishes_ppm + faults.step_ms;
        // A reset that is heard of late looks like a loss for a moment.
        let whole = lossy + faults.resets_ppm == 0;
        (whole && self.missed > 0).then(|| format!("{} false alarms", self.missed))
    }

    /// Safe, and yet not alive: when all is well again the limit must be used, everybody answered, nothing left behind.
    fn dull(&self, plan: &Plan) -> Option<String> {
        if plan.recovery_ms == 0 {
            return None;
        }
        if self.hanging > 0 || self.cells_left > 0 {
            return Some(format!("{} asks hang, {} cells stay", self.hanging, self.cells_left));
        }
        let missed = self.late_ideal.saturating_sub(self.late_units);
        // A log repeats its past: what came in one clump is forgotten in one clump, and every window a little later. It has
        // a quarter more time for that, and still a part of one may fall just outside of what is measured.
        // Who never waits refuses while what it told is on its way: at a load of just the limit that is one in a few, as long
        // as next to nothing is left.
        let part = match plan.largest().algorithm {
            Algorithm::SlidingLog(_) => 3,
            _ if plan.consistency == Consistency::Fast => 5,
            _ => 20,
        };
        (missed > (FEW * plan.cells).max(self.late_ideal / part)).then(|| {
            format!("{} of {} units in the window after recovery", self.late_units, self.late_ideal)
        })
    }
}

// === impl Judge ===

impl Judge {
    /// A request came in.
    pub(super) fn asked(&mut self, spent: Spent) {
        self.asked.push(spent);
    }

    /// A request was admitted, by a decision of that moment.
    pub(super) fn admitted(&mut self, spent: Spent) {
        self.admitted.push(spent);
    }

    /// What was spent of a cell is forgiven.
    pub(super) fn reset(&mut self, cell: u64, us: u64) {
        self.resets.push((us, cell));
    }

    /// Holds all of it against the algorithm.
    pub(super) fn judge(mut self, plan: &Plan, found: &mut Findings) {
        let limit = &plan.largest();
        let late = self.measured_from;
        let late_end = late.saturating_add(width(limit) * 1_000);
        found.asked = self.asked.len() as u64;
        found.admitted = self.admitted.len() as u64;
        for spent in &self.admitted {
            found.units += spent.cost;
            found.late_units += if spent.us >= late { spent.cost } else { 0 };
            found.alone_units += if spent.alone.is_some() { spent.cost } else { 0 };
        }
        replay(&mut self.asked, &self.resets, limit, false, |spent, over, _| {
            // What does not fit whole is not admitted.
            let units = if over == 0 { spent.cost } else { 0 };
            found.ideal += units;
            found.late_ideal += if (late..late_end).contains(&spent.us) { units } else { 0 };
        });
        if plan.faults.step_ms > 0 && limit.window_at(Millis(0)).1 == Millis(u64::MAX) {
            // Where nothing begins and ends by the clock, what counts is the time that has truly passed.
            for spent in &mut self.admitted {
                spent.at = Micros(START_MS * 1_000 + spent.us);
                spent.since.1 = Micros(START_MS * 1_000 + spent.since.0);
            }
        }
        hold_against(&mut self.admitted, &self.resets, limit, false, found);
        // On one node each cost must also fit the limit it was asked under. Of several, one may hold units that were lent
        // before others went above the smaller limit; and a bucket's state is about one rate. For the same reason what is
        // set aside for a bundle fits at that moment: until its last cell has answered, others may go above.
        let bucket = matches!(limit.algorithm, Algorithm::TokenBucket { .. });
        if plan.nodes == 1 && !bucket && plan.limits.len() > 1 {
            let set_aside =
                |spent: &Spent| Spent { us: spent.since.0, at: spent.since.1, ..*spent };
            let mut all: Vec<_> = self.admitted.iter().map(set_aside).collect();
            hold_against(&mut all, &self.resets, limit, true, found);
        }
        found.share_over = self.judge_shares(plan, limit);
    }

    /// What a node admits alone by `share` must fit its part of the limit, for each time that it was alone.
    fn judge_shares(&self, plan: &Plan, limit: &Limit) -> Option<String> {
        if plan.on_outage != tollkeeper_decide::OnOutage::Share {
            return None;
        }
        let part = part_of(limit, plan.nodes as u64);
        let mut states: HashMap<(u64, Alone), State> = HashMap::new();
        for spent in &self.admitted {
            let Some(alone) = spent.alone else { continue };
            let state = states
                .entry((spent.cell, Alone { at: 0, ..alone }))
                .or_insert_with(|| State::fresh(&part));
            let before = state.clone();
            let (over, next) = force(&before, &part, spent.cost, Millis(alone.at));
            if over > 0 {
                return Some(format!("{spent:?} beyond a share, {part:?} in {before:?}"));
            }
            *state = next;
        }
        None
    }
}

/// Finds what is over, by all of one replay; of several replays the worst counts.
fn hold_against(
    all: &mut [Spent],
    resets: &[(u64, u64)],
    limit: &Limit,
    each_own: bool,
    found: &mut Findings,
) {
    let width = width(limit);
    let mut over_units = 0;
    let mut windows: HashMap<(u64, u64), u64> = HashMap::new();
    replay(all, resets, limit, each_own, |spent, over, before| {
        if over > 0 {
            over_units += over;
            let window = windows.entry((spent.cell, spent.at.millis().0 / width)).or_default();
            *window += over;
            found.over_window = found.over_window.max(*window);
            found.over.get_or_insert_with(|| format!("{spent:?} under {limit:?} in {before:?}"));
        }
    });
    found.over_units = found.over_units.max(over_units);
}

fn replay(
    all: &mut [Spent],
    resets: &[(u64, u64)],
    limit: &Limit,
    each_own: bool,
    mut each: impl FnMut(&Spent, u64, &State),
) {
    all.sort_by_key(|spent| spent.us);
    let mut resets = resets.iter().peekable();
    let mut states: HashMap<u64, State> = HashMap::new();
    for spent in all {
        while let Some((_, cell)) = resets.next_if(|(us, _)| *us <= spent.us) {
            states.remove(cell);
        }
        let state = states.entry(spent.cell).or_insert_with(|| State::fresh(limit));
        let own = if each_own { &spent.limit } else { limit };
        let (own, at) = magnified(own, spent.at);
        let (over, next) = force(state, &own, spent.cost, at);
        each(spent, over, state);
        *state = next;
    }
}

/// A log is held to its width by the microsecond: its arithmetic does not care for units. All others count milliseconds.
fn magnified(limit: &Limit, at: Micros) -> (Limit, Millis) {
    let Algorithm::SlidingLog(width) = limit.algorithm else { return (*limit, at.millis()) };
    let width = Width::from_millis(width.millis() * 1_000).unwrap_or(width);
    (Limit { algorithm: Algorithm::SlidingLog(width), ..*limit }, Millis(at.0))
}

/// Spends what fits; says how much does not.
fn force(state: &State, limit: &Limit, cost: u64, at: Millis) -> (u64, State) {
    let Some(cost) = Cost::new(cost) else { return (0, state.clone()) };
    let (outcome, next) = state.clone().spend(limit, cost, at);
    if outcome.admitted() {
        return (0, next);
    }
    let left = state.probe(limit, Cost::PEEK, at).remaining.min(cost.get());
    let next = match Cost::new(left).filter(|left| left.get() > 0) {
        Some(left) => state.clone().spend(limit, left, at).1,
        None => next,
    };
    (cost.get() - left, next)
}

/// A step of the origin's clock, with what it loses beside that, costs one limit; and of windows as many as come again but the
/// last. That is the mean of the steps: one of them may go back twice as far.
fn come_again(plan: &Plan, limit: &Limit) -> u64 {
    match limit.algorithm {
        Algorithm::FixedWindow(_) | Algorithm::SlidingWindow(_) => {
            plan.faults.step_ms.div_ceil(width(limit)).max(1)
        }
        Algorithm::TokenBucket { .. } | Algorithm::SlidingLog(_) => 1,
    }
}

fn width(limit: &Limit) -> u64 {
    match limit.algorithm {
        Algorithm::FixedWindow(_) => {
            let (start, end) = limit.window_at(Millis(1_700_000_000_000));
            end.since(start)
        }
        Algorithm::SlidingWindow(width)
        | Algorithm::SlidingLog(width)
        | Algorithm::TokenBucket { width, .. } => width.millis(),
    }
}

/// One of `nodes` parts of a limit, and one unit at least.
fn part_of(limit: &Limit, nodes: u64) -> Limit {
    let part = |whole: u64| Quota::new((whole / nodes).max(1)).unwrap_or(limit.quota);
    match limit.algorithm {
        Algorithm::TokenBucket { width, capacity } => {
            Limit::token_bucket(part(limit.quota.get()), width, Some(part(capacity.get())))
        }
        _ => Limit { quota: part(limit.quota.get()), ..*limit },
    }
}
