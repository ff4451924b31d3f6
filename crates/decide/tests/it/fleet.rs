//! Whole fleets in one thread, from seeds: whatever the network, the clocks and the nodes do, no limit is passed.

#![allow(
    clippy::cast_precision_loss,
    clippy::print_stdout,
    reason = "figures and failing seeds are for people to read"
)]

mod ahead;
mod asleep;
mod called_in;
mod crowded;
mod edges;
mod figures;
mod logs;
mod mixed;
mod rules;
mod set_back;
mod upkeep;

use tollkeeper_core::{Limit, Quota, Width, Window};
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

/// Most of the traffic is one node's; the others have spent some of the limit and hardly ask again.
#[test]
fn a_record_that_vanishes_is_told_at_once_by_nodes_that_do_not_ask() {
    const LIMIT: u64 = 2_000;
    let (quota, width) = (Quota::new(LIMIT).unwrap(), Width::from_millis(20_000).unwrap());
    let fixed = Limit::fixed_window(quota, Window::Aligned(width));
    for limit in [fixed, Limit::sliding_window(quota, width)] {
        let (mut vanished, mut missed, mut over) = (0, 0, 0);
        for seed in 0..40 {
            let mut plan = Plan { seed, ..Plan::calm(8, limit, 400, 38_000) };
            plan.traffic.skew_ppm = 800_000;
            plan.faults.vanishes_ppm = 300;
            let Story { found, plan } = run(plan);
            assert_eq!(found.broken(&plan), None, "{seed}");
            (vanished, missed, over) =
                (vanished + found.vanished, missed + found.missed, over + found.over_units);
        }
        println!("{over} units over by {vanished} records lost, {missed} of them missed");
        assert!(missed > vanished / 2, "{missed} of {vanished}");
        // One lease for each node would be half a limit.
        assert!(over <= vanished * LIMIT / 100, "{over} by {vanished}");
    }
}
