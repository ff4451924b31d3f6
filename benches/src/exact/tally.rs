//! The table of cases, and what they come to together.

use super::case::{ALGORITHMS, Case, Manner};
use super::judge::Figures;
use super::oracle::MISSED_MAX;
use crate::report::{Table, Target, note};

const COLUMNS: [&str; 16] = [
    "algorithm",
    "nodes",
    "limit",
    "window",
    "load",
    "manner",
    "cost",
    "offered/s",
    "over",
    "under",
    "worst window",
    "calls per decision",
    "waited",
    "degraded",
    "p50 ms",
    "p99 ms",
];

pub(super) struct Tally {
    table: Table,
    all: Vec<(Case, Figures)>,
}

// === impl Tally ===

impl Tally {
    pub(super) fn new(title: &str, command: &str) -> Self {
        Self { table: Table::new(title, command, &COLUMNS), all: Vec::new() }
    }

    pub(super) fn add(&mut self, case: Case, figures: Figures) {
        self.table.row(&figures.row(&case));
        self.all.push((case, figures));
    }

    pub(super) fn sum_up(&self) {
        let over: u64 = self.all.iter().map(|(_, figures)| figures.over).sum();
        let asked: u64 = self.all.iter().map(|(_, figures)| figures.asked).sum();
        let degraded: u64 = self.all.iter().map(|(_, figures)| figures.degraded).sum();
        let alone: u64 = self.all.iter().map(|(_, figures)| figures.over_degraded).sum();
        note(&format!(
            "{} cases, {asked} answers, {degraded} of them degraded. Admitted above a limit: {over} ({}); \
             with what was admitted degraded: {alone}.",
            self.all.len(),
            Target::AtMost(0.0).verdict(over as f64)
        ));
        self.tell_under("all", |_| true);
        for algorithm in ALGORITHMS {
            self.tell_under(algorithm, |case| case.algorithm == algorithm);
        }
        for (load, limit, most) in
            [(100, 1_000, 0.2), (100, 10_000, 0.02), (200, 1_000, 0.08), (200, 10_000, 0.01)]
        {
            self.tell_calls(load, limit, most);
        }
    }

    fn tell_under(&self, what: &str, of: impl Fn(&Case) -> bool) {
        let under: Vec<_> = self
            .all
            .iter()
            .filter(|(case, _)| of(case))
            .map(|(_, figures)| figures.under)
            .collect();
        if under.is_empty() {
            return;
        }
        let mean = under.iter().map(|under| under.mean).sum::<f64>() / under.len() as f64;
        let case = under.iter().map(|under| under.mean).fold(0.0, f64::max);
        let window = under.iter().map(|under| under.worst_of_many).fold(0.0, f64::max);
        let shown = |share: f64, most: f64| {
            let percent = share * 100.0;
            format!("{percent:.2} % ({})", Target::AtMost(most).verdict(percent))
        };
        note(&format!(
            "Refused although it was left, {what}: mean {}, worst case {}, worst window that misses more than {MISSED_MAX} requests {}.",
            shown(mean, 1.0),
            shown(case, 2.0),
            shown(window, 5.0)
        ));
    }

    /// For limits that are met at an even pace by five nodes; a log has no such target.
    fn tell_calls(&self, load: u64, limit: u64, most: f64) {
        let made = self.all.iter().filter(|(case, _)| {
            (case.load, case.limit, case.nodes) == (load, limit, 5)
                && case.manner == Manner::Steady
                && case.algorithm != "sliding_log"
        });
        let calls: Vec<_> = made.filter_map(|(_, figures)| figures.calls).collect();
        if calls.is_empty() {
            return;
        }
        let made = calls.iter().map(|calls| calls.made).fold(0.0, f64::max);
        let waited = calls.iter().map(|calls| calls.waited * 100.0).fold(0.0, f64::max);
        note(&format!(
            "Limit {limit} at a load of {:.1}: at most {made:.4} calls per decision ({}), {waited:.1} % waited ({}).",
            load as f64 / 100.0,
            Target::AtMost(most).verdict(made),
            Target::AtMost(4.0).verdict(waited)
        ));
    }
}
