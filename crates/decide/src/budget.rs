//! How often storage may be asked for what it does not have. Whoever guesses keys is slowed down to the budget's pace,
//! and then turned away; loads that find something cost nothing. It reads no clock: `now` comes in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollkeeper_core::Millis;

use crate::ports::{Loading, OriginError};

/// 500 fruitless loads in a second for as long as it goes on: a tenth of what a small database reads.
const PACE_MS: u64 = 2;
/// So many before anybody waits. Loads under way are charged too, and more than this a database does not answer within
/// the patience of those who wait for it.
const AT_ONCE: u64 = 1_000;
/// Whoever would wait longer is told at once. As long as a load itself waits for a connection.
const PATIENCE_MS: u64 = 250;

/// A clone is a second handle on the same budget.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget(Arc<Books>);

#[derive(Debug, Default)]
struct Books {
    /// Up to when the pace is used up.
    used_until: AtomicU64,
    loads: AtomicU64,
    refused: AtomicU64,
}

/// How often storage was asked, and how often it was spared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loads {
    /// Found or not, first loads and renewals.
    pub asked: u64,
    /// Asks turned away because too many others had found nothing.
    pub refused: u64,
}

// === impl Budget ===

impl Budget {
    /// A load that is paid for until it turns out to find something.
    pub(crate) fn charge<V: Send + 'static>(
        &self,
        now: Millis,
        load: impl FnOnce() -> Loading<Option<V>>,
    ) -> Loading<Option<V>> {
        let Some(wait_ms) = self.take(now) else {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
            return Box::pin(async { Err(OriginError::Spared) });
        };
        let (budget, loading) = (self.clone(), load());
        Box::pin(async move {
            if wait_ms > 0 {
                pause(wait_ms).await;
            }
            budget.note();
            let found = loading.await;
            // A failure is no guess of the caller's, and is not charged either.
            if !matches!(found, Ok(None)) {
                budget.0.used_until.fetch_sub(PACE_MS, Ordering::Relaxed);
            }
            found
        })
    }

    /// A load that is not charged: of what is known to be there.
    pub(crate) fn note(&self) {
        self.0.loads.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn loads(&self) -> Loads {
        let Books { loads, refused, .. } = &*self.0;
        Loads { asked: loads.load(Ordering::Relaxed), refused: refused.load(Ordering::Relaxed) }
    }

    /// How long to wait for one's turn; nothing when that is too long.
    fn take(&self, now: Millis) -> Option<u64> {
        let wait = |until: u64| until.saturating_sub(now.0 + AT_ONCE * PACE_MS);
        let taken = self.0.used_until.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |until| {
            let until = until.max(now.0) + PACE_MS;
            (wait(until) <= PATIENCE_MS).then_some(until)
        });
        taken.ok().map(|before| wait(before.max(now.0) + PACE_MS))
    }
}

#[allow(clippy::disallowed_methods, reason = "what is waited for is time itself: the pace")]
async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_700_000_000_000);

    #[test]
    fn the_first_wait_for_nothing_then_each_for_its_turn_and_then_nobody() {
        let budget = Budget::default();
        assert!((0..AT_ONCE).all(|_| budget.take(NOW) == Some(0)));
        let turns = PATIENCE_MS / PACE_MS;
        assert!((1..=turns).all(|turn| budget.take(NOW) == Some(turn * PACE_MS)));
        assert_eq!(budget.take(NOW), None);
        assert_eq!(budget.take(NOW + 3), Some(PATIENCE_MS - 1));
        let rested = NOW + 2 * AT_ONCE * PACE_MS;
        assert!((0..AT_ONCE).all(|_| budget.take(rested) == Some(0)));
        assert_ne!(budget.take(rested), Some(0));
    }
}
