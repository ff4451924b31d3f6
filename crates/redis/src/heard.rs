//! When a process of a server was last heard: until then it may have counted, and whoever follows it in its place may not
//! know what. It never says who that was.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::now;

/// Shared by all who use one connection.
#[derive(Debug)]
pub(crate) struct Heard {
    first: Instant,
    /// How much later it was heard again.
    later_us: AtomicU64,
}

// === impl Heard ===

impl Heard {
    /// For the first time.
    pub(crate) fn now() -> Self {
        Self { first: now(), later_us: AtomicU64::new(0) }
    }

    pub(crate) fn again(&self) {
        let later_us = u64::try_from(self.first.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.later_us.fetch_max(later_us, Ordering::Relaxed);
    }

    pub(crate) fn ago(&self) -> Duration {
        let later = Duration::from_micros(self.later_us.load(Ordering::Relaxed));
        self.first.elapsed().saturating_sub(later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_is_the_last_time_and_not_the_first() {
        let ago = |ms| now().checked_sub(Duration::from_millis(ms));
        let Some(first) = ago(60_000) else { return };
        let heard = Heard { first, later_us: AtomicU64::new(0) };
        assert!(heard.ago() >= Duration::from_mins(1));
        heard.later_us.store(50_000_000, Ordering::Relaxed);
        assert!((10..20).contains(&heard.ago().as_secs()));
        heard.again();
        assert!(heard.ago() < Duration::from_secs(5));
        // Of a moment that was read before that of another.
        heard.later_us.store(70_000_000, Ordering::Relaxed);
        heard.again();
        assert_eq!(heard.ago(), Duration::ZERO);
    }
}
