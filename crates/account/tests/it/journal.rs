//! What was appended is read back, in order, whenever the process ends.

use proptest::prelude::*;
use tollkeeper_account::{Journal, JournalError};
use tollkeeper_core::{LOG_QUOTA_MAX, Millis, SlidingLog, State};
use tollkeeper_decide::{CellKey, Change, ParkedCell};

use crate::changes::{
    NOW, States, apply, change, files, fixed, found_after_a_kill, open, read as read_all,
};

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<Change>),
    /// Begins a checkpoint, writes a part of it, or ends it: whichever is next.
    Checkpoint,
    /// Gives the checkpoint up and begins another.
    BeginAgain,
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => prop::collection::vec(change(), 0..8).prop_map(Step::Append),
        4 => Just(Step::Checkpoint),
        1 => Just(Step::BeginAgain),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..25)
}

/// The parts of a checkpoint that are still to be written, by the first key's remainder.
const PARTS: u64 = 3;

fn part_of(states: &States, part: u64) -> Vec<Change> {
    let cells = states.values().filter(|cell| cell.key.subject % PARTS == part);
    cells.cloned().map(Change::Cell).collect()
}

fn run(steps: Vec<Step>) {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _, mut states) = open(dir.path());
    let mut part: Option<u64> = None;
    for step in steps {
        match (step, part) {
            (Step::Append(changes), _) => {
                journal.append(&changes).unwrap();
                for change in changes {
                    apply(&mut states, change);
                }
            }
            (Step::Checkpoint, None) | (Step::BeginAgain, _) => {
                journal.begin_checkpoint(NOW).unwrap();
                part = Some(0);
            }
            (Step::Checkpoint, Some(PARTS)) => {
                journal.end_checkpoint().unwrap();
                part = None;
                assert_eq!(files(dir.path(), ".tkj").len(), 1);
            }
            (Step::Checkpoint, Some(next)) => {
                journal.append(&part_of(&states, next)).unwrap();
                part = Some(next + 1);
            }
            (Step::Restart, _) => {
                drop(journal);
                let opened = open(dir.path());
                (journal, part) = (opened.0, None);
                assert_eq!(opened.2, states);
            }
        }
        let (recovered, found) = found_after_a_kill(dir.path());
        assert!(found == states && recovered.set_aside.is_empty(), "{recovered:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_process_that_dies_at_any_step_loses_nothing(steps in steps()) {
        run(steps);
    }

    #[test]
    fn changes_are_read_back_as_they_were_written(changes in prop::collection::vec(change(), 0..100)) {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, _, _) = open(dir.path());
        for some in changes.chunks(7) {
            journal.append(some).unwrap();
        }
        drop(journal);
        let mut read = Vec::new();
        let (_, recovered) = read_all(dir.path(), |change| read.push(change));
        prop_assert_eq!(recovered.changes, read.len() as u64);
        prop_assert_eq!(read, changes);
    }
}

#[test]
fn segments_of_several_processes_are_read_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut boots = Vec::new();
    for used in 1..=12 {
        let (mut journal, _, _) = open(dir.path());
        journal.append(&[fixed(1, used), fixed(used + 1, 0)]).unwrap();
        boots.push(journal.boot());
    }
    let mut read = Vec::new();
    let (_, recovered) = read_all(dir.path(), |change| read.push(change));
    let written: Vec<Change> =
        (1..=12).flat_map(|used| [fixed(1, used), fixed(used + 1, 0)]).collect();
    assert_eq!(read, written);
    assert!(!recovered.clean);
    boots.dedup();
    assert_eq!(boots.len(), 12);
}

#[test]
fn older_segments_go_only_when_the_checkpoint_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _, _) = open(dir.path());
    journal.append(&[fixed(1, 1)]).unwrap();
    journal.begin_checkpoint(NOW).unwrap();
    journal.append(&[fixed(1, 1)]).unwrap();
    assert_eq!(files(dir.path(), ".tkj").len(), 2);
    let sealed = journal.seal_checkpoint().unwrap();
    assert_eq!(files(dir.path(), ".tkj").len(), 2);
    // Written while the checkpoint settles: belongs to the new segment, and stays.
    journal.append(&[fixed(2, 2)]).unwrap();
    sealed.settle().unwrap();
    assert_eq!(files(dir.path(), ".tkj").len(), 1);
    assert_eq!(found_after_a_kill(dir.path()).1.len(), 2);
}

#[test]
fn the_largest_states_fit() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _, _) = open(dir.path());
    let log = |subject: u64| {
        let entries = (0..LOG_QUOTA_MAX).map(|at| (Millis(at), subject));
        let state =
            State::Log(Box::new(SlidingLog::from_parts(Millis(u64::MAX), entries).unwrap()));
        let key = CellKey { subject, exact: 1 };
        Change::Cell(ParkedCell { key, namespace: 1, idle_at_s: 1, fill: 1, state })
    };
    let changes: Vec<Change> = (0..40).map(log).collect();
    journal.append(&changes).unwrap();
    drop(journal);
    let mut read = Vec::new();
    read_all(dir.path(), |change| read.push(change));
    assert!(read == changes);
}

#[test]
fn an_orderly_end_is_told_from_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _, _) = open(dir.path());
    journal.append(&[fixed(1, 1)]).unwrap();
    journal.close().unwrap();
    drop(journal);
    let (journal, recovered, _) = open(dir.path());
    assert!(recovered.clean);
    drop(journal);
    assert!(!open(dir.path()).1.clean);
}

#[test]
fn a_directory_that_another_process_uses_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _, _) = open(dir.path());
    let error = Journal::open(dir.path(), NOW, drop).unwrap_err();
    assert!(matches!(error, JournalError::InUse { .. }), "{error}");
    assert_eq!(files(dir.path(), ".tkj").len(), 1);
    drop(journal);
    open(dir.path());
}
