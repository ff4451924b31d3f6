//! `keys.verifyKey`: how fast, how soon a revocation counts, and what floods and restarts cost. Each part prints its own
//! table and can be run alone.

mod admin;
mod flood;
mod latency;
mod metrics;
mod open_loop;
mod restart;
mod revocation;
mod throughput;

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
}

// === impl Part ===

impl Part {
    pub(crate) const ALL: [Self; 5] =
        [Self::Throughput, Self::Latency, Self::Revocation, Self::Flood, Self::Restart];
}

pub(crate) fn part(name: &str) -> Result<Part, Failure> {
    match name {
        "throughput" => Ok(Part::Throughput),
        "latency" => Ok(Part::Latency),
        "revocation" => Ok(Part::Revocation),
        "flood" => Ok(Part::Flood),
        "restart" => Ok(Part::Restart),
        _ => Err(Failure::Usage(USAGE)),
    }
}

pub(crate) fn run(parts: &[Part]) -> Result<(), Failure> {
    let tollkeeper = server::build()?;
    for part in parts {
        let bystanders = Bystanders::watch()?;
        match part {
            Part::Throughput => throughput::run(&tollkeeper)?,
            Part::Latency => latency::run(&tollkeeper)?,
            Part::Revocation => revocation::run(&tollkeeper)?,
            Part::Flood => flood::run(&tollkeeper)?,
            Part::Restart => restart::run(&tollkeeper)?,
        }
        report::note_bystanders(&bystanders)?;
    }
    Ok(())
}
