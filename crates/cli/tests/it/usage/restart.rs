//! Ends and starts: an orderly end flushes, a copied folder counts nothing twice, damage is set aside and counted.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use super::{Keys, usage};
use crate::world::World;

fn spend(world: &World, keys: &Keys, times: usize) {
    let mut client = world.client();
    for number in 0..times {
        let key = &keys.good[number % keys.good.len()];
        client.data("keys.verifyKey", &json!({"key": key}));
    }
}

fn requests(world: &World) -> u64 {
    let rows = usage(&mut world.client(), "day");
    rows.iter().map(|row| row["requests"].as_u64().unwrap()).sum()
}

fn pages(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.data_dir().join("journal")).expect("the journal");
    let paths = entries.map(|entry| entry.expect("a file").path());
    let ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("usage-") && path.extension().is_none()
    };
    paths.filter(ours).collect()
}

#[test]
fn an_orderly_end_leaves_everything_in_the_ledger() {
    let mut world = World::with(&[("TOLLKEEPER_FLUSH_SECONDS", "86400")]);
    let keys = Keys::make(&mut world.client(), 3);
    spend(&world, &keys, 20);
    world.restart();
    assert_eq!(requests(&world), 20);
}

#[test]
fn the_pages_of_a_killed_process_are_read_by_the_next_and_by_a_copy_once() {
    let mut world = World::with(&[("TOLLKEEPER_FLUSH_SECONDS", "86400")]);
    let keys = Keys::make(&mut world.client(), 3);
    spend(&world, &keys, 20);
    world.server.kill9().expect("it can be killed");
    let left = pages(&world);
    assert_eq!(left.len(), 1, "{left:?}");
    let copy = fs::read(&left[0]).expect("the pages");
    world.start_again();
    world.client().data("usage.flush", &json!({}));
    assert_eq!(requests(&world), 20);
    // As a folder that was copied, and whose original went on, would bring them back.
    world.server.kill9().expect("it can be killed");
    fs::write(&left[0], copy).expect("written");
    world.start_again();
    world.client().data("usage.flush", &json!({}));
    assert_eq!(requests(&world), 20);
}

#[test]
fn pages_that_cannot_be_read_are_set_aside_counted_and_cost_nothing_else() {
    let mut world = World::with(&[("TOLLKEEPER_FLUSH_SECONDS", "86400")]);
    let keys = Keys::make(&mut world.client(), 3);
    spend(&world, &keys, 30);
    world.server.kill9().expect("it can be killed");
    let path = pages(&world).remove(0);
    let mut bytes = fs::read(&path).expect("the pages");
    // The name in the first slot behind the header.
    bytes[256 + 100] ^= 0xff;
    fs::write(&path, bytes).expect("written");
    world.start_again();
    world.client().data("usage.flush", &json!({}));
    assert_eq!(world.metric("tollkeeper_usage_set_aside_total"), 1);
    assert_eq!(requests(&world), 20, "two of three keys");
    let aside = path.with_extension("corrupt");
    assert_eq!(fs::read(&aside).expect("set aside").len(), 256);
    world.crash();
    assert_eq!(world.metric("tollkeeper_usage_set_aside_total"), 0, "only once");
}
