//! What a shared Redis costs, and what its absence does: four parts, each with a table of its own, some five minutes together.

use std::path::PathBuf;

use super::{cold, gone, hot, latency};
use crate::USAGE;
use crate::bystanders::Bystanders;
use crate::failure::Failure;
use crate::http::server;
use crate::report;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Cold,
    Latency,
    Gone,
    Hot,
}

// === impl Part ===

impl Part {
    pub(crate) const ALL: [Self; 4] = [Self::Cold, Self::Latency, Self::Gone, Self::Hot];
}

pub(crate) fn parts(name: &str) -> Result<&'static [Part], Failure> {
    match name {
        "cold" => Ok(&[Part::Cold]),
        "latency" => Ok(&[Part::Latency]),
        "gone" => Ok(&[Part::Gone]),
        "hot" => Ok(&[Part::Hot]),
        "parts" => Ok(&Part::ALL),
        _ => Err(Failure::Usage(USAGE)),
    }
}

/// Builds the server unless it is given.
pub(crate) fn run_parts(parts: &[Part], tollkeeper: Option<PathBuf>) -> Result<(), Failure> {
    let tollkeeper = tollkeeper.map_or_else(server::build, Ok)?;
    for part in parts {
        let bystanders = Bystanders::watch()?;
        match part {
            Part::Cold => cold::run(&tollkeeper)?,
            Part::Latency => latency::run(&tollkeeper)?,
            Part::Gone => gone::run(&tollkeeper)?,
            Part::Hot => hot::run(&tollkeeper)?,
        }
        report::note_bystanders(&bystanders)?;
    }
    Ok(())
}
