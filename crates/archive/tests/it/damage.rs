//! Objects that do not give back what was written.

use std::fs;
use std::path::Path;

use tollkeeper_archive::{ArchiveError, Step};

use crate::world::{World, month, rows};

on_both! {
    an_object_that_was_damaged_on_its_way_is_found_and_nothing_is_dropped,
    an_archive_that_was_damaged_since_is_not_built_upon,
    a_run_over_a_damaged_leftover_succeeds,
}

async fn an_object_that_was_damaged_on_its_way_is_found_and_nothing_is_dropped(world: World) {
    let may = month("202605");
    world.put(&rows(may, 500)).await;
    for (step, object) in
        [(Step::Checking, world.unchecked(may)), (Step::Naming, world.object(may))]
    {
        for damage in [flip_in_the_middle, cut_the_end, empty] {
            let mut tell = |progress: tollkeeper_archive::Progress| {
                if progress.step == step && progress.rows == 0 {
                    damage(&object);
                }
            };
            let found = world.try_archive(&mut tell).await.unwrap_err();
            assert!(matches!(found, ArchiveError::Damaged { .. }), "{step}: {found:?}");
            assert_eq!(world.stored(may).await.len(), 500, "{step}");
            // What somebody who was told so does.
            let _ = fs::remove_file(world.object(may));
        }
    }
    assert_eq!(world.archive().await[0].rows, 500);
}

async fn an_archive_that_was_damaged_since_is_not_built_upon(world: World) {
    let may = month("202605");
    let all = rows(may, 500);
    world.put(&all[..400]).await;
    world.archive().await;
    flip_in_the_middle(&world.object(may));
    world.put(&all[400..]).await;
    let found = world.try_archive(&mut |_| {}).await.unwrap_err();
    assert!(matches!(found, ArchiveError::Damaged { .. }), "{found:?}");
    assert_eq!(world.stored(may).await.len(), 100);
}

async fn a_run_over_a_damaged_leftover_succeeds(world: World) {
    let may = month("202605");
    world.put(&rows(may, 500)).await;
    fs::create_dir_all(world.unchecked(may).parent().unwrap()).unwrap();
    fs::write(world.unchecked(may), "half an object").unwrap();
    assert_eq!(world.archive().await[0].rows, 500);
    assert!(!world.unchecked(may).exists());
}

fn flip_in_the_middle(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    // Within the first column, which is the moments of all rows.
    bytes[300] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn cut_the_end(path: &Path) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() - 1]).unwrap();
}

fn empty(path: &Path) {
    fs::write(path, "").unwrap();
}
