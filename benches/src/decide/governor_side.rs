//! governor as its documentation has it: keyed by the identifier's text, in a `DashMap`, with its default clock.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use super::contest::Limiter;
use crate::failure::Failure;
use crate::limits::AMPLE;

pub(super) struct Governor(DefaultKeyedRateLimiter<String>);

// === impl Governor ===

impl Governor {
    /// One unit per nanosecond: the shortest interval governor can count.
    pub(super) fn ample() -> Result<Self, Failure> {
        let burst = u32::try_from(AMPLE).ok().and_then(NonZeroU32::new);
        let burst = burst.ok_or_else(|| Failure::Invalid(format!("a burst of {AMPLE}")))?;
        Ok(Self(RateLimiter::dashmap(Quota::per_second(burst))))
    }

    /// One request in thirty days.
    pub(super) fn once() -> Result<Self, Failure> {
        let quota = Quota::with_period(Duration::from_hours(30 * 24));
        let quota = quota.ok_or_else(|| Failure::Invalid("a period of thirty days".into()))?;
        Ok(Self(RateLimiter::dashmap(quota)))
    }
}

impl Limiter for Governor {
    fn check_all(&self, requests: &[String]) -> usize {
        requests.iter().filter(|identifier| self.0.check_key(identifier).is_ok()).count()
    }
}
