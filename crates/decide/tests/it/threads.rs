//! Many threads on the same cells: exactly the limit is admitted, and all of them finish.

use std::sync::Barrier;

use tollkeeper_core::{Cost, Limit, Millis, Quota, Width};
use tollkeeper_decide::{CellAsk, CellHasher, Cells, Which};

const NOW: Millis = Millis(1_700_000_000_000);
const THREADS: usize = 8;

fn ask(identifier: &str, quota: u64, cost: u64) -> CellAsk {
    let limit =
        Limit::sliding_window(Quota::new(quota).unwrap(), Width::from_millis(60_000).unwrap());
    let tag = CellHasher::new([3; 16]).namespace("acme", "api");
    let key = tag.cell(identifier, &limit);
    CellAsk { key, namespace: tag.tag, limit, cost: Cost::new(cost).unwrap() }
}

fn remaining(cells: &Cells, identifier: &str, quota: u64) -> u64 {
    cells.spend(&ask(identifier, quota, 0), Vec::new(), NOW).remaining
}

/// Runs `work` on all threads at once, `times` times each; returns how often it said yes.
fn race(times: usize, work: impl Fn(usize) -> bool + Sync) -> usize {
    let ready = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        let run = |thread: usize| {
            let (ready, work) = (&ready, &work);
            scope.spawn(move || {
                ready.wait();
                (0..times).filter(|_| work(thread)).count()
            })
        };
        let threads: Vec<_> = (0..THREADS).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

#[test]
fn many_threads_on_one_cell_admit_exactly_the_limit() {
    let cells = Cells::new(1000);
    let admitted = race(5_000, |_| cells.spend(&ask("hot", 10_000, 1), Vec::new(), NOW).admitted());
    assert_eq!((admitted, remaining(&cells, "hot", 10_000)), (10_000, 0));
}

#[test]
fn bundles_in_opposite_order_finish_and_admit_exactly_the_limit() {
    let cells = Cells::new(100_000);
    let forth: Vec<CellAsk> = ["a", "b", "c"].map(|id| ask(id, 5_000, 1)).into();
    let back: Vec<CellAsk> = forth.iter().rev().copied().collect();
    let admitted = race(2_000, |thread| {
        let asks = if thread.is_multiple_of(2) { &forth } else { &back };
        cells.spend_all(asks, Vec::new(), NOW).passed
    });
    assert_eq!(admitted, 5_000);
    assert_eq!(["a", "b", "c"].map(|id| remaining(&cells, id, 5_000)), [0; 3]);
}

#[test]
fn housekeeping_beside_many_threads_frees_nothing_that_was_spent() {
    let cells = Cells::new(100);
    let forth: Vec<CellAsk> = ["a", "b"].map(|id| ask(id, 1_000, 1)).into();
    let admitted = race(500, |thread| {
        if thread == 0 {
            cells.drain_changes(|_| ());
            cells.sweep(0, 1, NOW);
            let _ = cells.reset(Which::Subject(ask("other", 1, 1).key.subject));
            return false;
        }
        cells.spend_all(&forth, Vec::new(), NOW).passed
    });
    assert_eq!(
        (admitted, remaining(&cells, "a", 1_000), remaining(&cells, "b", 1_000)),
        (1_000, 0, 0)
    );
}

#[test]
fn a_denied_bundle_consumes_nothing() {
    let cells = Cells::new(100_000);
    let many: Vec<CellAsk> = (0..20).map(|id| ask(&id.to_string(), 10, 3)).collect();
    let mut with_one_too_much = many.clone();
    with_one_too_much.push(ask("narrow", 10, 11));
    for _ in 0..5 {
        let settled = cells.spend_all(&with_one_too_much, Vec::new(), NOW);
        assert!(!settled.passed);
        assert!(settled.outcomes[..20].iter().all(|outcome| outcome.remaining == 10));
    }
    assert!(cells.spend_all(&many, Vec::new(), NOW).passed);
    assert!((0..20).all(|id| remaining(&cells, &id.to_string(), 10) == 7));
    assert_eq!(remaining(&cells, "narrow", 10), 10);
}

#[test]
fn a_cell_that_is_named_twice_in_a_bundle_is_charged_for_both() {
    let cells = Cells::new(1000);
    let twice = [ask("a", 10, 3), ask("b", 10, 1), ask("a", 10, 4)];
    let settled = cells.spend_all(&twice, Vec::new(), NOW);
    assert!(settled.passed);
    assert_eq!(settled.outcomes.iter().map(|one| one.remaining).collect::<Vec<_>>(), [3, 9, 3]);
    assert!(!cells.spend_all(&[ask("a", 10, 2), ask("a", 10, 2)], Vec::new(), NOW).passed);
    assert_eq!((remaining(&cells, "a", 10), remaining(&cells, "b", 10)), (3, 9));
}
