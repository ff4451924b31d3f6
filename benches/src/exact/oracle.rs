//! What a limit would have admitted of the same requests, had one node alone met them all: the product's own arithmetic,
//! step by step. What the fleet admitted less is refused although it was left.
//!
//! Requests that were under way at once may have been decided in any order, and where costs differ the order says how much fits:
//! of a limit of 1,000 eight requests of 125, or 174 of one and six of 125. Of all orders it takes the one in which those that
//! were admitted came as early as they can have, and those that were refused as late.

use std::collections::BTreeMap;

use tollkeeper_core::{Cost, Limit, Millis, State, Window};

use super::case::Case;
use super::judge::Seen;
use crate::failure::Failure;
use crate::limits::{quota, width};

#[derive(Clone, Copy, Debug)]
pub(super) struct Under {
    /// Share of what could have been admitted.
    pub(super) mean: f64,
    /// Of one window.
    pub(super) worst: f64,
    /// The same of those windows that miss more requests than a window may, whatever these cost.
    pub(super) worst_of_many: f64,
}

/// A window may miss so many requests, however small its limit.
pub(super) const MISSED_MAX: u64 = 4;

/// What could be admitted in a window, and what was.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    units: (u64, u64),
    requests: (u64, u64),
}

pub(super) fn under(case: &Case, seen: &[Seen], begun_ms: f64) -> Result<Under, Failure> {
    let limit = limit(case)?;
    let mut order = seen.to_vec();
    order.sort_by_key(|one| if one.admitted { one.sent_us } else { one.heard_us });
    let mut state = State::fresh(&limit);
    let mut windows: BTreeMap<u64, Span> = BTreeMap::new();
    let mut reached = Millis(0);
    for one in order {
        let middle = Millis((begun_ms + (one.sent_us + one.heard_us) as f64 / 2e3) as u64);
        reached = reached.max(middle);
        let now = reached;
        let cost = Cost::new(one.cost)
            .ok_or_else(|| Failure::Invalid(format!("a cost of {}", one.cost)))?;
        let (outcome, next) = state.spend(&limit, cost, now);
        state = next;
        let window = windows.entry(now.0 / case.window_ms).or_default();
        let (could, got) = (u64::from(outcome.admitted()), u64::from(one.admitted));
        window.units.0 += could * one.cost;
        window.units.1 += got * one.cost;
        window.requests.0 += could;
        window.requests.1 += got;
    }
    // The first and the last are cut by the run itself, and what is decided at an edge is told of either side.
    let all: Vec<Span> = windows.into_values().collect();
    let inner = all.get(1..all.len().saturating_sub(1)).unwrap_or_default();
    let worst = |missed_max: Option<u64>| {
        let counts =
            inner.iter().filter(|window| missed_max.is_none_or(|most| window.misses() > most));
        counts.map(|window| share(window.units)).fold(0.0, f64::max)
    };
    let whole = all.iter().fold((0, 0), |sum, one| (sum.0 + one.units.0, sum.1 + one.units.1));
    Ok(Under { mean: share(whole), worst: worst(None), worst_of_many: worst(Some(MISSED_MAX)) })
}

/// Of what could be admitted, what was not.
fn share((could, got): (u64, u64)) -> f64 {
    could.saturating_sub(got) as f64 / could.max(1) as f64
}

// === impl Span ===

impl Span {
    fn misses(&self) -> u64 {
        self.requests.0.saturating_sub(self.requests.1)
    }
}

fn limit(case: &Case) -> Result<Limit, Failure> {
    let (quota, width) = (quota(case.limit)?, width(case.window_ms)?);
    match case.algorithm {
        "fixed_window" => Ok(Limit::fixed_window(quota, Window::Aligned(width))),
        "sliding_window" => Ok(Limit::sliding_window(quota, width)),
        "token_bucket" => Ok(Limit::token_bucket(quota, width, None)),
        _ => Limit::sliding_log(quota, width)
            .ok_or_else(|| Failure::Invalid(format!("a log of {}", case.limit))),
    }
}
