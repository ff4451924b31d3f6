//! Nodes × limits × loads, several identifiers beside each other, so that it is over within forty minutes.

use std::path::Path;

use super::case::{ALGORITHMS, Case, Cost, Manner};
use super::fleet::{Fleet, Trouble};
use super::tally::Tally;
use crate::bystanders::Bystanders;
use crate::failure::Failure;
use crate::report::note_bystanders;

/// Beyond it two cores that nodes, Redis and clients share do not keep the pace.
const RATE_MAX: u64 = 8_000;
/// As much of it takes a request of a log, which asks Redis nearly every time once it is full.
const OF_A_LOG: u64 = 3;

const LOADS: [u64; 5] = [90, 100, 150, 200, 2_000];

pub(super) fn run(program: &Path, fleets: &[usize]) -> Result<(), Failure> {
    let bystanders = Bystanders::watch()?;
    let mut tally = Tally::new("Exactness of a fleet on real processes", "exact grid");
    for &nodes in fleets {
        let fleet = Fleet::start(program, nodes)?;
        for batch in batches(undisturbed(nodes)) {
            add(&mut tally, &fleet, batch, Trouble::None)?;
        }
    }
    tally.sum_up();
    note_bystanders(&bystanders)
}

/// Of the same those where requests cost more than one, and bursts of a bucket: what is hardest to use up, in some minutes.
pub(super) fn run_costly(program: &Path, fleets: &[usize]) -> Result<(), Failure> {
    let mut tally = Tally::new("Requests of several units, and bursts of a bucket", "exact costs");
    for &nodes in fleets {
        let fleet = Fleet::start(program, nodes)?;
        let hard = |case: &Case| {
            case.cost != Cost::One
                || (case.algorithm, case.manner) == ("token_bucket", Manner::Burst)
        };
        let cases = undisturbed(nodes).into_iter().filter(hard).collect();
        for batch in batches(cases) {
            add(&mut tally, &fleet, batch, Trouble::None)?;
        }
    }
    tally.sum_up();
    Ok(())
}

/// Kills and losses: what passes a limit then. What is refused although it was left has no target here.
pub(super) fn run_troubled(program: &Path) -> Result<(), Failure> {
    for (trouble, title) in [
        (Trouble::Kills, "A fleet of which a node is killed every two seconds"),
        (Trouble::LostReplies, "A fleet that loses five of a hundred replies of Redis"),
    ] {
        let mut tally = Tally::new(title, "exact trouble");
        for nodes in [3, 5] {
            let fleet = match trouble {
                Trouble::LostReplies => Fleet::start_behind_proxy(program, nodes)?,
                _ => Fleet::start(program, nodes)?,
            };
            for batch in batches(disturbed(nodes)) {
                add(&mut tally, &fleet, batch, trouble)?;
            }
        }
        tally.sum_up();
    }
    Ok(())
}

fn add(
    tally: &mut Tally,
    fleet: &Fleet,
    batch: Vec<Case>,
    trouble: Trouble,
) -> Result<(), Failure> {
    let figures = fleet.measure_all(&batch, trouble)?;
    for (case, figures) in batch.into_iter().zip(figures) {
        tally.add(case, figures);
    }
    Ok(())
}

/// As many beside each other as last equally long and keep the pace together.
fn batches(cases: Vec<Case>) -> Vec<Vec<Case>> {
    let mut batches: Vec<Vec<Case>> = Vec::new();
    for case in cases {
        let room = batches.iter_mut().find(|batch| {
            let rate: u64 = batch.iter().map(weight).sum();
            let like = batch.first().is_some_and(|first| {
                (first.lasts_ms, first.manner) == (case.lasts_ms, case.manner)
            });
            like && rate + weight(&case) <= RATE_MAX
        });
        match room {
            Some(batch) => batch.push(case),
            None => batches.push(vec![case]),
        }
    }
    for batch in &mut batches {
        let cases = batch.len() as u64;
        for (number, case) in (0..).zip(batch.iter_mut()) {
            // The end of a window is left alone.
            case.moment = 900 * number / cases;
        }
    }
    batches
}

/// What a case takes of the pace.
fn weight(case: &Case) -> u64 {
    case.rate() * if case.algorithm == "sliding_log" { OF_A_LOG } else { 1 }
}

fn undisturbed(nodes: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for algorithm in ALGORITHMS {
        for load in LOADS {
            for limit in [10, 100, 1_000] {
                let short = Case::steady(algorithm, nodes, (limit, 1_000), load, 7);
                cases.push(short);
                cases.push(Case { manner: Manner::Burst, ..short });
                cases.push(Case::steady(algorithm, nodes, (limit, 10_000), load, windows(nodes)));
            }
            let long = Case::steady(algorithm, nodes, (10_000, 10_000), load, windows(nodes));
            cases.push(long);
        }
        for limit in [100, 1_000] {
            for cost in [Cost::Three, Cost::Mixed] {
                let case = Case::steady(algorithm, nodes, (limit, 1_000), 150, 7);
                cases.push(Case { cost, ..case });
                cases.push(Case { cost, manner: Manner::Burst, ..case });
            }
        }
        if nodes == 5 {
            for load in [100, 200] {
                cases.push(Case::steady(algorithm, nodes, (1_000, 60_000), load, 3));
            }
        }
    }
    cases.retain(|case| case.rate() <= RATE_MAX);
    cases
}

/// Of ten seconds each: six whole ones for the five nodes that the figures name, fewer for the others.
fn windows(nodes: usize) -> u64 {
    if nodes == 5 { 7 } else { 3 }
}

fn disturbed(nodes: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for algorithm in ALGORITHMS {
        for (limit, window_ms, windows) in [(10, 1_000, 20), (100, 1_000, 20), (1_000, 10_000, 2)] {
            for load in [100, 200] {
                cases.push(Case::steady(algorithm, nodes, (limit, window_ms), load, windows));
            }
        }
        let costly = Case::steady(algorithm, nodes, (100, 1_000), 150, 20);
        cases.push(Case { cost: Cost::Mixed, ..costly });
    }
    cases
}
