//! Bounds on callers of the API themselves: changes by a root key in a second, counted in this process only, for they guard
//! the database and sell nothing; and what a tenant is told of its calls in a minute, which are a limit like any other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{HeaderName, HeaderValue};
use tollkeeper_core::{Cost, Limit, Millis, Outcome, Quota, State, Width};

use super::reply::Reply;
use crate::status::Refusal;

const SECOND_MS: u64 = 1_000;
/// Beyond so many callers, those who have been quiet for long enough are forgotten.
const CALLERS_MAX: usize = 10_000;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// Shared by all workers.
#[derive(Debug)]
pub struct Throttles {
    root_keys: Counters,
    /// A change is one transaction with its audit row and announcements, of which SQLite makes a few thousand in a
    /// second: one root key that runs wild leaves most of them to everybody else.
    changes_per_second: u64,
}

#[derive(Debug, Default)]
struct Counters(Mutex<HashMap<Arc<str>, (Limit, State)>>);

/// Where a tenant stands in its minute.
#[derive(Clone, Copy, Debug)]
pub struct TenantStanding {
    outcome: Outcome,
    now: Millis,
}

// === impl Throttles ===

impl Throttles {
    pub fn new(changes_per_second: u64) -> Self {
        Self { root_keys: Counters::default(), changes_per_second }
    }

    /// Counts one change by this root key, or says when there is room for it.
    pub fn change(&self, root_key_id: &Arc<str>, now: Millis) -> Result<(), Refusal> {
        let Some((quota, width)) =
            Quota::new(self.changes_per_second).zip(Width::from_millis(SECOND_MS))
        else {
            return Ok(());
        };
        let outcome =
            self.root_keys.spend(root_key_id, Limit::token_bucket(quota, width, None), now);
        match retry_after_s(&outcome, now) {
            Some(retry_after_s) => Err(Refusal::ChangesLimited { retry_after_s }),
            None => Ok(()),
        }
    }
}

fn retry_after_s(outcome: &Outcome, now: Millis) -> Option<u64> {
    outcome.retry_after_ms(now).map(|ms| ms.div_ceil(1_000).max(1))
}

// === impl Counters ===

impl Counters {
    fn spend(&self, caller: &Arc<str>, limit: Limit, now: Millis) -> Outcome {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counters.len() >= CALLERS_MAX && !counters.contains_key(caller) {
            counters.retain(|_, (limit, state)| state.idle_at(limit) > now);
        }
        let fresh = || (limit, State::fresh(&limit));
        let (counted, state) = counters.entry(Arc::clone(caller)).or_insert_with(fresh);
        *counted = limit;
        let before = std::mem::replace(state, State::fresh(&limit));
        let (outcome, after) = before.spend(&limit, Cost::ONE, now);
        *state = after;
        outcome
    }
}

// === impl TenantStanding ===

impl TenantStanding {
    pub fn new(outcome: Outcome, now: Millis) -> Self {
        Self { outcome, now }
    }

    pub fn refusal(&self) -> Option<Refusal> {
        let retry_after_s = retry_after_s(&self.outcome, self.now)?;
        Some(Refusal::TenantLimited { retry_after_s })
    }

    /// `RateLimit-*`, with the reset in seconds from now: beside, and not instead of, what the answer says about limits.
    pub fn write(&self, reply: &mut Reply) {
        let reset_s = self.outcome.reset.since(self.now).div_ceil(1_000);
        reply.insert(LIMIT, HeaderValue::from(self.outcome.limit));
        reply.insert(REMAINING, HeaderValue::from(self.outcome.remaining));
        reply.insert(RESET, HeaderValue::from(reset_s));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn denied(throttles: &Throttles, root_key: &str, now: u64) -> Option<u64> {
        throttles.change(&root_key.into(), Millis(now)).err().and_then(|no| no.retry_after_s())
    }

    #[test]
    fn a_root_key_changes_200_things_at_once_and_another_every_5_ms() {
        let throttles = Throttles::new(200);
        assert!((0..200).all(|_| denied(&throttles, "rk_1", 1_000).is_none()));
        assert_eq!(denied(&throttles, "rk_1", 1_000), Some(1));
        assert_eq!(denied(&throttles, "rk_2", 1_000), None);
        assert_eq!(denied(&throttles, "rk_1", 1_004), Some(1));
        assert_eq!(denied(&throttles, "rk_1", 1_005), None);
    }

    #[test]
    fn how_many_changes_there_are_in_a_second_is_a_setting() {
        let throttles = Throttles::new(2);
        assert!((0..2).all(|_| denied(&throttles, "rk_1", 1_000).is_none()));
        assert_eq!(denied(&throttles, "rk_1", 1_499), Some(1));
        assert_eq!(denied(&throttles, "rk_1", 1_500), None);
    }

    #[test]
    fn callers_who_have_gone_quiet_take_no_room() {
        let throttles = Throttles::new(200);
        for at in 0..3 * CALLERS_MAX {
            let now = 10_000 * (1 + at as u64 / CALLERS_MAX as u64);
            assert!(denied(&throttles, &at.to_string(), now).is_none());
        }
        assert!(throttles.root_keys.0.lock().unwrap().len() <= CALLERS_MAX);
    }
}
