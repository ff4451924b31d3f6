//! Side-by-side figures: Tollkeeper against what it is measured by, in one interleaved run.
//! Every figure is printed with its target; only the gate can fail.

#![allow(clippy::cast_precision_loss, reason = "figures are shown with at most four digits")]

mod archive;
mod bystanders;
mod clock;
mod decide;
mod exact;
mod failure;
mod gate;
mod http;
mod identifiers;
mod limits;
mod memory;
mod proc;
mod report;
mod rounds;
mod rules;
mod verify;

use std::process::ExitCode;

use failure::Failure;

/// The product's allocator, so that memory and speed are the product's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub(crate) const USAGE: &str = "\
tollkeeper-bench                     everything
tollkeeper-bench decide              one limit check in process, against governor
tollkeeper-bench memory              bytes per live cell
tollkeeper-bench http [TOLLKEEPER]   ratelimit.limit against a bare hyper server; builds the binary unless given
tollkeeper-bench verify [PART [TOLLKEEPER]]  keys.verifyKey; parts: throughput, latency, revocation, flood, restart, check, apply
tollkeeper-bench exact [grid|costs [NODES] [TOLLKEEPER] | trouble [TOLLKEEPER]]  a fleet on one Redis: what is admitted too much or too little, and calls per decision
tollkeeper-bench exact PART [TOLLKEEPER]   what Redis costs a node; parts: cold, latency, gone, hot, or parts for all four
tollkeeper-bench rules               the rules that a request meets, of up to 10,000
tollkeeper-bench archive [ROWS]      a month from SQLite and from PostgreSQL into Parquet, read back
tollkeeper-bench layout              one runtime per core against one runtime over all cores
tollkeeper-bench gate [--record]     instructions of the hot path against benches/gate.toml";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran = match words[..] {
        [] => everything(),
        ["decide"] => decide::run(),
        ["memory"] => memory::run(),
        ["http"] => http::against_bare(None),
        ["http", tollkeeper] => http::against_bare(Some(tollkeeper.into())),
        ["verify"] => verify::run(&verify::Part::ALL, None),
        ["verify", part] => verify::part(part).and_then(|part| verify::run(&[part], None)),
        ["verify", part, tollkeeper] => {
            verify::part(part).and_then(|part| verify::run(&[part], Some(tollkeeper.into())))
        }
        ["exact"] => exact::run(exact::Extent::Sample, None),
        ["exact", what @ ("grid" | "costs" | "trouble"), ref rest @ ..] => {
            exact::run_on(what, rest)
        }
        ["exact", part] => exact::parts(part).and_then(|parts| exact::run_parts(parts, None)),
        ["exact", part, tollkeeper] => {
            exact::parts(part).and_then(|parts| exact::run_parts(parts, Some(tollkeeper.into())))
        }
        ["rules"] => rules::run(),
        ["archive"] => archive::run(None),
        ["archive", rows] => archive::run(Some(rows)),
        ["layout"] => http::layout(),
        ["gate"] => gate::check(),
        ["gate", "--record"] => gate::record(),
        // What follows runs in processes that the commands above start.
        ["memory-of", of] => memory::measure(of),
        ["bare-hyper", reply, threads] => http::bare_per_core(http::Reads::Limits, reply, threads),
        ["bare-hyper-verify", reply, threads] => {
            http::bare_per_core(http::Reads::Verifications, reply, threads)
        }
        ["bare-hyper-multi", reply, threads] => http::bare_shared(reply, threads),
        ["gate-subject", subject] => gate::count(subject),
        _ => Err(Failure::Usage(USAGE)),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report::complain(&failure);
            ExitCode::FAILURE
        }
    }
}

fn everything() -> Result<(), Failure> {
    decide::run()?;
    memory::run()?;
    rules::run()?;
    http::against_bare(None)?;
    http::layout()?;
    verify::run(&verify::Part::ALL, None)?;
    exact::run_parts(&exact::Part::ALL, None)?;
    archive::run(None)?;
    gate::check()
}
