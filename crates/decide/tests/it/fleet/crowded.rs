//! A table without room: what is asked alone goes straight to the origin, and what is spent together stays together.

use std::sync::Arc;

use tollkeeper_core::{Boot, Cost, Limit, Millis, Quota, Record, Take, Taken, Totals, Width};
use tollkeeper_decide::{
    CellKey, CellName, Consistency, Dealt, Errand, LeaseAsk, LeaseTable, Link, NearLease, OnOutage,
    Scope,
};

const START: Millis = Millis(1_700_000_000_000);
const QUOTA: u64 = 100;
/// For bundles in a full shard: 65,536 in all, of 64 shards.
const MORE_PER_SHARD: u64 = 1_024;

/// One cell in each shard, and some more for bundles.
fn table() -> LeaseTable<u64> {
    LeaseTable::new(64, Boot(7))
}

fn limit() -> Limit {
    Limit::sliding_window(Quota::new(QUOTA).unwrap(), Width::from_millis(3_600_000).unwrap())
}

fn ask(cell: u64, bundled: bool) -> LeaseAsk {
    LeaseAsk {
        key: CellKey { subject: 0, exact: cell },
        limit: limit(),
        cost: Cost::ONE,
        consistency: Consistency::Exact,
        on_outage: OnOutage::Share,
        bundled,
        beside: 0,
    }
}

fn near(table: &LeaseTable<u64>, ask: &LeaseAsk) -> NearLease {
    let scope = Arc::new(Scope::namespace("t", "s"));
    let name = || CellName::new(&scope, &ask.key.exact.to_string());
    table.near(ask, name, |id| id, Link::Up, START)
}

/// The errand of an ask that waits for one.
fn errand(near: NearLease) -> Errand {
    match near {
        NearLease::Waits(_, Some(errand)) => errand,
        other => panic!("nothing to run: {other:?}"),
    }
}

fn run(table: &LeaseTable<u64>, record: &mut Option<Record>, errand: &Errand) -> Vec<Dealt> {
    let taken = Record::take(record, &errand.take, false, START);
    let turn = table.absorb(errand, Ok(&taken), START, START);
    turn.dealt.into_iter().map(|(_, dealt)| dealt).collect()
}

/// What another node finds free.
fn free(record: &mut Option<Record>) -> u64 {
    let look = Take {
        boot: Boot(8),
        seq: 1,
        win: 0,
        totals: Totals::default(),
        need: 0,
        more: 0,
        forgotten: 0,
        ask: 0,
        bundled: false,
        nodes: 1,
        limit: limit(),
    };
    let taken: Taken = Record::take(record, &look, false, START);
    taken.state.probe(&limit(), Cost::PEEK, START).remaining
}

/// A table whose only cell is in use.
fn full() -> LeaseTable<u64> {
    let (table, mut record) = (table(), None);
    let errand = errand(near(&table, &ask(1, true)));
    assert!(run(&table, &mut record, &errand)[0].outcome.admitted());
    table
}

#[test]
fn one_of_a_bundle_is_set_aside_in_a_full_table_and_goes_back_when_the_bundle_is_refused() {
    let (table, mut record) = (full(), None);
    let errand = errand(near(&table, &ask(2, true)));
    assert!(errand.detached.is_none() && errand.take.bundled, "{errand:?}");
    let dealt = run(&table, &mut record, &errand).remove(0);
    assert!(dealt.outcome.admitted() && free(&mut record) < QUOTA);
    // Another limit of the bundle said no.
    table.release(dealt.units.unwrap());
    let back = table.recall(ask(2, true).key, START).unwrap();
    run(&table, &mut record, &back);
    assert_eq!(free(&mut record), QUOTA, "a refused bundle consumes nothing");
}

#[test]
fn without_any_room_one_of_a_bundle_is_refused_and_nothing_is_taken_for_it() {
    let table = full();
    // However small the table is, bundles find room for what is new within a moment.
    for cell in 2..=MORE_PER_SHARD + 1 {
        let (more, mut record) = (errand(near(&table, &ask(cell, true))), None);
        assert!(run(&table, &mut record, &more)[0].outcome.admitted());
    }
    let last = MORE_PER_SHARD + 2;
    let NearLease::Dealt(dealt, None) = near(&table, &ask(last, true)) else {
        panic!("it was asked for")
    };
    assert!(!dealt.outcome.admitted() && dealt.units.is_none() && dealt.degraded, "{dealt:?}");
    // Alone it needs no place to wait in.
    let (alone, mut record) = (errand(near(&table, &ask(last, false))), None);
    assert!(alone.detached.is_some(), "{alone:?}");
    let taken = Record::take(&mut record, &alone.take, false, START);
    let dealt = table.deal_detached(&ask(last, false), Ok(&taken), START);
    assert!(dealt.outcome.admitted());
    assert_eq!(free(&mut record), QUOTA - 1);
}

#[test]
fn an_idle_cell_makes_room_wherever_it_is_among_busy_ones() {
    const PLACES: u64 = 128;
    for idle in 1..=PLACES {
        let table = LeaseTable::new(64 * 128, Boot(7));
        for cell in 1..=PLACES {
            // What is set aside for a bundle stays; what was spent at once is known to the origin.
            let (errand, mut record) = (errand(near(&table, &ask(cell, cell != idle))), None);
            assert!(run(&table, &mut record, &errand)[0].outcome.admitted());
        }
        let more = errand(near(&table, &ask(PLACES + 1, false)));
        assert!(more.detached.is_none(), "the {idle}th of them was not found");
        assert_eq!(table.stats().cells, 128);
    }
}

#[test]
fn a_cell_is_foreseen_by_what_was_heard_of_it() {
    let (table, mut record) = (table(), None);
    let key = ask(1, false).key;
    assert_eq!(table.foresee(key, &limit(), START), None, "nothing was heard");
    let (hour, all) = (3_600_000, Cost::new(QUOTA).unwrap());
    let errand = errand(near(&table, &LeaseAsk { cost: all, ..ask(1, false) }));
    run(&table, &mut record, &errand);
    let left = |ms: u64| {
        let at = Millis(START.0 - START.0 % hour + ms);
        table.foresee(key, &limit(), at).map(|outcome| outcome.remaining)
    };
    assert_eq!(left(hour - 1), Some(0));
    assert!(left(hour + hour / 2).is_some_and(|left| (45..=55).contains(&left)), "half has faded");
    assert_eq!(left(2 * hour), Some(QUOTA));
}
