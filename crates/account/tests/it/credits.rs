//! Credits are money: what was spent is in the journal before anybody hears of it, and the next process knows
//! whether it can rely on that.

use std::fs;
use std::sync::Arc;

use proptest::prelude::*;
use tollkeeper_account::{BootId, CreditSpent, Keeper, Kind, Ledger, SharedJournal};
use tollkeeper_core::Verdict;

use crate::changes::{NOW, Totals, copy_of, files, fixed, open, totals_after_a_kill};
use crate::keeper::until;
use crate::node::Node;

pub(crate) fn spent(boot: BootId, key: &str, total: u64) -> CreditSpent {
    CreditSpent { boot, key_id: key.into(), total }
}

/// What this process has spent, as a keeper asks for it.
pub(crate) fn spendings(
    node: &Node,
    boot: BootId,
) -> impl Fn() -> Vec<CreditSpent> + Send + 'static {
    let decider = Arc::clone(&node.decider);
    move || {
        let totals = decider.purse().totals().into_iter();
        totals.map(|(key, total)| spent(boot, &key, total)).collect()
    }
}

#[test]
fn a_spending_is_in_the_file_before_its_answer_can_leave() {
    let dir = tempfile::tempdir().unwrap();
    let journal = SharedJournal::new(open(dir.path()).0);
    let BootId(boot) = journal.lock().boot();
    let ledger = Ledger::new(1).keeping(journal);
    let node = Node::new();
    let mut expected = Totals::new();
    for (number, cost) in [(1, 1), (2, 5), (1, 3), (1, 1), (2, 100)] {
        let answer = ledger.record_verified(Kind::Verify, node.verify(number, cost));
        assert_eq!((answer.made().verdict, answer.made().credits_spent), (Verdict::Valid, cost));
        *expected.entry((boot, format!("key_{number}"))).or_default() += cost;
        assert_eq!(totals_after_a_kill(dir.path()).1, expected);
    }
}

#[test]
fn totals_of_many_threads_are_exact_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let journal = SharedJournal::new(open(dir.path()).0);
    let BootId(boot) = journal.lock().boot();
    let ledger = Ledger::new(4).keeping(journal);
    let node = Node::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (node, ledger) = (&node, ledger.at_page(thread));
            scope.spawn(move || {
                for cost in 0..100 {
                    ledger.record_verified(Kind::Verify, node.verify(1, cost % 3));
                }
            });
        }
    });
    let (recovered, totals) = totals_after_a_kill(dir.path());
    assert_eq!(totals, [((boot, "key_1".to_owned()), 4 * 99)].into());
    assert!(recovered.whole && !recovered.clean);
}

#[test]
fn what_spends_no_credits_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let journal = SharedJournal::new(open(dir.path()).0);
    let ledger = Ledger::new(1).keeping(journal.clone());
    let node = Node::new();
    let before = journal.lock().bytes();
    for (number, cost) in [(1, 0), (100, 5), (200, 1)] {
        ledger.record_verified(Kind::Verify, node.verify(number, cost));
    }
    assert_eq!(journal.lock().bytes(), before);
}

#[test]
fn a_keepers_checkpoints_keep_what_was_spent() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::new();
    let journal = SharedJournal::new(open(dir.path()).0);
    let boot = journal.lock().boot();
    let ledger = Ledger::new(1).keeping(journal.clone());
    ledger.record_verified(Kind::Verify, node.verify(1, 41));
    let cells = Arc::clone(node.decider.cells());
    let keeper = Keeper::start(journal, cells, spendings(&node, boot), Vec::new, || NOW).unwrap();
    until(|| keeper.health().checkpoints() > 0);
    // Only the checkpoint is left, and what was written behind it.
    assert_eq!(files(dir.path(), ".tkj").len(), 1);
    ledger.record_verified(Kind::Verify, node.verify(2, 7));
    let expected: Totals =
        [((boot.0, "key_1".to_owned()), 41), ((boot.0, "key_2".to_owned()), 7)].into();
    assert_eq!(totals_after_a_kill(dir.path()).1, expected);
    keeper.stop().unwrap();
    let (recovered, totals) = totals_after_a_kill(dir.path());
    assert_eq!((totals, recovered.clean, recovered.whole), (expected, true, true));
}

#[test]
fn every_process_whose_files_or_spendings_are_there_is_reported_once() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(totals_after_a_kill(dir.path()).0.boots, []);
    let mut boots = Vec::new();
    for _ in 0..3 {
        let (mut journal, recovered, _) = open(dir.path());
        assert_eq!(recovered.boots, boots);
        journal.append(&[fixed(1, 1)]).unwrap();
        journal.begin_checkpoint(NOW).unwrap();
        journal.append(&[fixed(1, 1)]).unwrap();
        boots.push(journal.boot());
    }
    // The last one replaces all files, but has not given back yet what the first had.
    let (mut journal, _, _) = open(dir.path());
    journal.begin_checkpoint(NOW).unwrap();
    journal.note_spent(&[spent(boots[0], "key_1", 0)]).unwrap();
    journal.end_checkpoint().unwrap();
    assert_eq!(totals_after_a_kill(dir.path()).0.boots, [journal.boot(), boots[0]]);
}

#[test]
fn a_journal_that_could_not_be_read_is_not_whole_until_a_checkpoint_replaced_it() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, recovered, _) = open(dir.path());
    assert!(recovered.whole);
    journal.note_spent(&[spent(journal.boot(), "key_1", 5)]).unwrap();
    drop(journal);
    let segment = files(dir.path(), ".tkj").remove(0);
    let bytes = fs::read(&segment).unwrap();
    fs::write(&segment, &bytes[..bytes.len() - 1]).unwrap();
    // However often a process starts and dies: what is missing is missing.
    for _ in 0..3 {
        assert!(!open(dir.path()).1.whole);
    }
    let (mut journal, _, _) = open(dir.path());
    journal.begin_checkpoint(NOW).unwrap();
    let sealed = journal.seal_checkpoint().unwrap();
    assert!(!totals_after_a_kill(dir.path()).0.whole);
    sealed.settle().unwrap();
    journal.settled().unwrap();
    assert!(totals_after_a_kill(dir.path()).0.whole);
}

#[test]
fn a_journal_without_its_marker_is_not_whole() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let copy = copy_of(dir.path());
    fs::remove_file(copy.path().join("intact")).unwrap();
    assert!(!open(copy.path()).1.whole);
    assert!(open(dir.path()).1.whole);
}

#[derive(Clone, Debug)]
enum Step {
    Spend(u8, u64),
    Begin,
    End,
    /// Another process goes on; the bank may have heard of what the one before spent, or not yet.
    Restart {
        told: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..3_u8, 1..1_000_u64).prop_map(|(key, cost)| Step::Spend(key, cost)),
        2 => Just(Step::Begin),
        2 => Just(Step::End),
        1 => any::<bool>().prop_map(|told| Step::Restart { told }),
    ];
    prop::collection::vec(step, 1..40)
}

/// Every total that is still needed, as a checkpoint repeats it.
fn all(totals: &Totals) -> Vec<CreditSpent> {
    totals.iter().map(|((boot, key), total)| spent(BootId(*boot), key, *total)).collect()
}

fn run(steps: Vec<Step>) {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path()).0;
    let (mut needed, mut begun) = (Totals::new(), false);
    for step in steps {
        match step {
            Step::Spend(key, cost) => {
                let key = format!("key_{key}");
                let total = needed.entry((journal.boot().0, key.clone())).or_default();
                *total += cost;
                journal.note_spent(&[spent(journal.boot(), &key, *total)]).unwrap();
            }
            Step::Begin => {
                journal.begin_checkpoint(NOW).unwrap();
                begun = true;
            }
            Step::End if begun => {
                journal.note_spent(&all(&needed)).unwrap();
                journal.end_checkpoint().unwrap();
                begun = false;
            }
            Step::End => {}
            Step::Restart { told } => {
                drop(journal);
                journal = open(dir.path()).0;
                begun = false;
                if told {
                    needed.clear();
                }
            }
        }
        let (recovered, totals) = totals_after_a_kill(dir.path());
        assert!(recovered.whole);
        for (of, total) in &needed {
            assert_eq!(totals.get(of), Some(total));
            assert!(recovered.boots.contains(&BootId(of.0)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn totals_are_exact_whenever_the_process_dies(steps in steps()) {
        run(steps);
    }
}
