//! `Idempotency-Key` on calls that spend: a retry within a minute gets the first answer again and spends nothing.
//! Deciding and remembering are one step under one lock, so there is no moment at which a retry could slip between.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use http::header::{HeaderMap, HeaderName};
use tollkeeper_core::Millis;
use tollkeeper_wire::FieldError;

use super::reply::Reply;
use crate::status::Refusal;

pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub const KEY_BYTES_MAX: usize = 255;
/// Longer than any client goes on retrying one call: the SDKs give up after some ten seconds.
const REMEMBERED_MS: u64 = 60_000;
/// At most so many answers and so many bytes of them, over all shards. The oldest makes room before its minute is
/// over; its retries would spend again, so it is counted.
const REMEMBERED_MAX: usize = 65_536;
const BYTES_MAX: usize = 64 << 20;
const SHARDS: usize = 16;

/// Shared by all workers: a retry may come over another connection.
#[derive(Debug)]
pub struct Idempotency {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    forgotten: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    answers: HashMap<Scope, Remembered>,
    bytes: usize,
    /// Oldest first.
    order: VecDeque<(Millis, Scope)>,
}

/// Whose key, for which route: the same text from another root key is another key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Scope {
    root_key_id: Box<str>,
    route: &'static str,
    key: Box<[u8]>,
}

#[derive(Debug)]
struct Remembered {
    body: u64,
    reply: Reply,
    at: Millis,
}

/// One request's wish to be answered once.
#[derive(Clone, Copy, Debug)]
pub struct Once<'a> {
    pub root_key_id: &'a str,
    pub route: &'static str,
    pub key: &'a [u8],
    pub body: &'a [u8],
    pub now: Millis,
}

/// The header's value, if there is one; refused when it is empty, too long or not plain text, or there is another one.
pub fn key_of(headers: &HeaderMap) -> Result<Option<&[u8]>, FieldError> {
    let mut lines = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = lines.next() else { return Ok(None) };
    let wrong = |message, fix| Err(FieldError::new("header.Idempotency-Key", message, fix));
    // Somebody on the way may have believed the other one.
    if lines.any(|other| other != value) {
        return wrong(
            "There are two that differ.",
            "Send one, the same with every retry.".to_owned(),
        );
    }
    let key = value.as_bytes();
    let plain = key.iter().all(|byte| (b' '..=b'~').contains(byte));
    if (1..=KEY_BYTES_MAX).contains(&key.len()) && plain {
        return Ok(Some(key));
    }
    let fix = format!("Send 1 to {KEY_BYTES_MAX} printable ASCII characters, or no such header.");
    wrong("Is empty, too long or not plain text.", fix)
}

/// A request whose body is refused for its fields may have a bad key too: that is said at once.
#[cold]
pub fn with_key_fault(headers: &HeaderMap, refusal: Refusal) -> Refusal {
    let Refusal::Fields(mut errors) = refusal else { return refusal };
    errors.extend(key_of(headers).err());
    Refusal::Fields(errors)
}

// === impl Idempotency ===

impl Idempotency {
    pub fn new() -> Self {
        let forgotten = AtomicU64::new(0);
        Self { shards: Default::default(), hasher: RandomState::new(), forgotten }
    }

    /// Answers that left before their minute was over.
    pub fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Relaxed)
    }

    /// The remembered answer, or the one that `decide` makes now.
    pub fn answer(&self, once: Once<'_>, decide: impl FnOnce() -> Reply) -> Result<Reply, Refusal> {
        let scope =
            Scope { root_key_id: once.root_key_id.into(), route: once.route, key: once.key.into() };
        let body = self.hasher.hash_one(once.body);
        let at = usize::try_from(self.hasher.hash_one(&scope) % SHARDS as u64).unwrap_or(0);
        let mut shard = self.shards[at].lock().unwrap_or_else(PoisonError::into_inner);
        shard.forget_old(once.now);
        match shard.answers.get(&scope) {
            Some(remembered) if remembered.body == body => Ok(remembered.reply.clone()),
            Some(_) => Err(Refusal::IdempotencyKeyReused),
            None => {
                let reply = decide();
                let early = shard.make_room(size_of_reply(&reply));
                self.forgotten.fetch_add(early, Ordering::Relaxed);
                shard.remember(scope, Remembered { body, reply: reply.clone(), at: once.now });
                Ok(reply)
            }
        }
    }
}

// === impl Shard ===

impl Shard {
    fn remember(&mut self, scope: Scope, answer: Remembered) {
        self.bytes += size_of_reply(&answer.reply);
        self.order.push_back((answer.at, scope.clone()));
        self.answers.insert(scope, answer);
    }

    fn forget_old(&mut self, now: Millis) {
        while self.order.front().is_some_and(|(at, _)| now.since(*at) > REMEMBERED_MS) {
            self.forget_oldest();
        }
    }

    /// Forgets from the oldest on until there is room for so many bytes; says how many went.
    fn make_room(&mut self, bytes: usize) -> u64 {
        let mut gone = 0;
        let full = |shard: &Self| {
            shard.order.len() >= REMEMBERED_MAX / SHARDS || shard.bytes + bytes > BYTES_MAX / SHARDS
        };
        while !self.order.is_empty() && full(self) {
            self.forget_oldest();
            gone += 1;
        }
        gone
    }

    fn forget_oldest(&mut self) {
        let oldest = self.order.pop_front().and_then(|(_, scope)| self.answers.remove(&scope));
        if let Some(answer) = oldest {
            self.bytes -= size_of_reply(&answer.reply);
        }
    }
}

/// Body and headers share one allocation; the rest is bookkeeping of about this size.
fn size_of_reply(reply: &Reply) -> usize {
    const BOOKKEEPING: usize = 2 << 10;
    reply.body().len().saturating_add(BOOKKEEPING)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use http::StatusCode;

    use super::super::reply::plain;
    use super::*;

    fn once<'a>(key: &'a str, body: &'a str, now: u64) -> Once<'a> {
        let (key, body) = (key.as_bytes(), body.as_bytes());
        Once { root_key_id: "rk_1", route: "/v2/ratelimit.limit", key, body, now: Millis(now) }
    }

    /// Answers with how many decisions were made so far.
    fn asked(calls: &Idempotency, once: Once<'_>, made: &mut u32) -> Result<u32, Refusal> {
        let reply = calls.answer(once, || {
            *made += 1;
            plain(StatusCode::OK, "text/plain", "x".repeat(*made as usize))
        })?;
        Ok(u32::try_from(reply.body().len()).unwrap())
    }

    #[test]
    fn a_retry_gets_the_first_answer_and_decides_nothing() {
        let (calls, mut made) = (Idempotency::new(), 0);
        assert_eq!(asked(&calls, once("a", "{}", 1), &mut made).unwrap(), 1);
        assert_eq!(asked(&calls, once("a", "{}", 60_000), &mut made).unwrap(), 1);
        assert_eq!(asked(&calls, once("b", "{}", 60_000), &mut made).unwrap(), 2);
        let other_owner = Once { root_key_id: "rk_2", ..once("a", "{}", 2) };
        assert_eq!(asked(&calls, other_owner, &mut made).unwrap(), 3);
    }

    #[test]
    fn the_same_key_with_another_body_is_a_conflict() {
        let (calls, mut made) = (Idempotency::new(), 0);
        asked(&calls, once("a", "{}", 1), &mut made).unwrap();
        let refused = asked(&calls, once("a", "{ }", 2), &mut made).unwrap_err();
        assert_eq!((refused.status(), made), (StatusCode::CONFLICT, 1));
    }

    #[test]
    fn a_key_is_forgotten_after_a_minute_and_memory_is_bounded() {
        let (calls, mut made) = (Idempotency::new(), 0);
        asked(&calls, once("a", "{}", 1), &mut made).unwrap();
        assert_eq!(asked(&calls, once("a", "{}", 60_002), &mut made).unwrap(), 2);
        for i in 0..2 * REMEMBERED_MAX {
            let key = i.to_string();
            let _ =
                calls.answer(once(&key, "{}", 60_003), || plain(StatusCode::OK, "text/plain", ""));
        }
        let held: usize =
            calls.shards.iter().map(|shard| shard.lock().unwrap().answers.len()).sum();
        assert!(held <= REMEMBERED_MAX);
        assert!(calls.forgotten() >= (2 * REMEMBERED_MAX - held - 1) as u64, "none goes unseen");
        let large = "x".repeat(BYTES_MAX / SHARDS / 4);
        for i in 0..1000 {
            let key = i.to_string();
            let _ = calls.answer(once(&key, "", 60_004), || {
                plain(StatusCode::OK, "text/plain", large.clone())
            });
        }
        let bytes: usize = calls.shards.iter().map(|shard| shard.lock().unwrap().bytes).sum();
        assert!(bytes <= BYTES_MAX);
    }
}
