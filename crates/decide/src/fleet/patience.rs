//! How long a request waits for the origin: for one call, for its repetition, and in all. It waits for nothing itself.

use std::time::Duration;

/// Patience with one call on the path of a request; then it is made once more, and has as long again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience(Duration);

// === impl Patience ===

impl Patience {
    /// With its repetition half of Envoy's 20 ms, after which it lets the request through unlimited.
    pub const USUAL: Self = Self(Duration::from_millis(5));

    pub fn from_millis(ms: u64) -> Self {
        Self(Duration::from_millis(ms))
    }

    /// For one call.
    pub(super) fn once(self) -> Duration {
        self.0
    }

    /// What a waiting request has in all; a little above two calls, so that their outcome is heard.
    pub(super) fn whole(self) -> Duration {
        2 * self.0 + Duration::from_millis(1)
    }

    pub fn whole_ms(self) -> u64 {
        u64::try_from(self.whole().as_millis()).unwrap_or(u64::MAX)
    }

    /// Would a request have waited for an answer that took so long?
    pub(super) fn is_kept(self, took_ms: u64) -> bool {
        Duration::from_millis(took_ms) <= self.0
    }

    /// Did a call that was given so long end so late that this machine, and not the origin, was slow?
    pub(super) fn is_late(given: Duration, took_ms: u64) -> bool {
        Duration::from_millis(took_ms) > given + Duration::from_millis(7)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_calls_fit_into_the_whole_and_only_a_machine_that_stood_still_is_late() {
        assert_eq!(Patience::USUAL.whole(), Duration::from_millis(11));
        assert!(Patience::USUAL.is_kept(5) && !Patience::USUAL.is_kept(6));
        let given = Duration::from_millis(5);
        assert!(!Patience::is_late(given, 12) && Patience::is_late(given, 13));
    }
}
