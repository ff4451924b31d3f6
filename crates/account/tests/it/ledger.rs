//! The ledger: every decision is counted once, under what it was, whichever thread made it.

use tollkeeper_account::{Code, Kind, Ledger, Reading};

use crate::changes::NOW;
use crate::node::Node;

fn counted(reading: &Reading, kind: Kind, code: Code) -> u64 {
    reading.checks[kind as usize][code as usize]
}

#[test]
fn every_decision_is_counted_once_under_its_kind_and_code() {
    const THREADS: usize = 2 * Kind::ALL.len();
    const EACH: usize = 300;
    let node = Node::new();
    // Fewer pages than threads: some share one.
    let ledger = Ledger::new(4);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (node, ledger) = (&node, ledger.at_page(thread));
            let kind = Kind::ALL[thread % Kind::ALL.len()];
            scope.spawn(move || {
                for _ in 0..EACH {
                    let decided = node.decide(&thread.to_string(), 100);
                    let answer = ledger.record(kind, decided);
                    assert_eq!(answer.at(), NOW);
                    assert_eq!(answer.made().limits.len(), 1);
                }
            });
        }
    });
    let reading = ledger.read();
    for kind in Kind::ALL {
        let both = [Code::Valid, Code::RateLimited].map(|code| counted(&reading, kind, code));
        assert_eq!(both, [200, 400], "{kind:?}");
    }
    assert_eq!(reading.checks.iter().flatten().sum::<u64>(), (THREADS * EACH) as u64);
    assert_eq!(ledger.at_page(3).read(), reading);
}

#[test]
fn every_verification_is_counted_also_of_keys_that_are_not_there() {
    let (node, ledger) = (Node::new(), Ledger::new(1));
    for number in [1, 100, 200, 201, 202] {
        let answer = ledger.record_verified(Kind::Verify, node.verify(number, 1));
        assert_eq!(answer.at(), NOW);
    }
    let reading = ledger.read();
    let both = [Code::Valid, Code::NotFound].map(|code| counted(&reading, Kind::Verify, code));
    assert_eq!(both, [2, 3]);
    assert_eq!(reading.checks.iter().flatten().sum::<u64>(), 5);
}

#[test]
fn the_labels_of_kinds_and_codes_are_all_different_and_in_order() {
    let mut labels: Vec<&str> = Kind::ALL.map(Kind::label).into();
    labels.extend(Code::ALL.map(Code::label));
    let count = labels.len();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), count);
    assert!(Kind::ALL.iter().enumerate().all(|(at, kind)| *kind as usize == at));
    assert!(Code::ALL.iter().enumerate().all(|(at, code)| *code as usize == at));
}
