//! What a run is about: limits, nodes, traffic and everything that goes wrong.

use tollkeeper_core::Limit;
use tollkeeper_decide::{Consistency, OnOutage};

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub nodes: usize,
    pub cells: u64,
    /// More than one: the cell is asked for under differing limits.
    pub limits: Vec<Limit>,
    pub consistency: Consistency,
    pub on_outage: OnOutage,
    pub traffic: Traffic,
    pub faults: Faults,
    pub duration_ms: u64,
    /// After that faults end; so much later a window is measured. Zero: the run is over at once.
    pub recovery_ms: u64,
    /// Cells that each node has room for.
    pub table: usize,
}

#[derive(Clone, Debug)]
pub struct Traffic {
    /// Requests per second, over all nodes.
    pub rate: u64,
    pub costs: Vec<u64>,
    /// So many of a million go to the first node, the rest to all.
    pub skew_ppm: u64,
    /// All of a second's requests come within its first 50 ms.
    pub bursts: bool,
    /// So many of a million ask for two cells at once.
    pub bundles_ppm: u64,
    /// So many of a million only look.
    pub peeks_ppm: u64,
}

/// Where it says ppm: so often in a million requests.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Of messages.
    pub lost_ppm: u64,
    pub repeated_ppm: u64,
    /// Legs that take much longer.
    pub slow_ppm: u64,
    /// The origin stands still for 50 ms.
    pub stalls_ppm: u64,
    pub kills_ppm: u64,
    /// The dead come back with what their journal kept.
    pub journal: bool,
    /// Nodes that freeze for up to a second.
    pub pauses_ppm: u64,
    /// The origin loses everything.
    pub wipes_ppm: u64,
    /// It loses all records of one cell, and nothing shows it.
    pub vanishes_ppm: u64,
    /// The origin goes back to an older copy of itself.
    pub failovers_ppm: u64,
    /// Its clock is another one then, by up to so much.
    pub step_ms: u64,
    /// A node is cut from the origin, and notices by its breaker.
    pub cuts_ppm: u64,
    pub resets_ppm: u64,
    /// Clocks of nodes differ by up to so much, and run up to 500 ppm fast or slow.
    pub skew_ms: u64,
}

/// What a plan's run must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Nothing passes a limit.
    Nothing,
    /// Above it is at most what nodes admitted by their policy, and `share` admits no more than a share.
    Policy,
    /// (L/α + N·c) per window, and one cap for each that died in it.
    Fast,
    /// One limit for each step of the origin's clock.
    Steps,
    /// Half a limit for each record that vanished: one lease for each node.
    Leases,
}

// === impl Plan ===

impl Plan {
    /// Nothing goes wrong: what is measured is how well the fleet uses its limit.
    pub fn calm(nodes: usize, limit: Limit, rate: u64, duration_ms: u64) -> Self {
        Self {
            seed: 1,
            nodes,
            cells: 1,
            limits: vec![limit],
            consistency: Consistency::Exact,
            on_outage: OnOutage::Share,
            traffic: Traffic {
                rate,
                costs: vec![1],
                skew_ppm: 0,
                bursts: false,
                bundles_ppm: 0,
                peeks_ppm: 0,
            },
            faults: Faults::default(),
            duration_ms,
            recovery_ms: 0,
            table: 1_000,
        }
    }

    pub fn promise(&self) -> Promise {
        let faults = &self.faults;
        let alone = faults.wipes_ppm + faults.failovers_ppm + faults.cuts_ppm > 0;
        if self.consistency == Consistency::Fast {
            Promise::Fast
        } else if faults.vanishes_ppm > 0 {
            Promise::Leases
        } else if faults.step_ms > 0 {
            Promise::Steps
        } else if alone && self.on_outage != OnOutage::Deny {
            Promise::Policy
        } else {
            Promise::Nothing
        }
    }

    /// The limit that no other is above.
    pub(super) fn largest(&self) -> Limit {
        let largest = self.limits.iter().max_by_key(|limit| limit.quota);
        largest.copied().unwrap_or_else(|| unreachable!("a plan has a limit"))
    }
}
