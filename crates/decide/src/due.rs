//! Whose turn it is to note that something is used: one caller in half a minute, however many there are.

use std::sync::atomic::{AtomicU64, Ordering};

use tollkeeper_core::Millis;

const NOTED_MS: u64 = 30_000;

/// When it was last noted. A copy begins anew.
#[derive(Debug, Default)]
pub struct Due(AtomicU64);

// === impl Due ===

impl Due {
    /// True for one caller, who notes it.
    pub fn take(&self, now: Millis) -> bool {
        let noted = self.0.load(Ordering::Relaxed);
        now.since(Millis(noted)) >= NOTED_MS
            && self.0.compare_exchange(noted, now.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Clone for Due {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_turn_of_one_caller_in_half_a_minute() {
        let due = Due::default();
        let turns = [100_000, 100_001, 129_999, 130_000, 130_000].map(|at| due.take(Millis(at)));
        assert_eq!(turns, [true, false, false, true, false]);
    }
}
