//! `kill -9` in rounds, on a node alone: nothing lost, nothing doubled.

use std::time::Duration;

use super::{Books, Keys, under_load};
use crate::time::pause;
use crate::world::World;

fn rounds(rounds: u64, round_ms: u64) {
    let mut world = World::with(&[("TOLLKEEPER_FLUSH_SECONDS", "1")]);
    let keys = Keys::make(&mut world.client(), 20);
    let books = Books::default();
    for round in 0..rounds {
        let url = (world.server.url().to_owned(), world.server.root_key().to_owned());
        under_load(
            &books,
            &keys,
            || crate::world::Client::new(&url.0, &url.1),
            || {
                // Not in step with the flushes: some die in the middle of one.
                pause(Duration::from_millis(round_ms + 131 * (round % 7)));
                world.server.kill9().expect("it can be killed");
            },
        );
        world.start_again();
    }
    let flushed = world.client().data("usage.flush", &serde_json::json!({}));
    assert!(flushed["buckets"].is_u64() && flushed["records"].is_u64(), "{flushed}");
    books.reconcile(&format!("alone, {rounds} kills"), &mut world.client());
    // Everything was told again by every start; once more changes nothing.
    world.restart();
    world.client().data("usage.flush", &serde_json::json!({}));
    books.reconcile("alone, after a restart", &mut world.client());
}

#[test]
fn killing_a_node_again_and_again_neither_loses_nor_doubles_usage() {
    rounds(6, 700);
}

#[test]
#[ignore = "takes a minute; make soak"]
fn killing_a_node_for_a_minute_neither_loses_nor_doubles_usage() {
    rounds(30, 1_600);
}
