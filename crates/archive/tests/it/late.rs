//! Rows that come when their month was thought to be over.

use tokio::runtime::Handle;
use tokio::task::block_in_place;
use tollkeeper_archive::{ArchiveError, Step};

use crate::world::{World, month, requests, rows, sorted};

on_both! {
    rows_that_come_after_a_month_was_archived_join_it,
    a_row_that_comes_while_its_month_is_archived_is_not_lost,
    an_object_that_says_otherwise_than_the_database_stops_the_run,
}

async fn rows_that_come_after_a_month_was_archived_join_it(world: World) {
    let may = month("202605");
    let all = rows(may, 9_000);
    let (early, late) = all.split_at(8_500);
    world.put(early).await;
    world.archive().await;
    // Some of them are there already, as after a restored backup.
    world.put(&all[8_400..]).await;
    let done = world.archive().await;
    assert_eq!((done[0].rows, done[0].seal.rows), (600, 9_000));
    assert_eq!(world.stored(may).await, []);
    let archived = world.archived(may).await;
    assert_eq!(archived.len(), 9_000);
    assert!(requests(&archived).contains(&late[0].request_id));
}

async fn a_row_that_comes_while_its_month_is_archived_is_not_lost(world: World) {
    let may = month("202605");
    let mut all = sorted(rows(may, 9_000));
    // The first of all in order, which the run has long passed.
    let late = all.remove(0);
    world.put(&all).await;
    for step in [Step::Writing, Step::Checking, Step::Naming, Step::Dropping] {
        let mut waiting = Some(late.clone());
        waiting.as_mut().unwrap().request_id.push_str(&step.to_string());
        let mut tell = |progress: tollkeeper_archive::Progress| {
            let begun = progress.step == step && (progress.rows > 0 || step > Step::Writing);
            if let Some(row) = waiting.take_if(|_| begun) {
                block_in_place(|| Handle::current().block_on(world.store.put_past(&[row])))
                    .unwrap();
            }
        };
        world.try_archive(&mut tell).await.unwrap();
        assert!(waiting.is_none());
        // Whatever was left behind is taken by the next run.
        world.archive().await;
        assert_eq!(world.stored(may).await, []);
        let archived = requests(&world.archived(may).await);
        assert!(archived.contains(&format!("{}{step}", late.request_id)));
        assert!(all.iter().all(|row| archived.contains(&row.request_id)), "{step}");
        // As after a restore: the month is back, with its partition.
        world.put(&all[..10]).await;
    }
}

async fn an_object_that_says_otherwise_than_the_database_stops_the_run(world: World) {
    let may = month("202605");
    let mut rows = rows(may, 100);
    world.put(&rows).await;
    world.archive().await;
    "VALID".clone_into(&mut rows[50].code);
    world.put(&rows[40..60]).await;
    let stopped = world.try_archive(&mut |_| {}).await.unwrap_err();
    assert!(matches!(stopped, ArchiveError::Conflict { .. }), "{stopped}");
    assert_eq!(world.stored(may).await.len(), 20);
    assert_eq!(world.archived(may).await.len(), 100);
}
