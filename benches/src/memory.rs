//! Bytes of resident memory per live cell. Each figure comes from a process of its own, so that none inherits
//! what another left in the allocator.

use std::num::NonZeroU32;
use std::process::Command;
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota};
use tollkeeper_core::{Cost, Limit, Millis};
use tollkeeper_decide::{CellAsk, CellHasher, Cells};

mod shared;

use crate::clock::Stopwatch;
use crate::decide::CELLS_MAX;
use crate::failure::Failure;
use crate::identifiers::{IDENTIFIERS, identifier};
use crate::report::{self, Table, Target};
use crate::rounds::Spread;
use crate::{limits, proc};

const ROUNDS: usize = 3;
/// Any moment that is not the first.
const NOW: Millis = Millis(1_700_000_000_000);
/// What comes in between two reads of the journal.
const BETWEEN_DRAINS: u64 = 20_000;
/// The allocator gives freed memory back after a second, while it is being used.
const SETTLING: Duration = Duration::from_secs(3);

const OURS: [&str; 3] = ["sliding_window", "fixed_window", "token_bucket"];
/// Cells that are shared over Redis, the last two with a lease in hand.
const SHARED: [&str; 5] = [
    "sliding_window, shared",
    "fixed_window, shared",
    "token_bucket, shared",
    "sliding_window, lent to",
    "fixed_window, lent to",
];

/// Bytes per cell.
struct Figures {
    /// Right after the last cell came in: tables that were outgrown are still there.
    filled: f64,
    /// After some more seconds of traffic on the same cells.
    settled: f64,
}

pub(crate) fn run() -> Result<(), Failure> {
    let table = Table::new(
        "Resident memory per live cell, 1,000,000 identifiers of 40 bytes",
        "memory",
        &["limiter", "bytes/cell, settled", "right after filling", "target (settled)"],
    );
    for of in OURS.into_iter().chain(SHARED).chain(["governor"]) {
        let figures = (0..ROUNDS).map(|_| ask(of)).collect::<Result<Vec<Figures>, _>>()?;
        let settled = Spread::of(figures.iter().map(|figures| figures.settled));
        let filled = Spread::of(figures.iter().map(|figures| figures.filled));
        let target = match of {
            "governor" => Target::None,
            of if SHARED.contains(&of) => Target::AtMost(192.0),
            _ => Target::AtMost(96.0),
        };
        let verdict = target.verdict(settled.median);
        table.row(&[of.into(), tenths(settled), tenths(filled), verdict]);
    }
    Ok(())
}

fn tenths(spread: Spread) -> String {
    format!("{:.1} ({:.1}..{:.1})", spread.median, spread.least, spread.most)
}

/// Has a fresh process measure itself.
fn ask(of: &str) -> Result<Figures, Failure> {
    let bench = std::env::current_exe().map_err(Failure::io("this program"))?;
    let mut child = Command::new(bench);
    let said = child.args(["memory-of", of]).output().map_err(Failure::io("a child"))?;
    if !said.status.success() {
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        return Err(Failure::Child { what: format!("memory-of {of}"), said });
    }
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let figures = text.trim().split_once(' ').and_then(|(filled, settled)| {
        Some(Figures { filled: filled.parse().ok()?, settled: settled.parse().ok()? })
    });
    figures.ok_or_else(|| Failure::unreadable("a child's figures", text))
}

/// In the fresh process: fills one limiter and answers with its bytes per cell.
pub(crate) fn measure(of: &str) -> Result<(), Failure> {
    let before = proc::resident_bytes()?;
    let [filled, settled] = match of {
        "sliding_window" => fill_cells(limits::sliding_window()?)?,
        "fixed_window" => fill_cells(limits::fixed_window()?)?,
        "token_bucket" => fill_cells(limits::token_bucket()?)?,
        "sliding_window, shared" => shared::ask_once(limits::sliding_window()?)?,
        "fixed_window, shared" => shared::ask_once(limits::fixed_window()?)?,
        "token_bucket, shared" => shared::ask_once(limits::token_bucket()?)?,
        "sliding_window, lent to" => shared::lend(limits::sliding_window()?)?,
        "fixed_window, lent to" => shared::lend(limits::fixed_window()?)?,
        _ => fill_governor()?,
    }
    .map(|after| after.saturating_sub(before) as f64 / IDENTIFIERS as f64);
    report::answer(format_args!("{filled} {settled}"));
    Ok(())
}

fn fill_cells(limit: Limit) -> Result<[u64; 2], Failure> {
    let cells = Cells::new(CELLS_MAX);
    let tag = CellHasher::new(*b"a fixed 16 bytes").namespace("tenant", "requests");
    let figures = fill(|n| {
        let key = tag.cell(&identifier(n), &limit);
        let ask = CellAsk { key, namespace: tag.tag, limit, cost: Cost::ONE };
        cells.spend(&ask, Vec::new(), NOW);
        if n % BETWEEN_DRAINS == 0 {
            cells.drain_changes(|_| {});
        }
    })?;
    all_live(cells.stats().live)?;
    Ok(figures)
}

fn fill_governor() -> Result<[u64; 2], Failure> {
    let limiter = DefaultKeyedRateLimiter::dashmap(Quota::per_second(NonZeroU32::MIN));
    let figures = fill(|n| {
        let _ = limiter.check_key(&identifier(n));
    })?;
    all_live(limiter.len())?;
    Ok(figures)
}

/// Asks for every identifier once, and then again for a while. Resident bytes after each.
fn fill(ask_for: impl Fn(u64)) -> Result<[u64; 2], Failure> {
    (0..IDENTIFIERS).for_each(&ask_for);
    let filled = proc::resident_bytes()?;
    let watch = Stopwatch::start();
    while watch.elapsed() < SETTLING {
        (0..IDENTIFIERS).for_each(&ask_for);
    }
    Ok([filled, proc::resident_bytes()?])
}

/// The allocator gives back only while it is being used.
fn settle() {
    let watch = Stopwatch::start();
    while watch.elapsed() < SETTLING {
        std::hint::black_box(identifier(watch.elapsed().as_secs()));
    }
}

fn all_live(live: usize) -> Result<(), Failure> {
    if live as u64 == IDENTIFIERS {
        return Ok(());
    }
    Err(Failure::Invalid(format!("{live} cells are live instead of {IDENTIFIERS}")))
}
