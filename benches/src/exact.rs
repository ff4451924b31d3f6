//! Exactness, measured on real processes: nodes, one Redis and clients that offer more or less than a limit.
//! What is admitted too much, what is refused although it was left, and what that costs in calls to Redis.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "microseconds and counts of a run of minutes fit everywhere"
)]

mod case;
mod clients;
mod closed_loop;
mod cold;
mod counter;
mod fleet;
mod gone;
mod grid;
mod hot;
mod judge;
mod latency;
mod oracle;
mod outage;
mod parts;
mod redis_side;
mod sample;
mod tally;

use std::path::PathBuf;

use crate::failure::Failure;

pub(crate) use parts::{Part, parts, run_parts};

/// Sizes of fleets in the grid.
const FLEETS: [usize; 4] = [1, 3, 5, 9];

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// A few minutes: five nodes, the cases that the figures name.
    Sample,
    /// Nodes × limits × loads for every algorithm, in half an hour; or for so many nodes alone.
    Grid(Option<usize>),
    /// The cases of it that are hardest to use up, in some minutes; or for so many nodes alone.
    Costs(Option<usize>),
    /// Nodes that are killed and replies that are lost, in some minutes.
    Trouble,
}

/// What is named on the command line, for fleets of so many nodes where one says so, with a binary that one may name last.
pub(crate) fn run_on(what: &str, rest: &[&str]) -> Result<(), Failure> {
    let nodes = rest.first().and_then(|first| first.parse().ok());
    let tollkeeper = match rest.get(usize::from(nodes.is_some())..).unwrap_or_default() {
        [] => None,
        [tollkeeper] => Some(tollkeeper.into()),
        _ => return Err(Failure::Usage(crate::USAGE)),
    };
    let extent = match what {
        "grid" => Extent::Grid(nodes),
        "costs" => Extent::Costs(nodes),
        _ if nodes.is_some() => return Err(Failure::Usage(crate::USAGE)),
        _ => Extent::Trouble,
    };
    run(extent, tollkeeper)
}

/// Builds the server unless it is given.
pub(crate) fn run(extent: Extent, tollkeeper: Option<PathBuf>) -> Result<(), Failure> {
    let program = match tollkeeper {
        Some(program) => program,
        None => crate::http::server::build()?,
    };
    match extent {
        Extent::Sample => sample::run(&program),
        Extent::Grid(None) => grid::run(&program, &FLEETS),
        Extent::Grid(Some(nodes)) => grid::run(&program, &[nodes]),
        Extent::Costs(None) => grid::run_costly(&program, &FLEETS),
        Extent::Costs(Some(nodes)) => grid::run_costly(&program, &[nodes]),
        Extent::Trouble => grid::run_troubled(&program),
    }
}
