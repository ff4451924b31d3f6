//! What is measured: an algorithm, a limit, how many nodes share it and how much is offered.

pub(super) const ALGORITHMS: [&str; 4] =
    ["fixed_window", "sliding_window", "token_bucket", "sliding_log"];

/// More than two cores can offer over HTTP, with nodes and Redis beside it.
const RATE_MAX: u64 = 6_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) algorithm: &'static str,
    pub(super) nodes: usize,
    pub(super) limit: u64,
    pub(super) window_ms: u64,
    /// Of the limit, in percent.
    pub(super) load: u64,
    pub(super) windows: u64,
}

// === impl Case ===

impl Case {
    /// What the figures for calls per decision name: five nodes, limits of 1,000 and 10,000, once and twice the load.
    pub(super) fn sample() -> Vec<Self> {
        let mut cases = Vec::new();
        for algorithm in ALGORITHMS {
            for (limit, window_ms) in [(100, 1_000), (1_000, 1_000), (10_000, 10_000)] {
                for load in [100, 200] {
                    let windows = if window_ms == 1_000 { 7 } else { 4 };
                    cases.push(Self { algorithm, nodes: 5, limit, window_ms, load, windows });
                }
            }
        }
        cases
    }

    pub(super) fn grid() -> Vec<Self> {
        let mut cases = Vec::new();
        for nodes in [1, 3, 5, 9] {
            for algorithm in ALGORITHMS {
                for limit in [10, 100, 1_000, 10_000] {
                    for load in [90, 100, 150, 200, 2_000] {
                        let window_ms = if limit == 10_000 { 10_000 } else { 1_000 };
                        let case = Self { algorithm, nodes, limit, window_ms, load, windows: 7 };
                        let case =
                            if window_ms == 10_000 { Self { windows: 2, ..case } } else { case };
                        if case.rate() <= RATE_MAX {
                            cases.push(case);
                        }
                    }
                }
            }
        }
        cases
    }

    /// Requests per second, over all nodes.
    pub(super) fn rate(&self) -> u64 {
        (self.limit * self.load * 10 / self.window_ms).max(1)
    }

    pub(super) fn duration_ms(&self) -> u64 {
        self.windows * self.window_ms + self.window_ms / 5
    }
}
