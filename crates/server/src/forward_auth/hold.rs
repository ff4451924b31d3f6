//! Answers that are held back: a throttled request may pass, but only after its delay, and a proxy cannot wait by itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::status::Refusal;

/// Each one holds a connection of the proxy's; beyond this, waiting would be what takes the node down.
const HELD_MAX: u64 = 1_000;

#[derive(Debug, Default)]
pub struct Holds(AtomicU64);

/// A place among those who wait; free again when it is dropped, also because the client left.
#[derive(Debug)]
struct Held<'a>(&'a AtomicU64);

// === impl Holds ===

impl Holds {
    pub fn taken(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits so long, or says when to come back if too many wait already. What the request spent stays spent then: it
    /// was let through, and only nobody had the time.
    pub async fn wait(&self, delay_ms: u64) -> Result<(), Refusal> {
        if delay_ms == 0 {
            return Ok(());
        }
        let retry_after_s = delay_ms.div_ceil(1_000);
        let _held = self.hold().ok_or(Refusal::TooManyHeld { retry_after_s })?;
        pause(delay_ms).await;
        Ok(())
    }

    fn hold(&self) -> Option<Held<'_>> {
        let more = |taken| (taken < HELD_MAX).then_some(taken + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Held(&self.0))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[allow(clippy::disallowed_methods, reason = "what is waited for is time itself: the delay")]
async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_are_held_and_one_more_is_told_when_to_come_back() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let holds = Holds::default();
        let held: Vec<_> = (0..HELD_MAX).map_while(|_| holds.hold()).collect();
        assert_eq!((held.len() as u64, holds.taken()), (HELD_MAX, HELD_MAX));
        let refused = runtime.map(|runtime| runtime.block_on(holds.wait(1_500)));
        assert!(matches!(refused, Ok(Err(Refusal::TooManyHeld { retry_after_s: 2 }))));
        drop(held);
        assert_eq!(holds.taken(), 0);
    }
}
