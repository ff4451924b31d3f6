//! Lost history: every tag has an epoch that names the server process which wrote its records. Another process, or none,
//! and nothing is granted until nodes have told what they know.

use std::time::Duration;

use redis::{Value, cmd};
use tokio::task::JoinSet;
use tollkeeper_core::Millis;
use tollkeeper_decide::{History, join_all};

use crate::client::Redis;
use crate::error::CallError;
use crate::fresh::{Checking, Fresh, OnVetted};
use crate::origin::EPOCH;
use crate::take::epoch_key;

/// What one step of checking or renewing a server's epochs may take. One that takes longer hangs.
const PATIENCE: Duration = Duration::from_millis(300);

/// As the script has it: how long a new epoch learns.
const LEARN_MS: u64 = 1_000;

/// Epochs that are renewed at once.
const AT_ONCE: usize = 128;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    now_ms: u64,
    learns_until_ms: u64,
}

/// Checks every tag of a server before the first call goes there.
#[derive(Debug)]
pub(crate) struct Renewal;

// === impl Epoch ===

impl Epoch {
    /// How a tag's epoch stands; one of another process, or none, is renewed by this.
    pub(crate) async fn ask(redis: &Redis, tag: u16) -> Result<Self, CallError> {
        let key = epoch_key(tag);
        let value = redis.run(tag, EPOCH, &[key.as_bytes()], &[], PATIENCE).await?;
        Self::read(&value).ok_or_else(|| CallError::Strange(format!("{value:?} for an epoch")))
    }

    fn read(value: &Value) -> Option<Self> {
        let Value::Array(parts) = value else { return None };
        let [Value::Int(now), Value::Int(until)] = parts[..] else { return None };
        Some(Self { now_ms: u64::try_from(now).ok()?, learns_until_ms: u64::try_from(until).ok()? })
    }

    /// What the server's clock said.
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    pub(crate) fn is_learning(&self) -> bool {
        self.now_ms < self.learns_until_ms
    }

    /// Learning is prolonged while nodes have something new to tell, but never ends less than its length after it began.
    pub(crate) fn history(&self) -> History {
        if !self.is_learning() {
            return History::Whole;
        }
        let began = Millis(self.learns_until_ms.saturating_sub(LEARN_MS));
        History::Learning { began, now: Millis(self.now_ms) }
    }

    /// It began with this very question.
    pub(crate) fn is_new(&self) -> bool {
        self.learns_until_ms >= self.now_ms + LEARN_MS
    }
}

pub(crate) async fn renew_all(redis: &Redis, tags: Vec<u16>) {
    let mut renewing = JoinSet::new();
    for tag in tags {
        if renewing.len() >= AT_ONCE {
            renewing.join_next().await;
        }
        let redis = redis.clone();
        renewing.spawn(async move { Epoch::ask(&redis, tag).await.map(|_| ()) });
    }
    while renewing.join_next().await.is_some() {}
}

// === impl Renewal ===

impl OnVetted for Renewal {
    fn vetted<'a>(&'a self, fresh: &'a Fresh) -> Checking<'a> {
        Box::pin(check(fresh))
    }
}

async fn check(fresh: &Fresh) -> Result<(), CallError> {
    let tags: Vec<u16> = fresh.tags().iter().collect();
    if fresh.has_returned() {
        return forget(fresh, &tags).await;
    }
    let foreign = foreign(fresh, &tags).await?;
    // Many at once: one after the other would take longer than a server may that is not next door.
    for some in foreign.chunks(AT_ONCE) {
        for renewed in join_all(some.iter().map(|tag| renew(fresh, *tag))).await {
            renewed?;
        }
    }
    let renewed = foreign.len();
    if renewed > 0 {
        tracing::info!(
            "redis at {} has no history of its own for {renewed} of {} parts: nodes tell it theirs",
            fresh.address(),
            tags.len()
        );
    }
    Ok(())
}

/// What another counted in its place is not in its records, though all of them are its own: it came back without a look at
/// its successor. Each epoch begins anew with the first call that misses it; here that would be done again by every attempt
/// to connect.
async fn forget(fresh: &Fresh, tags: &[u16]) -> Result<(), CallError> {
    let dels: Vec<_> = tags.iter().map(|tag| cmd("DEL").arg(epoch_key(*tag)).take()).collect();
    for gone in fresh.commands(&dels, PATIENCE).await? {
        gone?;
    }
    tracing::info!(
        "redis at {} is back, and another was in its place: nodes tell it what they know",
        fresh.address()
    );
    Ok(())
}

/// Which of them another process wrote, or none. Usually all are of this one, and one round trip says so.
async fn foreign(fresh: &Fresh, tags: &[u16]) -> Result<Vec<u16>, CallError> {
    let gets: Vec<_> = tags.iter().map(|tag| cmd("GET").arg(epoch_key(*tag)).take()).collect();
    let mut foreign = Vec::new();
    for (tag, value) in tags.iter().zip(fresh.commands(&gets, PATIENCE).await?) {
        if !matches!(value?, Value::BulkString(text) if is_of(&text, fresh.run_id())) {
            foreign.push(*tag);
        }
    }
    Ok(foreign)
}

async fn renew(fresh: &Fresh, tag: u16) -> Result<Value, CallError> {
    fresh.run(EPOCH, &[epoch_key(tag).as_bytes()], &[], PATIENCE).await
}

fn is_of(epoch: &[u8], run_id: &str) -> bool {
    epoch.strip_prefix(run_id.as_bytes()).is_some_and(|rest| rest.starts_with(b"|"))
}
