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
    /// The same in units.
    pub(super) worst_units: u64,
}

pub(super) fn under(case: &Case, seen: &[Seen], begun_ms: f64) -> Result<Under, Failure> {
    let limit = limit(case)?;
    let mut order = seen.to_vec();
    order.sort_by_key(|one| if one.admitted { one.sent_us } else { one.heard_us });
    let mut state = State::fresh(&limit);
    let (mut could, mut got): (BTreeMap<u64, u64>, BTreeMap<u64, u64>) = Default::default();
    let mut reached = Millis(0);
    for one in order {
        let middle = Millis((begun_ms + (one.sent_us + one.heard_us) as f64 / 2e3) as u64);
        reached = reached.max(middle);
        let now = reached;
        let cost = Cost::new(one.cost)
            .ok_or_else(|| Failure::Invalid(format!("a cost of {}", one.cost)))?;
        let (outcome, next) = state.spend(&limit, cost, now);
        state = next;
        let window = now.0 / case.window_ms;
        *could.entry(window).or_default() += if outcome.admitted() { one.cost } else { 0 };
        *got.entry(window).or_default() += if one.admitted { one.cost } else { 0 };
    }
    // The first and the last are cut by the run itself, and what is decided at an edge is told of either side.
    let inner: Vec<(u64, u64)> =
        could.iter().map(|(window, could)| (*could, got[window])).collect();
    let inner = inner.get(1..inner.len().saturating_sub(1)).unwrap_or_default();
    let missed = |(could, got): &(u64, u64)| could.saturating_sub(*got);
    let share = |(could, got): &(u64, u64)| missed(&(*could, *got)) as f64 / (*could).max(1) as f64;
    let all = (could.values().sum(), got.values().sum());
    Ok(Under {
        mean: share(&all),
        worst: inner.iter().map(share).fold(0.0, f64::max),
        worst_units: inner.iter().map(missed).max().unwrap_or(0),
    })
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
