//! Thousands of rules: one request, in force at once, while everybody else is served.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use super::{Home, in_force, rules};
use crate::time::now;
use crate::world::ask;

/// As many as a debug build applies in a moment; a tenant may have five times as many, which the benchmarks apply.
const COUNT: usize = 2_000;

on_both! {
    thousands_of_rules_are_applied_changed_and_brought_back_while_others_are_served,
}

fn thousands_of_rules_are_applied_changed_and_brought_back_while_others_are_served(home: &Home) {
    let (done, set) = (AtomicBool::new(false), rules(COUNT));
    std::thread::scope(|scope| {
        let traffic = scope.spawn(|| {
            let (mut client, mut slowest, mut asked) = (home.client(), Duration::ZERO, 0_u64);
            while !done.load(Ordering::Relaxed) {
                let begun = now();
                assert_eq!(client.limit(&ask("api", "ann", 1_000_000_000))["success"], true);
                slowest = slowest.max(begun.elapsed());
                asked += 1;
            }
            (asked, slowest)
        });
        let mut client = home.client();
        let mut changed = set.clone();
        for rule in &mut changed {
            rule["limits"][0]["limit"] = json!(6);
        }
        let mut timed = |what: &str, method: &str, body: &serde_json::Value| {
            let begun = now();
            let reply = client.data(method, body);
            eprintln!("{what}: {:?}", begun.elapsed());
            reply
        };
        let made = timed("apply of 10000", "rules.apply", &json!({"rules": set}));
        assert_eq!((&made["created"], in_force(home)), (&json!(COUNT), COUNT as u64));
        let other = timed("update of 10000", "rules.apply", &json!({"rules": changed}));
        assert_eq!(other["updated"], COUNT);
        let detailed =
            other["diff"].as_array().unwrap().iter().filter(|one| one["fields"].is_array());
        assert_eq!(detailed.count(), 1000, "beyond so many only names are told");
        let back = timed("rollback of 10000", "rules.rollback", &json!({"version": 1}));
        assert_eq!((&back["version"], &back["updated"]), (&json!(3), &json!(COUNT)));
        done.store(true, Ordering::Relaxed);
        let (asked, slowest) = traffic.join().expect("everybody was served");
        eprintln!("{asked} limits beside it, the slowest in {slowest:?}");
        assert!(asked > 10);
    });
}
