//! The keeper writes what the table decides: soon while it runs, exactly when it stops.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tollkeeper_account::{Keeper, SharedJournal};
use tollkeeper_core::{Cost, Limit, Quota, State, Width};
use tollkeeper_decide::{CellAsk, CellHasher, Cells, ParkedCell, Which};

use crate::changes::{NOW, files, found_after_a_kill, read};

pub(crate) fn ask(identifier: u64, cost: u64) -> CellAsk {
    let limit = Limit::sliding_window(
        Quota::new(1_000_000).unwrap(),
        Width::from_millis(86_400_000).unwrap(),
    );
    let tag = CellHasher::new([3; 16]).namespace("acme", "api");
    let key = tag.cell(&identifier.to_string(), &limit);
    CellAsk { key, namespace: tag.tag, limit, cost: Cost::new(cost).unwrap() }
}

pub(crate) fn spend(cells: &Cells, identifier: u64, cost: u64) {
    assert!(cells.spend(&ask(identifier, cost), Vec::new(), NOW).admitted());
}

pub(crate) fn used(cells: &Cells, identifier: u64) -> u64 {
    1_000_000 - cells.spend(&ask(identifier, 0), Vec::new(), NOW).remaining
}

/// A table as the next process would have it.
pub(crate) fn reopened(dir: &Path, cells_max: usize) -> (Cells, bool) {
    let cells = Cells::new(cells_max);
    let copy = crate::changes::copy_of(dir);
    let (_, recovered) = read(copy.path(), |change| cells.replay(change, NOW));
    (cells, recovered.clean)
}

pub(crate) fn start(dir: &Path, cells: &Arc<Cells>) -> Keeper {
    let (journal, _) = read(dir, |change| cells.replay(change, NOW));
    Keeper::start(SharedJournal::new(journal), Arc::clone(cells), Vec::new, Vec::new, || NOW)
        .unwrap()
}

/// Waits until it is so, and says how long that took.
#[allow(clippy::disallowed_methods, reason = "the guarantee is about real time")]
pub(crate) fn until(mut is_so: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it never came to be");
        std::thread::park_timeout(Duration::from_millis(1));
    }
    begun.elapsed()
}

#[test]
fn a_decision_is_in_the_file_within_100_ms() {
    let dir = tempfile::tempdir().unwrap();
    let cells = Arc::new(Cells::new(1000));
    let keeper = start(dir.path(), &cells);
    until(|| keeper.health().checkpoints() > 0);
    let mut took: Vec<Duration> = (1..=15)
        .map(|used| {
            spend(&cells, 1, 1);
            let is_written = |cell: &ParkedCell| matches!(&cell.state, State::Sliding(state) if state.used == used);
            until(|| found_after_a_kill(dir.path()).1.values().any(is_written))
        })
        .collect();
    took.sort();
    // The middle one: a busy machine may hold back a thread now and then.
    assert!(took[7] < Duration::from_millis(100), "{took:?}");
    keeper.stop().unwrap();
}

#[test]
fn a_stop_makes_the_journal_exact_and_clean() {
    let dir = tempfile::tempdir().unwrap();
    let cells = Arc::new(Cells::new(200));
    let keeper = start(dir.path(), &cells);
    // More than the table holds: the rest is parked, and must be there too.
    for identifier in 0..300 {
        spend(&cells, identifier, identifier + 1);
    }
    cells.reset(Which::Subject(ask(7, 0).key.subject));
    keeper.stop().unwrap();
    assert_eq!(files(dir.path(), ".tkj").len(), 1);
    let (again, clean) = reopened(dir.path(), 1000);
    assert!(clean);
    for identifier in 0..300 {
        let expected = if identifier == 7 { 0 } else { identifier + 1 };
        assert_eq!(used(&again, identifier), expected, "{identifier}");
    }
}

#[test]
fn a_keeper_that_is_dropped_still_writes_everything() {
    let dir = tempfile::tempdir().unwrap();
    let cells = Arc::new(Cells::new(100));
    let keeper = start(dir.path(), &cells);
    spend(&cells, 1, 5);
    drop(keeper);
    until(|| reopened(dir.path(), 100).1);
    assert_eq!(used(&reopened(dir.path(), 100).0, 1), 5);
}

#[test]
fn generations_of_processes_hand_their_counters_on() {
    let dir = tempfile::tempdir().unwrap();
    for generation in 1..=5 {
        let cells = Arc::new(Cells::new(64));
        let keeper = start(dir.path(), &cells);
        for identifier in 0..64 {
            spend(&cells, identifier, 1);
            assert_eq!(used(&cells, identifier), generation);
        }
        keeper.stop().unwrap();
    }
}
