//! Five nodes and one identifier at a time, so that what Redis is asked is known for each.

use std::path::Path;

use super::case::Case;
use super::fleet::Fleet;
use super::tally::Tally;
use crate::bystanders::Bystanders;
use crate::failure::Failure;
use crate::report::{Target, note, note_bystanders};

pub(super) fn run(program: &Path) -> Result<(), Failure> {
    let bystanders = Bystanders::watch()?;
    let mut tally = Tally::new("Exactness of a fleet on real processes", "exact");
    let fleet = Fleet::start(program, 5)?;
    for case in Case::sample() {
        tally.add(case, fleet.measure(&case)?);
    }
    tally.sum_up();
    refused(&fleet)?;
    drop(fleet);
    note_bystanders(&bystanders)
}

/// What an identifier costs that has nothing left.
fn refused(fleet: &Fleet) -> Result<(), Failure> {
    let case = Case::spent();
    let identifier = "spent";
    fleet.measure_identifier(&Case { lasts_ms: 1_000, ..case }, identifier)?;
    let figures = fleet.measure_identifier(&case, identifier)?;
    let made = figures.calls.map_or(0.0, |calls| calls.made);
    note(&format!(
        "An identifier that has nothing left, asked {} times: {made:.5} calls per decision ({}).",
        figures.asked,
        Target::AtMost(0.001).verdict(made)
    ));
    Ok(())
}
