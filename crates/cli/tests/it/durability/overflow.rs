//! More identifiers than the table holds: cells go to the store and come back, and no counter is ever wrong.

use std::time::Duration;

use crate::time::pause;
use crate::world::{ALGORITHMS, World, ask, side_by_side};

const IDENTIFIERS: usize = 500;

fn name(at: usize) -> String {
    format!("user-{at}")
}

fn cost(at: usize) -> u64 {
    at as u64 % 7 + 1
}

/// Everybody spends once, in an order that is not the order of the last time.
fn spend_all(world: &World, step: usize) {
    side_by_side(4, |thread| {
        let mut client = world.client();
        for at in (0..IDENTIFIERS).filter(|at| at % 4 == thread) {
            let at = at * step % IDENTIFIERS;
            client.spend(&name(at), ALGORITHMS[at % 4], cost(at));
        }
    });
}

fn assert_exact(world: &World, rounds: u64) {
    let mut client = world.client();
    for at in 0..IDENTIFIERS {
        let used = client.used(&name(at), ALGORITHMS[at % 4]);
        assert_eq!(used, cost(at) * rounds, "{} after {rounds} rounds", name(at));
    }
}

#[test]
fn a_full_table_forgets_nobody_over_restarts_and_kills() {
    let mut world = World::with(&[("TOLLKEEPER_MAX_CELLS", "64")]);
    world.client().limit(&ask("api", "made", 1));
    spend_all(&world, 1);
    assert_exact(&world, 1);
    spend_all(&world, 7);
    assert_exact(&world, 2);
    assert!(world.metric("tollkeeper_cells_evicted_total") > 0);
    assert_eq!(world.metric("tollkeeper_cells_lost_total"), 0);
    assert!(world.metric("tollkeeper_cells") <= 64);

    world.restart();
    assert_exact(&world, 2);
    spend_all(&world, 3);
    assert_exact(&world, 3);
    spend_all(&world, 11);
    world.restart();
    assert_exact(&world, 4);

    spend_all(&world, 13);
    pause(Duration::from_millis(150));
    world.crash();
    assert_exact(&world, 5);
    assert_eq!(world.metric("tollkeeper_cells_lost_total"), 0);
}

#[test]
fn a_reset_reaches_cells_that_left_the_table() {
    let mut world = World::with(&[("TOLLKEEPER_MAX_CELLS", "64")]);
    spend_all(&world, 1);
    let reset = serde_json::json!({"namespace": "api"});
    let cells = world.client().data("limits.reset", &reset)["cells"].as_u64().expect("a count");
    assert_eq!(cells, IDENTIFIERS as u64);
    assert_exact(&world, 0);
    world.restart();
    assert_exact(&world, 0);
}
