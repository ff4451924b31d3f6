//! What is counted: costs and quotas as integers that stay exact in JSON, Lua and Rust alike.

/// 2^53 − 1: the largest integer that JavaScript, Lua and JSON numbers carry without loss.
pub const AMOUNT_MAX: u64 = (1 << 53) - 1;

/// What one request spends. Zero asks without spending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u64);

/// How much a limit admits. Zero admits nothing: it blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quota(u64);

// === impl Cost ===

impl Cost {
    pub const PEEK: Self = Self(0);
    pub const ONE: Self = Self(1);

    pub fn new(amount: u64) -> Option<Self> {
        (amount <= AMOUNT_MAX).then_some(Self(amount))
    }

    pub fn get(self) -> u64 {
        self.0
    }

    /// The cost of two asks on one cell, cut one above [`AMOUNT_MAX`]: as a sum it may be more than any quota
    /// admits, and then it must not pass for one that a quota does.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self((self.0 + other.0).min(AMOUNT_MAX + 1))
    }
}

// === impl Quota ===

impl Quota {
    pub const ZERO: Self = Self(0);

    pub const fn new(amount: u64) -> Option<Self> {
        if amount <= AMOUNT_MAX { Some(Self(amount)) } else { None }
    }

    pub fn get(self) -> u64 {
        self.0
    }
}
