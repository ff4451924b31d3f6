//! The writer, beat by beat.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use tollkeeper_core::{Cost, Limit, Quota, Width};
use tollkeeper_decide::{CellAsk, CellHasher};

use super::*;
use crate::journal::{Entry, Journal};

const NOW: Millis = Millis(1_700_000_000_000);

fn ask(identifier: u64, cost: Cost) -> CellAsk {
    let limit =
        Limit::sliding_window(Quota::new(10).unwrap(), Width::from_millis(86_400_000).unwrap());
    let tag = CellHasher::new([3; 16]).namespace("acme", "api");
    CellAsk { key: tag.cell(&identifier.to_string(), &limit), namespace: tag.tag, limit, cost }
}

fn writer(
    dir: &Path,
    cells: &Arc<Cells>,
    spendings: impl Fn() -> Vec<CreditSpent> + Send + 'static,
) -> Writer {
    let (journal, _) = Journal::open(dir, NOW, drop).unwrap();
    let journal = SharedJournal::new(journal);
    let cells = Arc::clone(cells);
    let repeated = Repeated { spendings: Box::new(spendings), leases: Box::new(Vec::new) };
    Writer::new(journal, cells, repeated, Box::new(|| NOW), Arc::default())
}

/// Beats until nothing is left to write, as the thread would in time.
fn beat_on(writer: &mut Writer) {
    writer.beat();
    while !matches!(writer.checkpoint, Checkpoint::None) || writer.rewrite_in.is_some() {
        std::thread::yield_now();
        writer.beat();
    }
}

#[test]
fn changes_that_were_dropped_for_want_of_a_beat_are_written_by_a_new_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let cells = Arc::new(Cells::new(64));
    let mut writer = writer(dir.path(), &cells, Vec::new);
    beat_on(&mut writer);
    assert_eq!(writer.health.checkpoints(), 1);
    for identifier in 0..10_000 {
        cells.spend(&ask(identifier, Cost::ONE), Vec::new(), NOW);
    }
    beat_on(&mut writer);
    assert_eq!((writer.health.checkpoints(), writer.health.failures()), (2, 0));
    drop(writer);

    let again = Cells::new(20_000);
    let replay = |entry| {
        if let Entry::Cell(change) = entry {
            again.replay(change, NOW);
        }
    };
    Journal::open(dir.path(), NOW, replay).unwrap();
    let remaining =
        |identifier| again.spend(&ask(identifier, Cost::PEEK), Vec::new(), NOW).remaining;
    assert!((0..10_000).all(|identifier| remaining(identifier) == 9));
}

#[test]
fn a_quiet_table_is_not_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &Arc::new(Cells::new(64)), Vec::new);
    beat_on(&mut writer);
    let bytes = writer.journal.lock().bytes();
    (0..100).for_each(|_| writer.beat());
    assert_eq!((writer.journal.lock().bytes(), writer.health.checkpoints()), (bytes, 1));
}
