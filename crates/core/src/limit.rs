//! A limit as it is enforced: how much, by which algorithm, over which time.
//! Invalid combinations cannot be built; nothing here is parsed per request twice.

use crate::{Cost, Millis, Outcome, Quota, Refill, Width, Window};

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

/// How closely the nodes of a fleet keep together on one limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Consistency {
    /// Never above the limit, whatever the nodes do.
    #[default]
    Exact,
    /// Never waits; above the limit by a known bound.
    Fast,
    /// Each node counts for itself.
    Local,
}

/// What a shared limit does while its counters are out of reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnOutage {
    /// Each node goes on with its share of what was left.
    #[default]
    Share,
    Allow,
    Deny,
}

/// What a limit says about being shared. Nothing said: the defaults of the fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sharing {
    pub consistency: Option<Consistency>,
    pub on_outage: Option<OnOutage>,
}

// === impl Sharing ===

impl Sharing {
    /// From the words that they are stored by; an unknown word is as good as none.
    pub fn from_words(consistency: Option<&str>, on_outage: Option<&str>) -> Self {
        let consistency = match consistency {
            Some("exact") => Some(Consistency::Exact),
            Some("fast") => Some(Consistency::Fast),
            Some("local") => Some(Consistency::Local),
            _ => None,
        };
        let on_outage = match on_outage {
            Some("share") => Some(OnOutage::Share),
            Some("allow") => Some(OnOutage::Allow),
            Some("deny") => Some(OnOutage::Deny),
            _ => None,
        };
        Self { consistency, on_outage }
    }
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

    /// What an unspent outcome of a bucket would be once this cost is spent.
    #[must_use]
    pub fn after(&self, outcome: Outcome, cost: Cost) -> Outcome {
        let Algorithm::TokenBucket { width, .. } = self.algorithm else { return outcome };
        let flows = u128::from(cost.get()) * u128::from(width.millis());
        let flows = flows.div_ceil(u128::from(self.quota.get().max(1)));
        let later = u64::try_from(flows).unwrap_or(u64::MAX);
        Outcome {
            remaining: outcome.remaining.saturating_sub(cost.get()),
            reset: (outcome.reset + later).min(Millis::LAST),
            ..outcome
        }
    }

    /// How a bucket of this algorithm fills.
    pub fn refill(quota: Quota, width: Width, capacity: Quota) -> Refill {
        // A quota of zero blocks whatever the burst says.
        let capacity = if quota.get() == 0 { quota } else { capacity };
        Refill { capacity: capacity.get(), tokens: quota.get(), per_ms: width.millis() }
    }
}
