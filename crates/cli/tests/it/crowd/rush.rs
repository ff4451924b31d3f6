//! Everybody at the same moment: exactly as many pass as the limit says.

use std::sync::Barrier;

use serde_json::{Value, json};

use crate::world::{ALGORITHMS, World, ask, side_by_side};

#[test]
fn a_hundred_at_once_on_one_identifier_admit_exactly_the_limit() {
    let world = World::new();
    let start = Barrier::new(100);
    let admitted = side_by_side(100, |_| {
        let mut client = world.client();
        ALGORITHMS.map(|algorithm| {
            let mut body = ask("api", algorithm, 37);
            body["algorithm"] = json!(algorithm);
            start.wait();
            u32::from(client.limit(&body)["success"] == true)
        })
    });
    for (at, algorithm) in ALGORITHMS.iter().enumerate() {
        let total: u32 = admitted.iter().map(|one| one[at]).sum();
        assert_eq!(total, 37, "{algorithm}");
    }
}

#[test]
fn first_asks_for_one_new_namespace_at_once_make_one_namespace() {
    let world = World::new();
    let start = Barrier::new(50);
    let admitted = side_by_side(50, |_| {
        let mut client = world.client();
        start.wait();
        client.limit(&ask("brand-new", "ann", 20))["success"] == true
    });
    assert_eq!(admitted.iter().filter(|admitted| **admitted).count(), 20);
}

/// Three of eight limits, in an order of its own for every thread and turn.
fn bundle(thread: usize, turn: usize) -> Vec<Value> {
    let first = (thread * 5 + turn * 3) % 8;
    let step = [1, 3, 5, 7][(thread + turn) % 4];
    (0..3).map(|at| ask("api", &format!("shared-{}", (first + at * step) % 8), 150)).collect()
}

#[test]
fn bundles_of_64_threads_in_any_order_neither_lock_up_nor_overspend() {
    let world = World::new();
    let passed: Vec<Vec<String>> = side_by_side(64, |thread| {
        let mut client = world.client();
        let mut spent = Vec::new();
        for turn in 0..10 {
            let entries = bundle(thread, turn);
            let data = client.data("ratelimit.multiLimit", &json!(entries));
            let lines = data["limits"].as_array().expect("lines");
            let all = lines.iter().all(|line| line["passed"] == true);
            assert_eq!(data["passed"], all, "{data}");
            if all {
                let names = entries
                    .iter()
                    .map(|entry| entry["identifier"].as_str().expect("a name").to_owned());
                spent.extend(names);
            }
        }
        spent
    });
    let spent: Vec<&String> = passed.iter().flatten().collect();
    let mut client = world.client();
    let mut full = 0;
    for at in 0..8 {
        let name = format!("shared-{at}");
        let expected = spent.iter().filter(|spent| ***spent == name).count();
        let used = client.data("limits.peek", &ask("api", &name, 150))["used"].as_u64();
        assert_eq!(used, Some(expected as u64), "{name}");
        assert!(expected <= 150, "{name}");
        full += usize::from(expected == 150);
    }
    assert!(full > 0, "some limit was reached, so that bundles were denied");
}
