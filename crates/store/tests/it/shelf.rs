//! Parked cells: they come back bit for bit, the newest state wins, and the idle ones go.

use std::collections::HashSet;

use tollkeeper_core::{FixedWindow, Millis, SlidingLog, SlidingWindow, State, TokenBucket};
use tollkeeper_decide::{CellKey, ParkedCell, Shelf, Which};
use tollkeeper_store::Store;

use crate::Fresh;

on_both! {
    the_newest_state_of_a_cell_wins_between_puts_and_within_one,
    only_what_is_asked_for_and_there_is_found,
    more_cells_than_one_statement_can_bind_are_kept_and_found,
    a_reset_removes_the_cells_of_its_identifier_or_namespace_and_no_others,
    a_sweep_forgets_a_cell_from_its_idle_second_on_and_not_a_millisecond_earlier,
    a_sweep_of_more_than_one_round_leaves_nothing_idle,
}

const HIGH: u64 = 1 << 63;

fn cell(subject: u64, exact: u64, used: u64) -> ParkedCell {
    ParkedCell {
        key: CellKey { subject, exact },
        namespace: HIGH + 7,
        idle_at_s: 2_000_000_000,
        fill: 40_000,
        state: State::Fixed(FixedWindow { start: Millis(1000), used }),
    }
}

fn keys(cells: &[ParkedCell]) -> Vec<CellKey> {
    cells.iter().map(|cell| cell.key).collect()
}

fn sorted(mut cells: Vec<ParkedCell>) -> Vec<ParkedCell> {
    cells.sort_by_key(|cell| cell.key);
    cells
}

#[tokio::test]
async fn every_kind_of_state_comes_back_bit_for_bit_after_a_restart() {
    let fresh = Fresh::new().await;
    let log = SlidingLog::from_parts(
        Millis(u64::MAX),
        (0..10_000).map(|i| (Millis(1_700_000_000_000 + i), i)),
    )
    .unwrap();
    let states = [
        State::Fixed(FixedWindow { start: Millis(u64::MAX), used: u64::MAX }),
        State::Sliding(SlidingWindow { start: Millis(60_000), used: 3, previous: HIGH }),
        State::Bucket(TokenBucket { missing: 5, fraction: 7, at: Millis(9) }),
        State::Log(Box::new(log)),
        State::Log(Box::default()),
    ];
    let parked: Vec<_> = (0_u64..)
        .zip(states)
        .map(|(i, state)| ParkedCell {
            idle_at_s: u32::MAX,
            state,
            ..cell(u64::MAX - i, HIGH + i, 0)
        })
        .collect();
    fresh.store.put(parked.clone()).await.unwrap();
    fresh.store.close().await;
    let store = Store::open(&fresh.path()).await.unwrap();
    assert_eq!(sorted(store.find(keys(&parked)).await.unwrap()), sorted(parked));
}

async fn the_newest_state_of_a_cell_wins_between_puts_and_within_one(fresh: Fresh) {
    fresh.store.put(vec![cell(1, 1, 1)]).await.unwrap();
    fresh.store.put(vec![cell(1, 1, 2), cell(1, 1, 3)]).await.unwrap();
    assert_eq!(
        fresh.store.find(vec![CellKey { subject: 1, exact: 1 }]).await.unwrap(),
        [cell(1, 1, 3)]
    );
}

async fn only_what_is_asked_for_and_there_is_found(fresh: Fresh) {
    fresh.store.put(vec![cell(1, 1, 1), cell(1, 2, 2), cell(2, 1, 3)]).await.unwrap();
    let asked = vec![CellKey { subject: 1, exact: 2 }, CellKey { subject: 2, exact: 2 }];
    assert_eq!(fresh.store.find(asked).await.unwrap(), [cell(1, 2, 2)]);
    assert_eq!(fresh.store.find(Vec::new()).await.unwrap(), []);
    fresh.store.put(Vec::new()).await.unwrap();
}

async fn more_cells_than_one_statement_can_bind_are_kept_and_found(fresh: Fresh) {
    let many: Vec<_> = (0..40_001).map(|i| cell(i, HIGH | i, i)).collect();
    fresh.store.put(many.clone()).await.unwrap();
    assert_eq!(sorted(fresh.store.find(keys(&many)).await.unwrap()), many);
    let listed: HashSet<_> = fresh.store.sweep(Millis(0)).await.unwrap().into_iter().collect();
    assert_eq!(listed, keys(&many).into_iter().collect());
}

async fn a_reset_removes_the_cells_of_its_identifier_or_namespace_and_no_others(fresh: Fresh) {
    let elsewhere = ParkedCell { namespace: 7, ..cell(HIGH + 3, 1, 1) };
    let here = vec![cell(HIGH + 1, 1, 1), cell(HIGH + 1, 2, 1), cell(HIGH + 2, 1, 1)];
    fresh.store.put(here).await.unwrap();
    fresh.store.put(vec![elsewhere.clone()]).await.unwrap();
    assert_eq!(fresh.store.remove(Which::Subject(HIGH + 1)).await.unwrap().len(), 2);
    assert_eq!(fresh.store.remove(Which::Subject(HIGH + 1)).await.unwrap().len(), 0);
    assert_eq!(fresh.store.remove(Which::Namespace(HIGH + 7)).await.unwrap().len(), 1);
    assert_eq!(fresh.store.sweep(Millis(0)).await.unwrap(), [elsewhere.key]);
}

async fn a_sweep_forgets_a_cell_from_its_idle_second_on_and_not_a_millisecond_earlier(
    fresh: Fresh,
) {
    let parked =
        [100, 101].map(|idle_at_s| ParkedCell { idle_at_s, ..cell(idle_at_s.into(), 1, 1) });
    fresh.store.put(parked.to_vec()).await.unwrap();
    assert_eq!(fresh.store.sweep(Millis(99_999)).await.unwrap().len(), 2);
    assert_eq!(fresh.store.sweep(Millis(100_000)).await.unwrap(), [parked[1].key]);
    assert_eq!(fresh.store.sweep(Millis(101_000)).await.unwrap(), []);
    assert_eq!(fresh.store.find(keys(&parked)).await.unwrap(), []);
}

async fn a_sweep_of_more_than_one_round_leaves_nothing_idle(fresh: Fresh) {
    let idle = (0..20_500).map(|i| ParkedCell { idle_at_s: 5, ..cell(i, i, i) });
    let live = cell(HIGH, HIGH, 1);
    fresh.store.put(idle.chain([live.clone()]).collect()).await.unwrap();
    assert_eq!(fresh.store.sweep(Millis(5000)).await.unwrap(), [live.key]);
}

#[tokio::test]
async fn a_cell_that_something_else_changed_is_an_error_and_not_a_fresh_cell() {
    let fresh = Fresh::new().await;
    fresh.store.put(vec![cell(1, 1, 1)]).await.unwrap();
    sqlx::query("UPDATE parked_cells SET state = x'ff'")
        .execute(&mut fresh.beside().await)
        .await
        .unwrap();
    let error = fresh.store.find(vec![CellKey { subject: 1, exact: 1 }]).await.unwrap_err();
    assert!(error.to_string().contains("cannot be read"), "{error}");
}
