//! A disk that is full: nothing torn stays behind, the keeper says so, and all is well again afterwards.
//! The kernel cuts writes short at a file size limit as it does on a full disk. The limit is a whole
//! process's, so each test runs in one of its own.

use std::process::Command;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tollkeeper_account::{JournalError, Keeper, Kind, LeaseMarks, Ledger, SharedJournal};
use tollkeeper_decide::{Ceilings, Cells};

use crate::changes::{NOW, files, fixed, found_after_a_kill, open, totals_after_a_kill};
use crate::credits::{spendings, spent};
use crate::keeper::{reopened, spend, start, until, used};
use crate::leases::left;
use crate::node::Node;

/// Runs one of the ignored tests below with the signal ignored that would end it at the limit.
pub(crate) fn run_alone(test: &str) {
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", test])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{complained}");
}

pub(crate) fn limit_files_to(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}

#[test]
fn a_write_that_does_not_fit_leaves_nothing_torn() {
    run_alone("full_disk::alone_a_write_that_does_not_fit");
}

#[test]
fn a_keeper_on_a_full_disk_says_so_and_mends_the_journal_when_there_is_room() {
    run_alone("full_disk::alone_a_keeper_on_a_full_disk");
}

#[test]
fn a_spending_that_could_not_be_written_is_known_until_a_checkpoint_has_it() {
    run_alone("full_disk::alone_a_spending_that_could_not_be_written");
}

#[test]
fn a_ceiling_that_could_not_be_written_makes_the_journal_untrustworthy() {
    run_alone("full_disk::alone_a_ceiling_that_could_not_be_written");
}

#[test]
fn a_checkpoint_with_a_gap_is_not_sealed() {
    run_alone("full_disk::alone_a_checkpoint_with_a_gap");
}

#[test]
#[ignore = "limits the whole process; run by the test above"]
fn alone_a_write_that_does_not_fit() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _, _) = open(dir.path());
    journal.append(&[fixed(1, 1)]).unwrap();
    let whole = journal.bytes();
    limit_files_to(Some(whole + 1000));
    let many: Vec<_> = (0..100).map(|key| fixed(key, 9)).collect();
    for _ in 0..3 {
        assert!(journal.append(&many).is_err());
        let segment = files(dir.path(), ".tkj").pop().unwrap();
        assert_eq!((journal.bytes(), segment.metadata().unwrap().len()), (whole, whole));
    }
    // What fits is written behind what was whole.
    journal.append(&[fixed(2, 2)]).unwrap();
    limit_files_to(None);
    journal.append(&many).unwrap();
    let (recovered, states) = found_after_a_kill(dir.path());
    assert_eq!((recovered.changes, states.len(), recovered.set_aside.len()), (102, 100, 0));
}

#[test]
#[ignore = "limits the whole process; run by the test above"]
fn alone_a_keeper_on_a_full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let cells = Arc::new(Cells::new(10_000));
    let keeper: Keeper = start(dir.path(), &cells);
    until(|| keeper.health().checkpoints() > 0);
    (0..100).for_each(|identifier| spend(&cells, identifier, 1));
    until(|| used(&reopened(dir.path(), 10_000).0, 99) == 1);
    assert!(!keeper.health().failing());

    limit_files_to(Some(16 << 10));
    (100..2_000).for_each(|identifier| spend(&cells, identifier, 2));
    until(|| keeper.health().failing());
    let failures = keeper.health().failures();
    // However often it tries, no heap of half checkpoints takes what room there is.
    until(|| keeper.health().failures() > failures + 4);
    assert!(files(dir.path(), ".tkj").len() <= 3);
    let asides = found_after_a_kill(dir.path()).0.set_aside;
    assert!(asides.is_empty(), "{asides:?}");

    limit_files_to(None);
    until(|| !keeper.health().failing());
    let checkpoints = keeper.health().checkpoints();
    until(|| keeper.health().checkpoints() > checkpoints || files(dir.path(), ".tkj").len() == 1);
    let (again, _) = reopened(dir.path(), 10_000);
    assert!(
        (0..2_000)
            .all(|identifier| used(&again, identifier) == if identifier < 100 { 1 } else { 2 })
    );
    keeper.stop().unwrap();
    assert!(reopened(dir.path(), 10_000).1);
}

#[test]
#[ignore = "limits the whole process; run by the test above"]
fn alone_a_spending_that_could_not_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::new();
    let journal = SharedJournal::new(open(dir.path()).0);
    let boot = journal.lock().boot();
    let ledger = Ledger::new(1).keeping(journal.clone());
    let cells = Arc::clone(node.decider.cells());
    let keeper =
        Keeper::start(journal.clone(), cells, spendings(&node, boot), Vec::new, || NOW).unwrap();
    until(|| keeper.health().checkpoints() > 0);
    ledger.record_verified(Kind::Verify, node.verify(1, 5));
    assert!(totals_after_a_kill(dir.path()).0.whole);

    // Nothing but the spending is written, so only whoever spends meets the failure.
    limit_files_to(Some(journal.lock().bytes()));
    ledger.record_verified(Kind::Verify, node.verify(1, 3));
    let (recovered, totals) = totals_after_a_kill(dir.path());
    assert!(!recovered.whole && recovered.set_aside.is_empty());
    assert_eq!(totals[&(boot.0, "key_1".to_owned())], 5);
    until(|| keeper.health().failing());

    limit_files_to(None);
    until(|| totals_after_a_kill(dir.path()).0.whole);
    assert_eq!(totals_after_a_kill(dir.path()).1[&(boot.0, "key_1".to_owned())], 8);
    until(|| !keeper.health().failing());
    keeper.stop().unwrap();
}

#[test]
#[ignore = "limits the whole process; run by the test above"]
fn alone_a_ceiling_that_could_not_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let journal = SharedJournal::new(open(dir.path()).0);
    let marks = LeaseMarks::new(journal.clone(), NOW);
    let held = left(journal.lock().boot(), "ann", 100, 10);
    marks.raise(held.mark.clone());
    assert!(totals_after_a_kill(dir.path()).0.whole);
    limit_files_to(Some(journal.lock().bytes()));
    marks.raise(held.mark.clone());
    assert!(journal.lock().has_gap());
    assert!(!totals_after_a_kill(dir.path()).0.whole);

    limit_files_to(None);
    let cells = Arc::new(Cells::new(100));
    let keeper =
        Keeper::start(journal, cells, Vec::new, move || vec![held.clone()], || NOW).unwrap();
    until(|| totals_after_a_kill(dir.path()).0.whole);
    keeper.stop().unwrap();
}

#[test]
#[ignore = "limits the whole process; run by the test above"]
fn alone_a_checkpoint_with_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _, _) = open(dir.path());
    let note = spent(journal.boot(), "key_1", 5);
    journal.note_spent(std::slice::from_ref(&note)).unwrap();
    journal.begin_checkpoint(NOW).unwrap();
    limit_files_to(Some(journal.bytes()));
    assert!(journal.note_spent(std::slice::from_ref(&note)).is_err());
    limit_files_to(None);
    assert!(journal.has_gap());
    journal.append(&[fixed(1, 1)]).unwrap();
    assert!(matches!(journal.seal_checkpoint(), Err(JournalError::Gap)));
    assert!(!totals_after_a_kill(dir.path()).0.whole);

    journal.begin_checkpoint(NOW).unwrap();
    journal.note_spent(&[note]).unwrap();
    let sealed = journal.seal_checkpoint().unwrap();
    // A failure while the checkpoint settles is one too many as well.
    limit_files_to(Some(journal.bytes()));
    assert!(journal.append(&[fixed(2, 2)]).is_err());
    limit_files_to(None);
    sealed.settle().unwrap();
    journal.settled().unwrap();
    assert!(!totals_after_a_kill(dir.path()).0.whole);

    journal.begin_checkpoint(NOW).unwrap();
    journal.end_checkpoint().unwrap();
    assert!(totals_after_a_kill(dir.path()).0.whole);
}
