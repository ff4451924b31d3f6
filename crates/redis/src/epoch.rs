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
use crate::script::Arg;
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

/// Tags of which something may not be known to a server.
#[derive(Debug)]
struct Doubts {
    /// When another process was last heard in the place of this one, by this one's clock.
    heard_ms: Option<u64>,
    /// Another process wrote their records, or none did.
    foreign: Vec<u16>,
    /// This one did, and did not learn for a whole time since another was last heard.
    stale: Vec<u16>,
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
    let Doubts { heard_ms, foreign, stale } = doubts(fresh, &tags).await?;
    let doubtful: Vec<u16> = foreign.iter().chain(&stale).copied().collect();
    // Many at once: one after the other would take longer than a server may that is not next door.
    for some in doubtful.chunks(AT_ONCE) {
        for renewed in join_all(some.iter().map(|tag| renew(fresh, *tag, heard_ms))).await {
            renewed?;
        }
    }
    let (address, all) = (fresh.address(), tags.len());
    if !foreign.is_empty() {
        let parts = foreign.len();
        tracing::info!(
            "redis at {address} has no history of its own for {parts} of {all} parts: nodes tell it theirs"
        );
    }
    if !stale.is_empty() {
        let parts = stale.len();
        tracing::info!(
            "redis at {address} may not know what another counted in its place of {parts} of {all} parts: nodes tell it"
        );
    }
    Ok(())
}

/// Usually there are none, and one round trip says so.
async fn doubts(fresh: &Fresh, tags: &[u16]) -> Result<Doubts, CallError> {
    // Read before the question is sent: what the answer takes makes that moment a later one, and never an earlier.
    let ago = fresh.another_was_heard();
    let gets = tags.iter().map(|tag| cmd("GET").arg(epoch_key(*tag)).take());
    let questions: Vec<_> = std::iter::once(cmd("TIME")).chain(gets).collect();
    let mut answers = fresh.commands(&questions, PATIENCE).await?.into_iter();
    let time = answers.next().unwrap_or_else(|| Err(CallError::Strange("no time".into())))?;
    let heard_ms = ago.map(|ago| moment_ms(&time, ago)).transpose()?;
    let mut doubts = Doubts { heard_ms, foreign: Vec::new(), stale: Vec::new() };
    for (tag, value) in tags.iter().zip(answers) {
        match own(&value?, fresh.run_id()) {
            None => doubts.foreign.push(*tag),
            Some(until) if heard_ms.is_some_and(|heard| until <= heard + LEARN_MS) => {
                doubts.stale.push(*tag);
            }
            Some(_) => {}
        }
    }
    Ok(doubts)
}

/// Changes nothing where another node did so since it was looked at.
async fn renew(fresh: &Fresh, tag: u16, heard_ms: Option<u64>) -> Result<Value, CallError> {
    let heard = heard_ms.map(Arg::from);
    fresh.run(EPOCH, &[epoch_key(tag).as_bytes()], heard.as_slice(), PATIENCE).await
}

/// Until when this process learnt what others counted; `None` where another wrote it, or nobody.
fn own(epoch: &Value, run_id: &str) -> Option<u64> {
    let Value::BulkString(text) = epoch else { return None };
    let until = text.strip_prefix(run_id.as_bytes())?.strip_prefix(b"|")?;
    std::str::from_utf8(until).ok()?.parse().ok()
}

/// What the clock said so long ago, rounded up.
fn moment_ms(time: &Value, ago: Duration) -> Result<u64, CallError> {
    let (seconds, us): (u64, u64) = redis::from_redis_value(time.clone())
        .map_err(|_| CallError::Strange(format!("{time:?} for a time")))?;
    let ago_us = u64::try_from(ago.as_micros()).unwrap_or(u64::MAX);
    Ok((seconds * 1_000_000 + us).saturating_sub(ago_us).div_ceil(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_of_another_process_or_of_none_is_nobodys() {
        let of = |text: &str| own(&Value::BulkString(text.into()), "ab12");
        assert_eq!(of("ab12|1700"), Some(1700));
        for strange in ["ab1|1700", "ab123|1700", "ab12", "ab12|", "ab12|x", "|1700", ""] {
            assert_eq!(of(strange), None, "{strange}");
        }
        assert_eq!(own(&Value::Nil, "ab12"), None);
    }

    #[test]
    fn a_moment_is_by_the_clock_that_was_asked_and_never_too_early() {
        let time = |seconds: &str, us: &str| {
            Value::Array(vec![Value::BulkString(seconds.into()), Value::BulkString(us.into())])
        };
        let ago = Duration::from_micros;
        assert_eq!(moment_ms(&time("1700", "500000"), ago(0)), Ok(1_700_500));
        assert_eq!(moment_ms(&time("1700", "500000"), ago(1_999)), Ok(1_700_499));
        assert_eq!(moment_ms(&time("1", "0"), Duration::MAX), Ok(0));
        assert!(moment_ms(&Value::Nil, ago(0)).is_err());
    }
}
