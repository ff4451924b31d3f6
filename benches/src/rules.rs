//! Which rules a request meets: one walk through a tenant's compiled rules, of which it meets five.

mod mix;

use std::hint::black_box;

use tollkeeper_core::RuleSet;

use crate::bystanders::Bystanders;
use crate::clock::Stopwatch;
use crate::failure::Failure;
use crate::report::{self, Table, Target, whole};
use crate::rounds::{Spread, interleaved};

pub(crate) use mix::{MET, Mix, Request, requests};

const ROUNDS: usize = 7;
/// Per mix and round: a tenth of a second and more.
const WALKS: usize = 100_000;

const SIZES: [(usize, Target); 3] =
    [(10, Target::None), (1_000, Target::AtMost(2_000.0)), (10_000, Target::AtMost(5_000.0))];

struct Side {
    mix: Mix,
    size: usize,
    target: Target,
    set: RuleSet,
}

pub(crate) fn run() -> Result<(), Failure> {
    let mut sides = Vec::new();
    for mix in Mix::ALL {
        for (size, target) in SIZES {
            sides.push(Side { mix, size, target, set: mix.compiled(size)? });
        }
    }
    let table = Table::new(
        "Rules that a request meets, five each",
        "rules",
        &["rules", "how many", "ns/request", "target, ns"],
    );
    let bystanders = Bystanders::watch()?;
    let requests = requests();
    let figures = interleaved(ROUNDS, &sides, |side| walk_all(&side.set, &requests))?;
    for (side, figures) in sides.iter().zip(figures) {
        let spread = Spread::of(figures);
        table.row(&[
            side.mix.about().into(),
            side.size.to_string(),
            whole(spread),
            side.target.verdict(spread.median),
        ]);
    }
    report::note(
        "Reading the path is part of each walk; the requests differ in path, address and user.",
    );
    report::note_bystanders(&bystanders)
}

/// Nanoseconds per request.
fn walk_all(set: &RuleSet, requests: &[Request]) -> Result<f64, Failure> {
    let mut matched = Vec::new();
    let mut met = 0;
    let watch = Stopwatch::start();
    for request in requests.iter().cycle().take(WALKS) {
        request.walk(set, &mut matched);
        met += black_box(&matched).len();
    }
    let took = watch.elapsed();
    if met == WALKS * MET {
        Ok(took.as_secs_f64() * 1e9 / WALKS as f64)
    } else {
        Err(Failure::Invalid(format!("{met} rules met in {WALKS} walks instead of {MET} each")))
    }
}
