//! What came of a case: counted by the windows that the answers name, or by time where there are none. Answers marked
//! `degraded` were given without Redis; they are told apart and are in no count of what passed a limit.

use std::collections::BTreeMap;

use super::case::{Case, Manner};
use super::oracle::{Under, under};
use crate::failure::Failure;

/// One answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) sent_us: u64,
    pub(super) heard_us: u64,
    pub(super) cost: u64,
    pub(super) admitted: bool,
    pub(super) degraded: bool,
    pub(super) reset: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) asked: u64,
    pub(super) over: u64,
    /// With those that were admitted without Redis.
    pub(super) over_degraded: u64,
    pub(super) under: Under,
    /// None where several cases ran beside each other.
    pub(super) calls: Option<Calls>,
    pub(super) degraded: u64,
    p50_ms: f64,
    p99_ms: f64,
    rate: f64,
}

/// Per decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calls {
    pub(super) made: f64,
    pub(super) waited: f64,
}

// === impl Figures ===

impl Figures {
    /// `begun_ms` is the wall clock's time at which the microseconds of the answers begin.
    pub(super) fn judge(
        case: &Case,
        seen: &[Seen],
        begun_ms: f64,
        calls: Option<Calls>,
    ) -> Result<Self, Failure> {
        let admitted: Vec<Seen> = seen.iter().filter(|one| one.admitted).copied().collect();
        let exact: Vec<Seen> = admitted.iter().filter(|one| !one.degraded).copied().collect();
        let mut took: Vec<u64> = seen.iter().map(|one| one.heard_us - one.sent_us).collect();
        took.sort_unstable();
        let at = |share: f64| {
            took.get((took.len() as f64 * share) as usize).map_or(0.0, |us| *us as f64 / 1e3)
        };
        let last = last_us(seen).max(1);
        Ok(Self {
            asked: seen.len() as u64,
            over: over(case, &exact, begun_ms),
            over_degraded: over(case, &admitted, begun_ms),
            under: under(case, seen, begun_ms)?,
            calls,
            degraded: seen.iter().filter(|one| one.degraded).count() as u64,
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            rate: seen.len() as f64 * 1e6 / last as f64,
        })
    }

    pub(super) fn row(&self, case: &Case) -> Vec<String> {
        let percent = |share: f64, digits: usize| format!("{:.digits$} %", share * 100.0);
        vec![
            case.algorithm.to_owned(),
            case.nodes.to_string(),
            case.limit.to_string(),
            format!("{} s", case.window_ms / 1_000),
            format!("{:.1}", case.load as f64 / 100.0),
            if case.manner == Manner::Burst { "burst" } else { "steady" }.into(),
            case.cost.word().into(),
            format!("{:.0}", self.rate),
            self.over.to_string(),
            percent(self.under.mean, 2),
            percent(self.under.worst, 1),
            self.calls.map_or_else(|| "–".into(), |calls| format!("{:.4}", calls.made)),
            self.calls.map_or_else(|| "–".into(), |calls| percent(calls.waited, 1)),
            format!("{} of {}", self.degraded, self.asked),
            format!("{:.2}", self.p50_ms),
            format!("{:.2}", self.p99_ms),
        ]
    }
}

/// By the algorithm's own definition.
fn over(case: &Case, admitted: &[Seen], begun_ms: f64) -> u64 {
    match case.algorithm {
        "fixed_window" => over_windows(case, admitted),
        "sliding_window" => over_windows(case, admitted).max(over_fading(case, admitted, begun_ms)),
        "token_bucket" => over_inflow(case, admitted),
        _ => over_any_width(case, admitted),
    }
}

fn last_us(seen: &[Seen]) -> u64 {
    seen.iter().map(|one| one.heard_us).max().unwrap_or(0)
}

fn units(seen: &[Seen]) -> u64 {
    seen.iter().map(|one| one.cost).sum()
}

fn by_window(seen: &[Seen]) -> BTreeMap<u64, u64> {
    let mut windows = BTreeMap::new();
    for one in seen {
        *windows.entry(one.reset).or_default() += one.cost;
    }
    windows
}

fn over_windows(case: &Case, admitted: &[Seen]) -> u64 {
    by_window(admitted).values().map(|got| got.saturating_sub(case.limit)).sum()
}

/// A sliding window by its own definition: at every admission, what the window had before it and the share of the
/// window before that still counts. Of each the least that it can have been: what was surely answered before this was
/// sent, and the share at the moment at which its answer was heard.
fn over_fading(case: &Case, admitted: &[Seen], begun_ms: f64) -> u64 {
    let windows = by_window(admitted);
    let mut most: u64 = 0;
    for reset in windows.keys() {
        let within: Vec<&Seen> = admitted.iter().filter(|one| one.reset == *reset).collect();
        let before = windows.get(&(reset - case.window_ms)).copied().unwrap_or(0);
        let mut sent = within.clone();
        sent.sort_by_key(|one| one.sent_us);
        let mut heard = within;
        heard.sort_by_key(|one| one.heard_us);
        let (mut so_far, mut next) = (0, 0);
        for one in sent {
            while let Some(earlier) = heard.get(next).filter(|other| other.heard_us <= one.sent_us)
            {
                so_far += earlier.cost;
                next += 1;
            }
            let left_ms = *reset as f64 - begun_ms - one.heard_us as f64 / 1e3;
            let fading = (left_ms / case.window_ms as f64).clamp(0.0, 1.0);
            let stands = so_far + one.cost + (before as f64 * fading).floor() as u64;
            most = most.max(stands.saturating_sub(case.limit));
        }
    }
    most
}

/// A bucket: a full one at the first request, and what flowed in since.
fn over_inflow(case: &Case, admitted: &[Seen]) -> u64 {
    let first_us = admitted.iter().map(|one| one.sent_us).min().unwrap_or(0);
    let flowed = flowed(case, last_us(admitted).saturating_sub(first_us)).ceil() as u64;
    units(admitted).saturating_sub(case.limit + flowed)
}

fn flowed(case: &Case, us: u64) -> f64 {
    case.limit as f64 * us as f64 / (case.window_ms as f64 * 1e3)
}

/// A log: the most that any interval of the width holds, counting only what surely lies within it.
fn over_any_width(case: &Case, admitted: &[Seen]) -> u64 {
    let mut admitted = admitted.to_vec();
    admitted.sort_by_key(|one| one.sent_us);
    let width = case.window_ms * 1_000;
    let mut most = 0;
    for (from, first) in admitted.iter().enumerate() {
        let within = admitted[from..].iter().take_while(|one| one.sent_us < first.sent_us + width);
        let sure = within.filter(|one| one.heard_us <= first.sent_us + width);
        most = most.max(sure.map(|one| one.cost).sum::<u64>());
    }
    most.saturating_sub(case.limit)
}
