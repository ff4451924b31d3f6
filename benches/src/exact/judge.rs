//! What came of a case: counted by the windows that the answers name, or by time where there are none.

use std::collections::BTreeMap;

use super::case::Case;

/// One answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) sent_us: u64,
    pub(super) heard_us: u64,
    pub(super) admitted: bool,
    pub(super) degraded: bool,
    pub(super) reset: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    asked: u64,
    pub(super) over: u64,
    /// Share of what could have been admitted.
    pub(super) under: f64,
    worst: f64,
    pub(super) calls_per_decision: f64,
    waited: f64,
    degraded: u64,
    p50_ms: f64,
    p99_ms: f64,
    rate: f64,
}

// === impl Figures ===

impl Figures {
    pub(super) fn judge(case: &Case, seen: &mut [Seen], calls: f64, waits: u64) -> Self {
        let asked = seen.len() as u64;
        let (over, under, worst) = match case.algorithm {
            "fixed_window" | "sliding_window" => by_windows(case, seen),
            _ => by_time(case, seen),
        };
        let mut took: Vec<u64> = seen.iter().map(|one| one.heard_us - one.sent_us).collect();
        took.sort_unstable();
        let at = |share: f64| {
            took.get((took.len() as f64 * share) as usize).map_or(0.0, |us| *us as f64 / 1e3)
        };
        let last = seen.iter().map(|one| one.heard_us).max().unwrap_or(1);
        Self {
            asked,
            over,
            under,
            worst,
            calls_per_decision: calls / asked.max(1) as f64,
            waited: waits as f64 / asked.max(1) as f64,
            degraded: seen.iter().filter(|one| one.degraded).count() as u64,
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            rate: asked as f64 * 1e6 / last as f64,
        }
    }

    pub(super) fn row(&self, case: &Case) -> Vec<String> {
        vec![
            case.algorithm.to_owned(),
            case.nodes.to_string(),
            case.limit.to_string(),
            format!("{} s", case.window_ms / 1_000),
            format!("{:.1}", case.load as f64 / 100.0),
            format!("{:.0}", self.rate),
            self.over.to_string(),
            format!("{:.2} %", self.under * 100.0),
            format!("{:.1} %", self.worst * 100.0),
            format!("{:.4}", self.calls_per_decision),
            format!("{:.1} %", self.waited * 100.0),
            format!("{} of {}", self.degraded, self.asked),
            format!("{:.2}", self.p50_ms),
            format!("{:.2}", self.p99_ms),
        ]
    }
}

/// Whole windows only: the first and the last are cut by the run itself.
fn by_windows(case: &Case, seen: &[Seen]) -> (u64, f64, f64) {
    let mut admitted: BTreeMap<u64, u64> = BTreeMap::new();
    let mut offered: BTreeMap<u64, u64> = BTreeMap::new();
    for one in seen {
        *offered.entry(one.reset).or_default() += 1;
        *admitted.entry(one.reset).or_default() += u64::from(one.admitted);
    }
    let over = admitted.values().map(|got| got.saturating_sub(case.limit)).sum();
    let inner: Vec<u64> = offered.keys().copied().collect();
    let inner = inner.get(1..inner.len().saturating_sub(1)).unwrap_or_default();
    // A sliding window that follows a full one has less; how much less depends on when requests came. Over several
    // windows it admits what the limit says.
    let could: Vec<u64> = inner.iter().map(|reset| offered[reset].min(case.limit)).collect();
    let got: Vec<u64> = inner.iter().map(|reset| admitted[reset]).collect();
    let missed = |could: u64, got: u64| could.saturating_sub(got) as f64 / could.max(1) as f64;
    let worst = could.iter().zip(&got).map(|(could, got)| missed(*could, *got)).fold(0.0, f64::max);
    (over, missed(could.iter().sum(), got.iter().sum()), worst)
}

/// A bucket and a log have no windows: a full one at the start, and what flowed in since.
fn by_time(case: &Case, seen: &[Seen]) -> (u64, f64, f64) {
    let got: u64 = seen.iter().filter(|one| one.admitted).count() as u64;
    let last = seen.iter().map(|one| one.heard_us).max().unwrap_or(0);
    let flowed = case.limit as f64 * last as f64 / (case.window_ms as f64 * 1e3);
    let most = match case.algorithm {
        "token_bucket" => case.limit + flowed.ceil() as u64,
        _ => over_any_width(case, seen).max(case.limit + flowed.ceil() as u64),
    };
    let over = match case.algorithm {
        "token_bucket" => got.saturating_sub(most),
        _ => over_any_width(case, seen).saturating_sub(case.limit),
    };
    let could = (most.min(seen.len() as u64)) as f64;
    // A log that starts empty admits its limit at once, and then as fast as the first ones are forgotten.
    let could = if case.algorithm == "token_bucket" {
        could
    } else {
        could.min(flowed.max(case.limit as f64))
    };
    let under = (could - got as f64).max(0.0) / could.max(1.0);
    (over, under, under)
}

/// The most that any interval of the width holds, counting only what surely lies within it.
fn over_any_width(case: &Case, seen: &[Seen]) -> u64 {
    let mut admitted: Vec<Seen> = seen.iter().filter(|one| one.admitted).copied().collect();
    admitted.sort_by_key(|one| one.sent_us);
    let width = case.window_ms * 1_000;
    let mut most = 0;
    for (from, first) in admitted.iter().enumerate() {
        let within = admitted[from..].iter().take_while(|one| one.sent_us < first.sent_us + width);
        most = most.max(within.filter(|one| one.heard_us <= first.sent_us + width).count() as u64);
    }
    most
}
