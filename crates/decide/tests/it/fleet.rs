//! Whole fleets in one thread, from seeds: whatever the network, the clocks and the nodes do, no limit is passed.

#![allow(
    clippy::cast_precision_loss,
    clippy::print_stdout,
    reason = "figures and failing seeds are for people to read"
)]

mod figures;
mod rules;

use tollkeeper_core::{Limit, Quota, Width};
use tollkeeper_testkit::fleet::{Plan, Story, run};

/// As many as a test run has time for; `FLEET_SEEDS` and `FLEET_FROM` say others.
fn seeds() -> std::ops::Range<u64> {
    let from = number("FLEET_FROM", 0);
    from..from + number("FLEET_SEEDS", 1_000)
}

fn number(name: &str, usual: u64) -> u64 {
    #[allow(clippy::disallowed_methods, reason = "a number for whoever wants more than the usual")]
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

#[test]
fn no_schedule_of_faults_passes_a_limit_or_leaves_it_unused() {
    let threads = [0, 1].map(|half| {
        std::thread::spawn(move || {
            let mine = seeds().filter(|seed| seed % 2 == half);
            mine.filter_map(|seed| {
                let Story { found, plan } = run(Plan::drawn(seed));
                found.broken(&plan).map(|how| (seed, how, plan))
            })
            .collect::<Vec<_>>()
        })
    });
    let broken: Vec<_> = threads.into_iter().flat_map(|half| half.join().unwrap()).collect();
    for (seed, how, plan) in broken.iter().take(20) {
        println!("FLEET_FROM={seed} FLEET_SEEDS=1: {how}\n    by {plan:?}");
    }
    let all: Vec<_> = broken.iter().map(|(seed, ..)| seed).collect();
    assert!(all.is_empty(), "{} seeds broke their promise: {all:?}", all.len());
}

#[test]
fn a_thousand_nodes_keep_one_limit() {
    let limit =
        Limit::sliding_window(Quota::new(10_000).unwrap(), Width::from_millis(1_000).unwrap());
    let mut plan = Plan::calm(1_000, limit, 12_000, 3_000);
    plan.faults.lost_ppm = 20_000;
    let Story { found, .. } = run(plan);
    assert_eq!(found.over_units, 0, "{:?}", found.over);
    assert!(found.units * 2 > found.ideal, "{} of {}", found.units, found.ideal);
}
