//! A clock that stands still until a test moves it, also backwards.
//! It never looks at the machine's time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Milliseconds that a test decides. Clones show the same time, so one can be given away and still be moved.
#[derive(Debug, Clone, Default)]
pub struct FakeClock(Arc<AtomicU64>);

impl FakeClock {
    pub fn at_ms(now: u64) -> Self {
        Self(Arc::new(AtomicU64::new(now)))
    }

    pub fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    pub fn advance_ms(&self, by: u64) {
        self.0.fetch_add(by, Ordering::SeqCst);
    }

    pub fn set_ms(&self, now: u64) {
        self.0.store(now, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::FakeClock;

    #[test]
    fn time_moves_only_when_told_and_for_all_clones() {
        let clock = FakeClock::at_ms(1_000);
        let given_away = clock.clone();
        assert_eq!(given_away.now_ms(), 1_000);
        clock.advance_ms(5);
        assert_eq!(given_away.now_ms(), 1_005);
        given_away.set_ms(7);
        assert_eq!(clock.now_ms(), 7);
    }
}
