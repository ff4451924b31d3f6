//! A run that ends in the middle, at every point at which it tells how far it is.

use std::panic::resume_unwind;
use std::sync::Arc;

use crate::world::{World, month, requests, rows};

on_both! {
    a_run_that_dies_at_any_step_loses_nothing_and_is_made_good_by_the_next,
}

async fn a_run_that_dies_at_any_step_loses_nothing_and_is_made_good_by_the_next(world: World) {
    let may = month("202605");
    let all = rows(may, 9_000);
    world.put(&all).await;
    let world = Arc::new(world);
    let mut survived = 0;
    for point in 0.. {
        let running = Arc::clone(&world);
        let run = tokio::spawn(async move {
            let mut told = 0;
            let mut tell = |_| {
                if told == point {
                    resume_unwind(Box::new("the process dies here"));
                }
                told += 1;
            };
            running.try_archive(&mut tell).await.unwrap()
        });
        let ended = run.await;
        let stored = world.stored(may).await;
        let mut safe = requests(&world.archived(may).await);
        safe.extend(stored.into_iter().map(|row| row.request_id));
        assert_eq!(safe.len(), all.len(), "after dying at point {point}");
        match ended {
            Ok(_) => break,
            Err(_) => survived += 1,
        }
    }
    assert!(survived > 8, "each step was interrupted: {survived}");
    assert_eq!(world.stored(may).await, []);
    assert_eq!(world.archived(may).await.len(), all.len());
}
