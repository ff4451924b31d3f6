//! Buckets of Redis to the ledger: read, applied, committed, and only then taken out, as they were read.

use tollkeeper_core::{Millis, Minute};
use tollkeeper_redis::{BUCKET_MINUTES, CallError, UsageBuffer};
use tollkeeper_store::{Fault, StoreError};

use super::{Flushed, Pace, Round, UsageFlow};

/// Looked through in every round: older buckets are there only when the database was away.
const RECENT_MINUTES: u32 = 180;
/// How often all fourteen days are looked through.
const SEARCH_MS: u64 = 3_600_000;

// === impl UsageFlow ===

impl UsageFlow {
    /// Redis away or late is no failure of a round: the pages have everything, and the next round comes.
    pub(super) async fn drain(
        &self,
        round: &mut Round,
        pace: Pace,
        flushed: &mut Flushed,
    ) -> Result<(), StoreError> {
        let Some(buffer) = &self.buffer else { return Ok(()) };
        let token = format!("{}-{}", self.pages.boot_text(), self.clock.now().0);
        // Somebody else is at it; on demand both are, which costs work and nothing else.
        let locked = buffer.lock(&token).await.unwrap_or(false);
        if !locked && pace == Pace::InTime {
            return Ok(());
        }
        let drained = self.drain_all(buffer, round, pace, flushed).await;
        if locked && let Err(error) = buffer.unlock(&token).await {
            tracing::debug!("the lock of usage ends by itself: {error}");
        }
        match drained {
            Err(Failed::Database(error)) => Err(error),
            // Whoever asked for everything must not be told that it is there.
            Err(Failed::Redis(error)) if pace == Pace::Now => {
                tracing::warn!("usage in Redis could not be flushed: {error}");
                Err(StoreError::Fault(Fault::Busy))
            }
            Err(Failed::Redis(error)) => {
                tracing::debug!("usage in Redis waits for the next round: {error}");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    async fn drain_all(
        &self,
        buffer: &UsageBuffer,
        round: &mut Round,
        pace: Pace,
        flushed: &mut Flushed,
    ) -> Result<(), Failed> {
        let now = self.clock.now();
        let last = match pace {
            Pace::InTime => Millis(now.0.saturating_sub(self.lag_ms + 60_000)),
            // A clock of another node may be ahead of ours.
            Pace::Now => now + 120_000,
        };
        let searched = round.searched_at.is_some_and(|at| now.since(at) < SEARCH_MS);
        let back = if searched && pace == Pace::InTime { RECENT_MINUTES } else { BUCKET_MINUTES };
        let (first, last) = (Minute(Minute::of(now).0.saturating_sub(back)), Minute::of(last));
        for minute in buffer.minutes(first, last).await? {
            self.drain_one(buffer, minute, flushed).await?;
        }
        if back == BUCKET_MINUTES {
            round.searched_at = Some(now);
        }
        Ok(())
    }

    async fn drain_one(
        &self,
        buffer: &UsageBuffer,
        minute: Minute,
        flushed: &mut Flushed,
    ) -> Result<(), Failed> {
        let mut from = 0;
        loop {
            let part = buffer.read(minute, from).await?;
            if !part.components.is_empty() {
                self.apply(&part.components, flushed).await.map_err(Failed::Database)?;
                buffer.untell(minute, &part).await?;
            }
            from = part.next;
            if from == 0 {
                return Ok(());
            }
        }
    }
}

enum Failed {
    Redis(CallError),
    Database(StoreError),
}

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        Self::Redis(error)
    }
}
