//! `keys.verifyKey` and `gate.check`: how fast, how soon a revocation counts, and what floods and restarts cost. Each part prints its own
//! table and can be run alone.

mod admin;
mod apply;
mod check;
mod flood;
mod latency;
pub(crate) mod metrics;
pub(crate) mod open_loop;
mod restart;
mod revocation;
mod throughput;

use std::path::PathBuf;

use crate::USAGE;
use crate::bystanders::Bystanders;
use crate::failure::Failure;
use crate::http::server;
use crate::report;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Throughput,
    Latency,
    Revocation,
    Flood,
    Restart,
    Check,
    Apply,
}

// === impl Part ===

impl Part {
    pub(crate) const ALL: [Self; 7] = [
        Self::Throughput,
        Self::Latency,
        Self::Revocation,
        Self::Flood,
        Self::Restart,
        Self::Check,
        Self::Apply,
    ];
}

pub(crate) fn part(name: &str) -> Result<Part, Failure> {
    match name {
        "throughput" => Ok(Part::Throughput),
        "latency" => Ok(Part::Latency),
        "revocation" => Ok(Part::Revocation),
        "flood" => Ok(Part::Flood),
        "restart" => Ok(Part::Restart),
        "check" => Ok(Part::Check),
        "apply" => Ok(Part::Apply),
        _ => Err(Failure::Usage(USAGE)),
    }
}

/// Builds the server unless it is given.
pub(crate) fn run(parts: &[Part], tollkeeper: Option<PathBuf>) -> Result<(), Failure> {
    let tollkeeper = match tollkeeper {
        Some(tollkeeper) => tollkeeper,
        None => server::build()?,
    };
    for part in parts {
        let bystanders = Bystanders::watch()?;
        match part {
            Part::Throughput => throughput::run(&tollkeeper)?,
            Part::Latency => latency::run(&tollkeeper)?,
            Part::Revocation => revocation::run(&tollkeeper)?,
            Part::Flood => flood::run(&tollkeeper)?,
            Part::Restart => restart::run(&tollkeeper)?,
            Part::Check => check::run(&tollkeeper)?,
            Part::Apply => apply::run(&tollkeeper)?,
        }
        report::note_bystanders(&bystanders)?;
    }
    Ok(())
}
