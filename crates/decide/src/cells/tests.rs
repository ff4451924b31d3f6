//! The table's bounds: how many cells, how much memory, how many on their way out.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tollkeeper_core::{Admission, Quota, Settled, Width, Window};

use super::*;
use crate::CellHasher;

const NOW: Millis = Millis(1_700_000_000_000);

fn ask(identifier: usize, quota: u64, cost: u64) -> CellAsk {
    let limit =
        Limit::sliding_window(Quota::new(quota).unwrap(), Width::from_millis(1000).unwrap());
    let tag = CellHasher::new([3; 16]).namespace("acme", "api");
    let key = tag.cell(&identifier.to_string(), &limit);
    CellAsk { key, namespace: tag.tag, limit, cost: Cost::new(cost).unwrap() }
}

fn spend(cells: &Cells, identifier: usize, quota: u64, cost: u64, now: Millis) -> Outcome {
    cells.spend(&ask(identifier, quota, cost), Vec::new(), now)
}

fn spend_each(cells: &Cells, identifiers: std::ops::Range<usize>, now: Millis) {
    for identifier in identifiers {
        spend(cells, identifier, 10, 1, now);
    }
}

/// What the hash tables of all shards have room for.
fn capacity(cells: &Cells) -> usize {
    cells.shards.iter().map(|shard| lock(shard).capacity()).sum()
}

#[test]
fn the_table_never_holds_more_than_its_bound() {
    for cells_max in [1, 2, 16, 63, 64, 1000, 20_001] {
        let cells = Cells::new(cells_max);
        for identifier in 0..cells_max * 2 {
            spend(&cells, identifier, 10, 1, NOW);
            if identifier % 64 == 0 {
                cells.shelved(&cells.hand_over().iter().map(|cell| cell.key).collect::<Vec<_>>());
            }
        }
        let stats = cells.stats();
        assert!(stats.live <= cells_max, "{stats:?} of {cells_max}");
        assert_eq!(stats.live as u64 + stats.evicted, cells_max as u64 * 2, "{stats:?}");
    }
}

#[test]
fn a_sweep_forgets_idle_cells_and_gives_their_memory_back() {
    let cells = Cells::new(100_000);
    spend_each(&cells, 0..50_000, NOW);
    let full = capacity(&cells);
    // Idle one second after the window that follows the last spending.
    let busy = NOW + 1999;
    spend_each(&cells, 0..100, busy);
    (0..4).for_each(|part| cells.sweep(part, 4, busy));
    assert_eq!(cells.stats().live, 50_000);
    (0..4).for_each(|part| cells.sweep(part, 4, NOW + 2000));
    let stats = cells.stats();
    assert_eq!((stats.live, stats.swept, stats.evicted), (100, 49_900, 0));
    assert!(capacity(&cells) * 20 < full, "{} of {full}", capacity(&cells));
}

#[test]
fn peeks_and_denials_of_strangers_make_no_cells() {
    let cells = Cells::new(1000);
    for identifier in 0..100 {
        assert!(spend(&cells, identifier, 10, 0, NOW).admitted());
        assert!(spend(&cells, identifier, 0, 0, NOW).admitted());
        assert_eq!(spend(&cells, identifier, 0, 1, NOW).admission, Admission::Never);
        assert_eq!(spend(&cells, identifier, 10, 11, NOW).admission, Admission::Never);
        let peeks = [ask(identifier, 10, 0), ask(identifier + 1000, 10, 0)];
        assert!(cells.spend_all(&peeks, Vec::new(), NOW).passed);
        let denied = [ask(identifier, 10, 1), ask(identifier + 1000, 10, 11)];
        assert!(!cells.spend_all(&denied, Vec::new(), NOW).passed);
    }
    assert_eq!(cells.stats(), CellStats::default());
    let mut changes = 0;
    cells.drain_changes(|drained| changes += drained.len());
    assert_eq!(changes, 0);
}

#[test]
fn a_counter_that_is_given_up_is_counted() {
    let cells = Cells::new(64);
    assert_eq!(cells.shards.len(), 1);
    let bound = cells.parked_per_shard;
    spend_each(&cells, 0..64 + bound, NOW);
    assert_eq!(cells.stats().lost, 0);
    spend_each(&cells, 64 + bound..74 + bound, NOW);
    let stats = cells.stats();
    assert_eq!((stats.lost, stats.evicted, stats.live), (10, bound as u64 + 10, 64));
    assert_eq!(lock(&cells.shards[0]).parking.unsettled_len(), bound);
}

#[test]
fn an_ask_for_a_new_cell_is_told_to_wait_while_the_shelf_is_behind() {
    let cells = Cells::new(64);
    let strangers = || std::iter::once(ask(usize::MAX, 10, 1).key);
    spend_each(&cells, 0..64, NOW);
    assert!(!cells.far(strangers()).crowded);
    let most = cells.parked_per_shard * 4 / 5;
    spend_each(&cells, 64..64 + most, NOW);
    assert!(cells.far(strangers()).crowded);
    let keys: Vec<CellKey> = cells.hand_over().iter().map(|cell| cell.key).collect();
    cells.shelved(&keys);
    assert!(!cells.far(strangers()).crowded);
}

#[test]
fn the_emptiest_of_the_cells_at_hand_is_evicted() {
    let cells = Cells::new(16);
    for identifier in 0..16 {
        spend(&cells, identifier, 100, 1 + identifier as u64, NOW);
    }
    spend(&cells, 99, 100, 50, NOW);
    let evicted: Vec<CellKey> = cells.hand_over().iter().map(|cell| cell.key).collect();
    assert_eq!(evicted, [ask(0, 100, 1).key]);
}

#[test]
fn changes_that_nobody_asks_for_are_bounded_and_their_loss_is_told() {
    let cells = Cells::new(64);
    spend_each(&cells, 0..20_000, NOW);
    let mut changes = 0;
    assert!(!cells.drain_changes(|drained| changes += drained.len()));
    assert!(changes <= 3 * 4096, "{changes}");
    // From here on nothing is missing again.
    spend(&cells, 20_000, 10, 1, NOW);
    spend(&cells, 19_999, 10, 1, NOW);
    let mut told = Vec::new();
    assert!(cells.drain_changes(|drained| told.append(drained)));
    let after =
        |key| told.iter().any(|change| matches!(change, Change::Cell(cell) if cell.key == key));
    assert!(after(ask(20_000, 10, 1).key) && after(ask(19_999, 10, 1).key));
}

#[test]
fn a_cell_of_which_the_shelf_has_an_older_state_stays_in_the_journal() {
    let cells = Cells::new(1);
    spend(&cells, 1, 10, 1, NOW);
    spend(&cells, 2, 10, 1, NOW);
    let handed: Vec<CellKey> = cells.hand_over().iter().map(|cell| cell.key).collect();
    assert_eq!(handed, [ask(1, 10, 1).key]);
    // Taken back, spent from and evicted again before the shelf answers.
    spend(&cells, 1, 10, 1, NOW);
    spend(&cells, 2, 10, 1, NOW);
    cells.shelved(&handed);
    let again = Cells::new(1);
    cells.drain_changes(|changes| changes.drain(..).for_each(|change| again.replay(change, NOW)));
    assert_eq!(spend(&again, 1, 10, 0, NOW).remaining, 8);
}

#[test]
fn what_is_on_the_shelf_is_not_in_a_checkpoint() {
    let cells = Cells::new(1);
    spend(&cells, 1, 10, 1, NOW);
    spend(&cells, 2, 10, 1, NOW);
    let handed: Vec<CellKey> = cells.hand_over().iter().map(|cell| cell.key).collect();
    assert_eq!(cells.snapshot(0, NOW).unwrap().len(), 2);
    cells.shelved(&handed);
    assert_eq!(cells.snapshot(0, NOW).unwrap().len(), 1);
    assert_eq!(cells.snapshot(1, NOW), None);
}

#[test]
fn a_replay_into_a_smaller_table_gives_nothing_up() {
    let cells = Cells::new(2000);
    spend_each(&cells, 0..2000, NOW);
    let small = Cells::new(16);
    cells.drain_changes(|changes| changes.drain(..).for_each(|change| small.replay(change, NOW)));
    let stats = small.stats();
    assert_eq!((stats.live, stats.lost), (16, 0));
    assert_eq!(small.hand_over().len(), 2000 - 16);
}

#[test]
fn a_reset_between_two_parts_of_a_drain_is_told_before_the_cell_that_was_made_again() {
    let cells = Cells::with_shards(1, 2000);
    spend_each(&cells, 0..2000, NOW);
    let mut told = Vec::new();
    let mut from = lock(&cells.shards[0]).drain(0, &mut told);
    assert!(from.is_some() && !told.is_empty());
    cells.reset(Which::Namespace(ask(0, 10, 1).namespace));
    spend_each(&cells, 0..2000, NOW);
    while let Some(block) = from {
        from = lock(&cells.shards[0]).drain(block, &mut told);
    }
    assert!(cells.drain_changes(|changes| told.append(changes)));
    let again = Cells::with_shards(1, 2000);
    for change in told {
        again.replay(change, NOW);
    }
    assert_eq!(again.stats().live, 2000);
    assert!((0..2000).all(|identifier| spend(&again, identifier, 10, 0, NOW).remaining == 9));
}

#[test]
fn one_ask_comes_to_the_same_with_a_condition_that_holds_and_without_one() {
    let (quota, width) = (Quota::new(7).unwrap(), Width::from_millis(1000).unwrap());
    let limits = [
        Limit::sliding_window(quota, width),
        Limit::fixed_window(quota, Window::Aligned(width)),
        Limit::token_bucket(quota, width, None),
        Limit::sliding_log(quota, width).unwrap(),
    ];
    for limit in limits {
        let (with, without) = (Cells::new(100), Cells::new(100));
        let mut seen = [0, 0];
        for step in 0..2_000 {
            // Costs of 0 to 8 of 7, at uneven moments, of three identifiers.
            let cost = step * 5 % 9;
            let one = CellAsk { limit, ..ask(usize::try_from(step % 3).unwrap(), 7, cost) };
            let now = NOW + step * step % 97 + step * 83;
            let settled: Settled = with.spend_all_if(&[one], Vec::new(), now, || true);
            assert_eq!(without.spend_all(&[one], Vec::new(), now), settled, "{limit:?} {step}");
            seen[usize::from(settled.passed)] += 1;
        }
        assert!(seen.iter().all(|times| *times > 100), "{limit:?} {seen:?}");
    }
}

/// A bundle whose cells are all in the table takes a way of its own; one that asks for a cell twice never does, and an ask
/// for nothing changes nothing.
#[test]
fn a_bundle_comes_to_the_same_whether_or_not_its_cells_are_settled_where_they_are() {
    let (quota, width) = (Quota::new(7).unwrap(), Width::from_millis(1000).unwrap());
    let limits = [
        Limit::sliding_window(quota, width),
        Limit::fixed_window(quota, Window::Aligned(width)),
        Limit::token_bucket(quota, width, Quota::new(9)),
        Limit::sliding_log(quota, width).unwrap(),
    ];
    let (here, copied) = (Cells::new(1000), Cells::new(1000));
    let mut seen = [0, 0];
    for step in 0..3_000_u64 {
        let now = NOW + step * 37;
        let one = |at: u64| {
            // Each cell has its own algorithm, so that a bundle mixes them.
            let of = usize::try_from((step + at * at) % 11).unwrap();
            CellAsk { limit: limits[of % 4], ..ask(of, 7, (step * 5 + at) % 4) }
        };
        let distinct = [one(0), one(1), one(2), one(3)];
        let looks = CellAsk { cost: Cost::PEEK, ..distinct[3] };
        let again = [distinct[0], distinct[1], distinct[2], distinct[3], looks];
        let settled = here.spend_all_if(&distinct, Vec::new(), now, || step % 7 > 0);
        let mut twice = copied.spend_all_if(&again, Vec::new(), now, || step % 7 > 0);
        twice.outcomes.pop();
        assert_eq!(settled, twice, "{step}");
        seen[usize::from(settled.passed)] += 1;
        assert_eq!(left(&here), left(&copied), "{step}: what the journal is told is the same");
    }
    assert!(seen.iter().all(|times| *times > 100), "{seen:?}");
}

/// What the journal is told of changes since it last asked.
fn left(cells: &Cells) -> Vec<String> {
    let mut told = Vec::new();
    cells.drain_changes(|changes| {
        told.extend(changes.iter().map(|change| format!("{change:?}")));
    });
    told.sort_unstable();
    told
}

#[test]
fn many_cells_of_one_shard_are_spent_from_together() {
    let cells = Cells::with_shards(2, 500);
    let all: Vec<CellAsk> = (0..40).map(|identifier| ask(identifier, 10, 1)).collect();
    for left in (0..10).rev() {
        let settled = cells.spend_all(&all, Vec::new(), NOW);
        assert!(settled.passed && settled.outcomes.iter().all(|one| one.remaining == left));
    }
    let settled = cells.spend_all(&all, Vec::new(), NOW);
    assert!(!settled.passed && settled.outcomes.iter().all(|one| one.remaining == 0));
}
