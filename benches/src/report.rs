//! What a person reads: Markdown tables, ready for docs/BENCHMARKS.md. The only place that prints.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing figures is this program's purpose"
)]

use std::fmt::Display;
use std::io::Write;

use crate::bystanders::Bystanders;
use crate::failure::Failure;
use crate::rounds::Spread;

#[derive(Debug)]
pub(crate) struct Table {
    columns: usize,
}

/// A figure's target.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
    /// Shown for information.
    None,
}

// === impl Table ===

impl Table {
    /// Rows are printed as they come, because some take a minute.
    pub(crate) fn new(title: &str, command: &str, columns: &[&str]) -> Self {
        println!(
            "\n### {title}\n\n`cargo run --release --package tollkeeper-bench -- {command}`\n"
        );
        println!("| {} |", columns.join(" | "));
        println!("|{}", "---|".repeat(columns.len()));
        Self { columns: columns.len() }
    }

    pub(crate) fn row(&self, cells: &[String]) {
        debug_assert_eq!(cells.len(), self.columns, "a cell for every column");
        println!("| {} |", cells.join(" | "));
        // A pipe would keep rows back until the end.
        let _ = std::io::stdout().flush();
    }
}

// === impl Target ===

impl Target {
    /// The target and whether this figure meets it.
    pub(crate) fn verdict(self, figure: f64) -> String {
        let (met, text) = match self {
            Self::AtLeast(least) => (figure >= least, format!("≥ {least}")),
            Self::AtMost(most) => (figure <= most, format!("≤ {most}")),
            Self::None => return "–".into(),
        };
        format!("{text}: {}", if met { "met" } else { "**missed**" })
    }
}

/// `2.31 (1.98..2.75)`
pub(crate) fn ratio(spread: Spread) -> String {
    format!("{:.2} ({:.2}..{:.2})", spread.median, spread.least, spread.most)
}

/// `167 (140..412)`
pub(crate) fn whole(spread: Spread) -> String {
    format!("{:.0} ({:.0}..{:.0})", spread.median, spread.least, spread.most)
}

/// A remark between tables.
pub(crate) fn note(text: &str) {
    println!("\n{text}");
}

/// How quiet it was.
pub(crate) fn note_bystanders(bystanders: &Bystanders) -> Result<(), Failure> {
    let percent = bystanders.percent()?;
    note(&format!("Other processes took {percent:.0} % of one core meanwhile."));
    Ok(())
}

/// One line for whoever started this process.
pub(crate) fn answer(text: impl Display) {
    println!("{text}");
}

pub(crate) fn complain(failure: &Failure) {
    eprintln!("{failure}");
}
