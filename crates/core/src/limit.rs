//! A limit as it is enforced: how much, by which algorithm, over which time.
//! Invalid combinations cannot be built; nothing here is parsed per request twice.

use crate::{Quota, Refill, Width, Window};

/// A sliding log keeps one entry per admitted request, so its quota bounds its memory.
pub const LOG_QUOTA_MAX: u64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub quota: Quota,
    pub algorithm: Algorithm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    FixedWindow(Window),
    SlidingWindow(Width),
    SlidingLog(Width),
    /// `quota` tokens come back per width, up to `capacity`.
    TokenBucket {
        width: Width,
        capacity: Quota,
    },
}

// === impl Limit ===

impl Limit {
    pub fn sliding_window(quota: Quota, width: Width) -> Self {
        Self { quota, algorithm: Algorithm::SlidingWindow(width) }
    }

    pub fn fixed_window(quota: Quota, window: Window) -> Self {
        Self { quota, algorithm: Algorithm::FixedWindow(window) }
    }

    /// `None` when the quota is above [`LOG_QUOTA_MAX`].
    pub fn sliding_log(quota: Quota, width: Width) -> Option<Self> {
        (quota.get() <= LOG_QUOTA_MAX)
            .then_some(Self { quota, algorithm: Algorithm::SlidingLog(width) })
    }

    /// Without a burst of its own a bucket holds its quota.
    pub fn token_bucket(quota: Quota, width: Width, burst: Option<Quota>) -> Self {
        let capacity = burst.unwrap_or(quota);
        Self { quota, algorithm: Algorithm::TokenBucket { width, capacity } }
    }

    /// The same algorithm under another quota and width: what an override asks for.
    /// A bucket takes the new quota as its capacity, because its old burst belonged to the old quota.
    #[must_use]
    pub fn overridden(self, quota: Quota, width: Width) -> Self {
        match self.algorithm {
            Algorithm::FixedWindow(_) => Self::fixed_window(quota, Window::Aligned(width)),
            Algorithm::SlidingLog(_) if quota.get() <= LOG_QUOTA_MAX => {
                Self { quota, algorithm: Algorithm::SlidingLog(width) }
            }
            // A log of that size would not be bounded; the two-counter window is its nearest kin.
            Algorithm::SlidingWindow(_) | Algorithm::SlidingLog(_) => {
                Self::sliding_window(quota, width)
            }
            Algorithm::TokenBucket { .. } => Self::token_bucket(quota, width, None),
        }
    }

    pub(crate) fn refill(quota: Quota, width: Width, capacity: Quota) -> Refill {
        // A quota of zero blocks whatever the burst says.
        let capacity = if quota.get() == 0 { quota } else { capacity };
        Refill { capacity: capacity.get(), tokens: quota.get(), per_ms: width.millis() }
    }
}
