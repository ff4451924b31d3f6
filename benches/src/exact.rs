//! Exactness, measured on real processes: nodes, one Redis and clients that offer more or less than a limit.
//! What is admitted too much, what is refused although it was left, and what that costs in calls to Redis.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "microseconds and counts of a run of minutes fit everywhere"
)]

mod case;
mod fleet;
mod judge;

use crate::failure::Failure;
use crate::report::{Table, note};
use case::{ALGORITHMS, Case};
use fleet::Fleet;
use judge::Figures;

/// How much of the grid is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// A few minutes: five nodes, the cases that the figures name.
    Sample,
    /// Nodes × limits × loads for every algorithm, within forty minutes.
    Grid,
}

pub(crate) fn run(extent: Extent) -> Result<(), Failure> {
    let program = crate::http::server::build()?;
    let cases = match extent {
        Extent::Sample => Case::sample(),
        Extent::Grid => Case::grid(),
    };
    let columns = [
        "algorithm",
        "nodes",
        "limit",
        "window",
        "load",
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
    let command = if extent == Extent::Grid { "exact grid" } else { "exact" };
    let table = Table::new("Exactness of a fleet on real processes", command, &columns);
    let mut all: Vec<(Case, Figures)> = Vec::new();
    let mut fleet: Option<Fleet> = None;
    for case in cases {
        // One fleet serves all cases of its size; identifiers keep them apart.
        if fleet.as_ref().is_none_or(|fleet| fleet.nodes() != case.nodes) {
            drop(fleet.take());
            fleet = Some(Fleet::start(&program, case.nodes)?);
        }
        let Some(running) = &fleet else { continue };
        let figures = running.measure(&case)?;
        table.row(&figures.row(&case));
        all.push((case, figures));
    }
    sum_up(&all);
    Ok(())
}

fn sum_up(all: &[(Case, Figures)]) {
    let over: u64 = all.iter().map(|(_, figures)| figures.over).sum();
    note(&format!("Admitted above a limit, over all {} cases: {over} (target: 0).", all.len()));
    let mean = |of: &dyn Fn(&Case) -> bool| {
        let under: Vec<f64> =
            all.iter().filter(|(case, _)| of(case)).map(|(_, figures)| figures.under).collect();
        under.iter().sum::<f64>() / under.len().max(1) as f64 * 100.0
    };
    note(&format!("Refused although it was left, mean: {:.2} % (target: ≤ 1 %).", mean(&|_| true)));
    for algorithm in ALGORITHMS {
        let under = mean(&|case: &Case| case.algorithm == algorithm);
        note(&format!("- {algorithm}: {under:.2} %"));
    }
}
