//! The way back by itself: where the settings allow it, a node that finds Redis to be the trouble sets the mode of the
//! fleet to memory, as an operator would. What trouble is stands in `watch`; here it is read, acted on and told.

mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tollkeeper_account::{Ledger, Reading};
use tollkeeper_decide::{Fleet, News, Origin};
use tollkeeper_redis::{At, Redis, RedisOrigin, Value, cmd};
use tollkeeper_store::{Store, StoreError};

use crate::clock::Clock;
use crate::status::chain;

pub use watch::{MINUTE, Memory, Reason, Totals, Watch};

pub const BEAT: Duration = Duration::from_secs(1);

/// Memory fills slowly: it is asked for in one beat of so many.
const MEMORY_BEATS: usize = 5;

/// Nobody waits for it.
const MEMORY_PATIENCE: Duration = Duration::from_millis(250);

/// Whether this node may do it, and how often it did.
#[derive(Debug)]
pub struct Rollback {
    on: bool,
    counts: [AtomicU64; Reason::ALL.len()],
}

// === impl Rollback ===

impl Rollback {
    pub fn new(on: bool) -> Self {
        Self { on, counts: Default::default() }
    }

    pub fn is_on(&self) -> bool {
        self.on
    }

    /// By reason, since this node started.
    pub fn counts(&self) -> impl Iterator<Item = (Reason, u64)> {
        let counts = self.counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        Reason::ALL.into_iter().zip(counts)
    }

    fn count(&self, reason: Reason) {
        self.counts[reason as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// One node that looks after itself.
#[derive(Debug)]
pub struct Guard {
    pub rollback: Arc<Rollback>,
    pub node: Arc<str>,
    pub fleet: Arc<Fleet>,
    pub origin: RedisOrigin,
    pub ledger: Ledger,
    pub store: Store,
    pub clock: Clock,
}

// === impl Guard ===

impl Guard {
    /// Runs until dropped. `beat` is [`BEAT`], but for tests, which have less time.
    pub async fn watch(self, mut watch: Watch, beat: Duration) {
        let mut beats = interval(beat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut memory = None;
        for beat in (0..MEMORY_BEATS).cycle() {
            beats.tick().await;
            if self.fleet.modes.are_all_memory() {
                watch.clear();
                continue;
            }
            if beat == 0 {
                memory = fullest(self.origin.redis()).await;
            }
            let Some(reason) = watch.feed(self.totals(memory)) else { continue };
            if let Err(error) = self.roll_back(reason).await {
                tracing::error!("the mode cannot be set to memory: {}", chain(&error));
            }
        }
    }

    fn totals(&self, memory: Option<Memory>) -> Totals {
        let redis = self.origin.redis().stats();
        let failed_calls = redis.calls_failed + redis.calls_late;
        Totals { failed_calls, memory, ..counted(&self.ledger.read()) }
    }

    async fn roll_back(&self, reason: Reason) -> Result<(), StoreError> {
        let now = self.clock.now();
        let done = self.store.roll_back(&self.node, reason.word(), now).await?;
        // Another node may have been quicker.
        if done.value {
            self.rollback.count(reason);
            tracing::warn!(
                "limits are counted in memory from now on: {}; set the mode back with `tollkeeper mode redis`",
                reason.told()
            );
            self.origin.announce(&News::Changed);
        }
        Ok(())
    }
}

fn counted(reading: &Reading) -> Totals {
    Totals {
        requests: reading.responses.values().sum(),
        server_errors: reading.responses.range(500..).map(|(_, count)| count).sum(),
        timed: reading.decisions.buckets.iter().sum(),
        took_ns: reading.decisions.sum_ns,
        fallbacks: reading.fallbacks.iter().sum(),
        ..Totals::default()
    }
}

/// Of all servers, the one nearest to its bound.
async fn fullest(redis: &Redis) -> Option<Memory> {
    let mut fullest: Option<Memory> = None;
    for server in redis.servers() {
        let Some(tag) = server.tags.iter().next() else { continue };
        let mut info = cmd("INFO");
        info.arg("memory");
        let answer = redis.command(At::Tag(tag), &info, MEMORY_PATIENCE).await;
        let Some(memory) = answer.ok().as_ref().and_then(memory_in) else { continue };
        let fuller = |than: Memory| {
            u128::from(memory.used) * u128::from(than.max)
                > u128::from(than.used) * u128::from(memory.max)
        };
        if fullest.is_none_or(fuller) {
            fullest = Some(memory);
        }
    }
    fullest
}

/// A server without a bound is never full.
fn memory_in(info: &Value) -> Option<Memory> {
    let text = match info {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?,
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => text.as_str(),
        _ => return None,
    };
    let field = |name: &str| {
        let mut values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        values.next()?.trim().parse::<u64>().ok()
    };
    let (used, max) = (field("used_memory")?, field("maxmemory")?);
    (max > 0).then_some(Memory { used, max })
}

#[cfg(test)]
mod tests;
