//! What a healthy fleet costs and misses: calls per ask, and units that one node with all the traffic would have admitted.

use tollkeeper_core::{Limit, Quota, Width, Window};
use tollkeeper_testkit::fleet::{Findings, Plan, run};

/// The simulator's pace: above it a case takes seconds.
const RATE_MAX: u64 = 12_000;

/// One point of the grid. The load is in thousandths of the limit.
#[derive(Clone, Copy, Debug)]
struct Case {
    kind: &'static str,
    nodes: usize,
    quota: u64,
    width: u64,
    load: u64,
    bursts: bool,
}

// === impl Case ===

impl Case {
    fn limit(&self) -> Limit {
        let (quota, width) =
            (Quota::new(self.quota).unwrap(), Width::from_millis(self.width).unwrap());
        match self.kind {
            "fixed" => Limit::fixed_window(quota, Window::Aligned(width)),
            "sliding" => Limit::sliding_window(quota, width),
            "bucket" => Limit::token_bucket(quota, width, None),
            _ => Limit::sliding_log(quota, width).unwrap(),
        }
    }

    fn rate(&self) -> u64 {
        (self.quota * self.load / self.width).max(1)
    }

    /// At a load of just the limit every unit that lies idle where it flows back is one missed.
    fn missed_max(&self) -> f64 {
        let flows = ["sliding", "bucket"].contains(&self.kind);
        if flows && self.load == 1_000 { 0.03 } else { 0.02 }
    }

    fn run(&self) -> Findings {
        let mut plan = Plan::calm(self.nodes, self.limit(), self.rate(), 7 * self.width);
        plan.traffic.bursts = self.bursts;
        let found = run(plan).found;
        assert_eq!(found.over_units, 0, "{self:?}: {:?}", found.over);
        found
    }
}

fn calls_per_ask(found: &Findings) -> f64 {
    found.calls as f64 / found.asked as f64
}

fn missed(found: &Findings) -> f64 {
    found.ideal.saturating_sub(found.units) as f64 / found.ideal.max(1) as f64
}

#[test]
fn a_busy_limit_costs_few_calls() {
    for (quota, width, load, most) in [
        (1_000, 1_000, 1_000, 0.2),
        (1_000, 1_000, 2_000, 0.08),
        (10_000, 10_000, 1_000, 0.02),
        (10_000, 10_000, 2_000, 0.01),
    ] {
        for kind in ["fixed", "sliding", "bucket"] {
            let case = Case { kind, nodes: 5, quota, width, load, bursts: false };
            let found = case.run();
            let calls = calls_per_ask(&found);
            println!("{case:?}: {calls:.4} calls, {:.3} % missed", missed(&found) * 100.0);
            assert!(calls <= most, "{case:?}: {calls} calls per ask");
        }
    }
}

#[test]
fn an_identifier_that_is_refused_costs_almost_no_calls() {
    for (kind, most) in [("fixed", 0.001), ("sliding", 0.01), ("bucket", 0.01)] {
        let case =
            Case { kind, nodes: 5, quota: 5_000, width: 10_000, load: 20_000, bursts: false };
        let calls = calls_per_ask(&case.run());
        println!("{case:?}: {calls:.5} calls");
        assert!(calls <= most, "{case:?}: {calls} calls per ask");
    }
}

/// The windows of all cells end together, and yet no tenth of a second has more than twice its part of the calls. Of a wide
/// window it is a twentieth: a tenth of a second has too few calls of it to tell a rise from chance.
#[test]
fn an_edge_of_many_cells_costs_no_more_calls_than_any_other_moment() {
    const CELLS: u64 = 300;
    for width in [1_000, 2_000, 10_000] {
        let limit = Limit::fixed_window(
            Quota::new(1_000).unwrap(),
            Window::Aligned(Width::from_millis(width).unwrap()),
        );
        // Slower cells tell what they spent whenever a second is quiet.
        let rate = (CELLS * 30_000 / width).max(CELLS * 10);
        let mut plan = Plan::calm(2, limit, rate, 9 * width);
        plan.cells = CELLS;
        let found = run(plan).found;
        assert_eq!(found.over_units, 0, "{:?}", found.over);
        // After three windows leases have found their sizes; the run begins a little before an edge.
        let first = found.heard_at[0].next_multiple_of(width) + 3 * width;
        let calls = found.heard_at.iter().filter(|at| (first..first + 5 * width).contains(at));
        let part = (width / 20).max(100);
        let mut buckets = vec![0_u64; usize::try_from(width / part).unwrap()];
        for at in calls {
            buckets[usize::try_from(at % width / part).unwrap()] += 1;
        }
        let mean = buckets.iter().sum::<u64>() as f64 / buckets.len() as f64;
        let worst = *buckets.iter().max().unwrap() as f64 / mean;
        let each = mean * buckets.len() as f64 / (2 * CELLS * 5) as f64;
        println!(
            "{width} ms: {each:.2} calls per cell, node and window, at most {worst:.2} times the mean"
        );
        println!("    {buckets:?}");
        assert!(worst <= 2.0 && each <= 2.0, "{width} ms: {worst:.2}, {each:.2}");
        assert!((buckets[0] as f64) <= mean, "{width} ms: the edge itself");
    }
}

/// `FLEET_GRID=1` runs all of it, which takes minutes.
#[test]
fn a_healthy_fleet_uses_its_limits() {
    let whole = super::number("FLEET_GRID", 0) > 0;
    let mut misses = Vec::new();
    let mut bad = Vec::new();
    for (at, case) in grid().into_iter().enumerate() {
        let affordable = case.rate() * case.width <= 20_000_000;
        if !whole && (at % 7 != 0 || !affordable) {
            continue;
        }
        let found = case.run();
        let missed = missed(&found);
        if missed > 0.01 || whole {
            let calls = calls_per_ask(&found);
            println!(
                "{case:?}: {:.2} % of {} missed, {calls:.4} calls",
                missed * 100.0,
                found.ideal
            );
        }
        misses.push(missed);
        // Of a small limit one request is more than a percent.
        if missed > case.missed_max() && found.ideal - found.units > 2 {
            bad.push((case, missed));
        }
    }
    let mean = misses.iter().sum::<f64>() / misses.len() as f64;
    println!("{} cases, {:.3} % missed on average", misses.len(), mean * 100.0);
    assert!(bad.is_empty(), "too much is missed: {bad:?}");
    assert!(mean <= 0.01, "{mean} on average");
}

/// One request of sixteen costs an eighth of the limit. Near the end of a window what is left of that is in leases of several
/// nodes: it is called in, and few such requests are refused. `FLEET_GRID=1` runs all of it.
#[test]
fn a_large_cost_gets_what_others_hold() {
    let whole = super::number("FLEET_GRID", 0) > 0;
    let mut misses = Vec::new();
    let cases = grid().into_iter().filter(|case| case.nodes > 1 && case.load < 20_000);
    for (at, case) in cases.filter(|case| case.rate() * case.width <= 20_000_000).enumerate() {
        if !whole && at % 7 != 0 {
            continue;
        }
        let large = (case.quota / 8).max(1);
        let rate = (case.rate() * 16 / (15 + large)).max(1);
        let mut plan = Plan::calm(case.nodes, case.limit(), rate, 7 * case.width);
        plan.traffic.bursts = case.bursts;
        plan.traffic.costs = vec![1; 15];
        plan.traffic.costs.push(large);
        let found = run(plan).found;
        assert_eq!(found.over_units, 0, "{case:?}: {:?}", found.over);
        let missed = missed(&found);
        println!("{case:?}: {:.2} % of {} missed", missed * 100.0, found.ideal);
        misses.push(missed);
        let lost = found.ideal.saturating_sub(found.units);
        assert!(lost <= (3 * large).max(5), "{case:?}: {lost} of {} missed", found.ideal);
    }
    let mean = misses.iter().sum::<f64>() / misses.len() as f64;
    println!("{} cases, {:.3} % missed on average", misses.len(), mean * 100.0);
    assert!(mean <= 0.003, "{mean} on average");
}

fn grid() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in ["fixed", "sliding", "bucket", "log"] {
        for nodes in [1, 3, 5, 9] {
            for quota in [10, 100, 1_000, 10_000] {
                for width in [1_000, 10_000] {
                    for load in [900, 1_000, 1_500, 2_000, 20_000] {
                        for bursts in [false, true] {
                            let case = Case { kind, nodes, quota, width, load, bursts };
                            if case.rate() <= RATE_MAX {
                                cases.push(case);
                            }
                        }
                    }
                }
            }
        }
    }
    cases
}
