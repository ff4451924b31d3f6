//! Usage on its way from the journal's pages to the ledger in the database, round after round: through Redis where there is
//! one, else straight. Every step may be interrupted, repeated or done by two at once; a slot of the pages is given up only
//! when the ledger shows it. No request waits for any of this, and what fails is logged, counted and tried again.

mod bucket;
mod flushed;
mod shown;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tollkeeper_account::{Former, Noted, Pages, PagesReading};
use tollkeeper_core::{Component, Millis};
use tollkeeper_redis::UsageBuffer;
use tollkeeper_store::{Store, StoreError};

use crate::clock::Clock;
pub use flushed::Flushed;
use shown::Shown;

/// Components at once: some megabytes, and a fraction of a second of the database.
const AT_ONCE: usize = 20_000;

/// Redis may miss so many rounds before usage goes past it: the pages have it meanwhile.
const REDIS_ROUNDS: u32 = 3;

/// How often usage by the minute that is old enough goes.
const FORGET_MS: u64 = 3_600_000;

#[derive(Debug)]
pub struct UsageFlow {
    pages: Arc<Pages>,
    store: Store,
    /// Absent on a node alone.
    buffer: Option<UsageBuffer>,
    clock: Clock,
    lag_ms: u64,
    /// One round at a time.
    round: Mutex<Round>,
    counts: Counts,
}

#[derive(Debug)]
struct Round {
    /// What processes before this one left.
    former: Vec<Former>,
    /// When all buckets of Redis were last looked for, and not only those of the last hours.
    searched_at: Option<Millis>,
    /// Rounds in a row in which Redis did not take what it was told.
    redis_away: u32,
}

#[derive(Debug, Default)]
struct Counts {
    failures: AtomicU64,
    set_aside: AtomicU64,
    too_old: AtomicU64,
    rewound: AtomicU64,
    flushed_at: AtomicU64,
}

/// For metrics.
#[derive(Clone, Copy, Debug)]
pub struct UsageReading {
    pub pages: PagesReading,
    pub failures: u64,
    pub set_aside: u64,
    pub too_old: u64,
    pub rewound: u64,
    /// Since the last round that went well.
    pub lag_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Buckets of Redis are left alone for a while.
    InTime,
    /// Everything that was recorded before the call, whatever the lag.
    Now,
}

// === impl UsageFlow ===

impl UsageFlow {
    pub fn new(
        pages: Arc<Pages>,
        former: Vec<Former>,
        store: Store,
        buffer: Option<UsageBuffer>,
        clock: Clock,
        lag_ms: u64,
    ) -> Self {
        let counts = Counts::default();
        for one in &former {
            counts.set_aside.fetch_add(one.damaged, Ordering::Relaxed);
            if let Some(aside) = &one.set_aside {
                tracing::warn!(
                    "part of the usage of an earlier process could not be read and was set aside as {}",
                    aside.display()
                );
            }
        }
        counts.flushed_at.store(clock.now().0, Ordering::Relaxed);
        let round = Round { former, searched_at: None, redis_away: 0 };
        Self { pages, store, buffer, clock, lag_ms, round: Mutex::new(round), counts }
    }

    /// Runs until dropped.
    pub async fn watch(self: Arc<Self>, every: Duration) {
        let mut beats = tokio::time::interval(every);
        beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut failing = false;
        let mut forgot_at = Millis(0);
        loop {
            beats.tick().await;
            let now = self.clock.now();
            if now.since(forgot_at) >= FORGET_MS {
                forgot_at = now;
                if let Err(error) = self.store.forget_usage(now).await {
                    tracing::warn!("old usage by the minute could not be forgotten: {error}");
                }
            }
            let outcome = self.flush(Pace::InTime).await;
            match &outcome {
                Err(error) if !failing => {
                    tracing::error!("usage could not be flushed: {error}; it waits in the journal");
                }
                Ok(_) if failing => tracing::info!("usage is flushed again"),
                _ => {}
            }
            failing = outcome.is_err();
        }
    }

    /// One round. What could be done is done, also where something else failed; the first failure is the answer.
    pub async fn flush(&self, pace: Pace) -> Result<Flushed, StoreError> {
        let mut round = self.round.lock().await;
        let mut flushed = Flushed::default();
        let outcome = self.go_round(&mut round, pace, &mut flushed).await;
        match &outcome {
            Ok(()) => self.counts.flushed_at.store(self.clock.now().0, Ordering::Relaxed),
            Err(_) => {
                self.counts.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
        outcome.map(|()| flushed)
    }

    async fn go_round(
        &self,
        round: &mut Round,
        pace: Pace,
        flushed: &mut Flushed,
    ) -> Result<(), StoreError> {
        let remembered = self.look_back(round).await;
        // Redis before the database: it keeps what the other may not be there for.
        let told = self.tell(round, pace, flushed).await;
        let former = self.settle_former(round, flushed).await;
        let drained = self.drain(round, pace, flushed).await;
        let settled = self.settle().await;
        told.and(remembered).and(former).and(drained).and(settled)
    }

    /// What has grown goes to Redis; without it, or while it is away, and on demand, straight to the ledger.
    async fn tell(
        &self,
        round: &mut Round,
        pace: Pace,
        flushed: &mut Flushed,
    ) -> Result<(), StoreError> {
        if pace == Pace::Now {
            return self.apply_noted(&self.pages.open_slots(usize::MAX), flushed).await;
        }
        // As it is now: what grows meanwhile belongs to the next round, or a busy node would never come to the end of one.
        for noted in self.pages.untold(usize::MAX).chunks(AT_ONCE) {
            if self.tell_redis(noted).await {
                round.redis_away = 0;
                self.pages.told(noted);
                continue;
            }
            round.redis_away = round.redis_away.saturating_add(1);
            if self.buffer.is_some() && round.redis_away < REDIS_ROUNDS {
                return Ok(());
            }
            self.apply_noted(noted, flushed).await?;
        }
        Ok(())
    }

    async fn tell_redis(&self, noted: &[Noted]) -> bool {
        let Some(buffer) = &self.buffer else { return false };
        buffer.tell(&components(noted)).await.is_ok()
    }

    async fn apply_noted(&self, noted: &[Noted], flushed: &mut Flushed) -> Result<(), StoreError> {
        for some in noted.chunks(AT_ONCE) {
            self.apply(&components(some), flushed).await?;
            self.pages.told(some);
        }
        Ok(())
    }

    async fn apply(
        &self,
        components: &[Component],
        flushed: &mut Flushed,
    ) -> Result<(), StoreError> {
        let too_old = self.store.apply_usage(components, self.clock.now()).await?;
        if too_old > 0 && self.counts.too_old.fetch_add(too_old, Ordering::Relaxed) == 0 {
            tracing::warn!(
                "usage of minutes before the ledger's memory was not applied: nobody can say whether it was before"
            );
        }
        flushed.add(components);
        Ok(())
    }

    /// A ledger that has forgotten what it had shown is another one, or an older one: it is told everything again.
    async fn look_back(&self, round: &mut Round) -> Result<(), StoreError> {
        let seen = shown::seen(&self.pages, &round.former, self.clock.now());
        let sums = self.store.usage_sums(&seen).await?;
        let sums = Shown::of(&sums);
        if seen.iter().all(|one| sums.shows(one)) {
            return Ok(());
        }
        tracing::warn!("the database has lost usage that it had shown; it is told again");
        self.counts.rewound.fetch_add(1, Ordering::Relaxed);
        round.former.iter_mut().for_each(Former::unsettle);
        self.pages.tell_all_again();
        Ok(())
    }

    /// Straight to the ledger, whoever else may have told it: totals of the same process count once.
    async fn settle_former(
        &self,
        round: &mut Round,
        flushed: &mut Flushed,
    ) -> Result<(), StoreError> {
        for former in round.former.iter_mut().filter(|former| !former.is_settled()) {
            for some in former.components.chunks(AT_ONCE) {
                self.apply(some, flushed).await?;
            }
            former.settle();
        }
        let now = self.clock.now();
        round.former.retain(|former| match former.forget(now) {
            Ok(gone) => !gone,
            Err(error) => {
                tracing::warn!(
                    "usage of an ended process is in the ledger, but its file stays: {error}"
                );
                true
            }
        });
        Ok(())
    }

    /// Slots of minutes that are over, whose totals the ledger shows, may be used anew. One that it should show by now and
    /// does not is told again: its bucket is gone.
    async fn settle(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        let noted = self.pages.unsettled(now, usize::MAX);
        for some in noted.chunks(AT_ONCE) {
            let shown = self.store.shown_usage(&components(some)).await?;
            let shown = Shown::of(&shown);
            let (seen, missing): (Vec<Noted>, Vec<Noted>) = some
                .iter()
                .cloned()
                .partition(|one| one.component.usage.is_none() || shown.shows(&one.component));
            self.pages.settle(&seen, now);
            let late = |one: &Noted| now.since(one.component.minute.end()) > 2 * self.lag_ms;
            let missing: Vec<Noted> = missing.into_iter().filter(late).collect();
            if !missing.is_empty() && !self.tell_redis(&missing).await {
                self.apply_noted(&missing, &mut Flushed::default()).await?;
            }
        }
        Ok(())
    }

    pub fn pages(&self) -> &Arc<Pages> {
        &self.pages
    }

    pub fn buffer(&self) -> Option<&UsageBuffer> {
        self.buffer.as_ref()
    }

    /// A kill would lose usage: there was no room for it on the disk.
    pub fn is_at_risk(&self) -> bool {
        self.pages.reading().unkept > 0
    }

    pub fn reading(&self) -> UsageReading {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        UsageReading {
            pages: self.pages.reading(),
            failures: count(&self.counts.failures),
            set_aside: count(&self.counts.set_aside),
            too_old: count(&self.counts.too_old),
            rewound: count(&self.counts.rewound),
            lag_ms: self.clock.now().since(Millis(count(&self.counts.flushed_at))),
        }
    }
}

fn components(noted: &[Noted]) -> Vec<Component> {
    noted.iter().map(|one| one.component.clone()).collect()
}
