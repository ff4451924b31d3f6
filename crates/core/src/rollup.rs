//! What happened in one minute to one kind of request: counts by outcome and a histogram, both of which add up.

use std::sync::Arc;

use crate::{Decision, Millis};

/// Buckets of a histogram of durations: one per bound, and one for all that is slower.
pub const BUCKETS: usize = 17;

/// What is told apart. An empty text is "none given".
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RollupKey {
    /// Start of the minute, hour or day (UTC).
    pub time: Millis,
    pub tenant_id: Arc<str>,
    /// The pattern that the path matched; `other` beyond as many as are told apart.
    pub endpoint: Arc<str>,
    /// `*` beyond as many as are told apart, which no identity is called.
    pub external_id: Arc<str>,
    pub region: Arc<str>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RollupCounts {
    pub allowed: u64,
    pub throttled: u64,
    pub blocked: u64,
    pub cache_hits: u64,
    pub cache_misses: u64,
    pub latency: [u64; BUCKETS],
}

/// How finely time is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grain {
    Minute,
    Hour,
    Day,
}

// === impl RollupCounts ===

impl RollupCounts {
    pub fn count(&mut self, decision: Decision) {
        match decision {
            Decision::Allowed => self.allowed += 1,
            Decision::Throttled => self.throttled += 1,
            Decision::Blocked => self.blocked += 1,
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.allowed += other.allowed;
        self.throttled += other.throttled;
        self.blocked += other.blocked;
        self.cache_hits += other.cache_hits;
        self.cache_misses += other.cache_misses;
        for (sum, count) in self.latency.iter_mut().zip(other.latency) {
            *sum += count;
        }
    }

    pub fn total(&self) -> u64 {
        self.allowed + self.throttled + self.blocked
    }
}

// === impl Grain ===

impl Grain {
    pub fn millis(self) -> u64 {
        match self {
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
            Self::Day => 86_400_000,
        }
    }

    /// The start of the minute, hour or day that holds this moment.
    pub fn start_of(self, now: Millis) -> Millis {
        Millis(now.0 - now.0 % self.millis())
    }
}
