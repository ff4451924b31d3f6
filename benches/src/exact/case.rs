//! What is measured: an algorithm, a limit, how many nodes share it, and what is offered, in which manner.

pub(super) const ALGORITHMS: [&str; 4] =
    ["fixed_window", "sliding_window", "token_bucket", "sliding_log"];

/// How requests come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// At an even pace.
    Steady,
    /// All that a window is offered at one moment of it, as fast as it goes.
    Burst,
}

/// What a request costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    One,
    Three,
    /// Ones, and an eighth of the limit every sixteenth time.
    Mixed,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) algorithm: &'static str,
    pub(super) nodes: usize,
    pub(super) limit: u64,
    pub(super) window_ms: u64,
    /// Of the limit, in percent.
    pub(super) load: u64,
    pub(super) lasts_ms: u64,
    pub(super) manner: Manner,
    pub(super) cost: Cost,
    /// The moment of each window at which a burst comes, or of the first at which a steady pace begins, in thousandths of the
    /// window: several at once would measure how long two cores take for them.
    pub(super) moment: u64,
}

// === impl Cost ===

impl Cost {
    /// What the request of this number costs.
    pub(super) fn of(self, number: u64, limit: u64) -> u64 {
        match self {
            Self::Three => 3,
            Self::Mixed if number.is_multiple_of(16) => (limit / 8).max(1),
            Self::One | Self::Mixed => 1,
        }
    }

    /// Of sixteen requests.
    fn of_sixteen(self, limit: u64) -> u64 {
        (0..16).map(|number| self.of(number, limit)).sum()
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::One => "1",
            Self::Three => "3",
            Self::Mixed => "1 and L/8",
        }
    }
}

// === impl Case ===

impl Case {
    /// Of cost one and an even pace, over so many whole windows and a bit.
    pub(super) fn steady(
        algorithm: &'static str,
        nodes: usize,
        (limit, window_ms): (u64, u64),
        load: u64,
        windows: u64,
    ) -> Self {
        let lasts_ms = windows * window_ms + window_ms / 5;
        let (manner, cost, moment) = (Manner::Steady, Cost::One, 0);
        Self { algorithm, nodes, limit, window_ms, load, lasts_ms, manner, cost, moment }
    }

    /// What the figures for calls per decision name: five nodes, limits of 1,000 and 10,000, once and twice the load.
    pub(super) fn sample() -> Vec<Self> {
        let mut cases = Vec::new();
        for algorithm in ALGORITHMS {
            for (limit, window_ms, windows) in
                [(100, 1_000, 7), (1_000, 1_000, 7), (10_000, 10_000, 4)]
            {
                for load in [100, 200] {
                    cases.push(Self::steady(algorithm, 5, (limit, window_ms), load, windows));
                }
            }
            // Nearly everything is refused, and what flows back is little.
            cases.push(Self::steady(algorithm, 5, (1_000, 10_000), 2_000, 2));
        }
        cases
    }

    /// An identifier that has nothing left for as long as this goes on; two thousand ask for it in a second.
    pub(super) fn spent() -> Self {
        let load = 2_000 * 60_000 / (10 * 10);
        Self { lasts_ms: 10_000, ..Self::steady("fixed_window", 5, (10, 60_000), load, 1) }
    }

    /// Requests per second, over all nodes.
    pub(super) fn rate(&self) -> u64 {
        let units = self.limit * self.load * 10 / self.window_ms;
        (units * 16 / self.cost.of_sixteen(self.limit)).max(1)
    }

    /// When the request of this number is due, in microseconds since the beginning.
    pub(super) fn due_us(&self, number: u64) -> u64 {
        let begins = self.moment * self.window_ms;
        match self.manner {
            Manner::Steady => begins + number * 1_000_000 / self.rate(),
            Manner::Burst => {
                let in_window = (self.rate() * self.window_ms / 1_000).max(1);
                begins + number / in_window * self.window_ms * 1_000
            }
        }
    }
}
