//! A reply in the making: the lines of its head that change per request, and then its body.

use std::cell::Cell;

use http::StatusCode;
use http::header::{ALLOW, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use serde::Serialize;
use tollkeeper_wire::{Done, Failure, Json, Pagination, Success};

use super::fields::{Standing, write_number};
use super::reply::{JSON, PROBLEM_JSON, Reply};
use super::timing::Timing;
use crate::ids::RequestId;
use crate::status::Refusal;

pub static LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
static REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
static RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
pub static RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
static RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
static RETRY: HeaderName = RETRY_AFTER;
static CHALLENGE: HeaderName = WWW_AUTHENTICATE;
pub static TIMING: HeaderName = HeaderName::from_static("x-tollkeeper-timing");
/// Those that nearly every reply has.
pub static USUAL: [&HeaderName; 6] =
    [&LIMIT, &REMAINING, &RESET, &RATELIMIT_POLICY, &RATELIMIT, &TIMING];

/// Fits one limit's reply with all its headers; longer ones grow.
const SHEET_BYTES: usize = 896;
/// What each further limit adds to a reply that lists them.
const LIMIT_BYTES: usize = 256;

/// Paper that has grown beyond it is not kept.
const KEPT_MAX: usize = 32 << 10;

thread_local! {
    /// What the last reply of this thread that lists limits was written on, for the next one. It is the only thing of its size, so
    /// that the allocator would take a page for it and give it back, every time. Smaller ones it has at hand.
    static PAPER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

#[derive(Debug)]
pub struct Sheet {
    text: Vec<u8>,
}

/// Takes back what a reply was written on, once it has left.
pub fn keep_paper(mut text: Vec<u8>) {
    if (SHEET_BYTES + 1..=KEPT_MAX).contains(&text.capacity()) {
        text.clear();
        PAPER.set(text);
    }
}

// === impl Sheet ===

impl Sheet {
    pub fn new() -> Self {
        Self { text: Vec::with_capacity(SHEET_BYTES) }
    }

    /// With room for a reply that lists so many.
    pub fn for_limits(limits: usize) -> Self {
        if limits <= 1 {
            return Self::new();
        }
        let mut text = PAPER.take();
        text.reserve(SHEET_BYTES + limits.saturating_sub(1) * LIMIT_BYTES);
        Self { text }
    }

    /// One line of the head. A value that could be more than one is left out with its name.
    pub fn header(&mut self, name: &HeaderName, write: impl FnOnce(&mut Vec<u8>)) {
        let line = self.text.len();
        self.text.extend_from_slice(name.as_str().as_bytes());
        self.text.extend_from_slice(b": ");
        let value = self.text.len();
        write(&mut self.text);
        if self.text[value..].iter().any(u8::is_ascii_control) {
            self.text.truncate(line);
            return;
        }
        self.text.extend_from_slice(b"\r\n");
    }

    pub fn standing(&mut self, standing: &Standing<'_>) {
        self.standing_until(standing, standing.retry_after_s());
    }

    /// Where the time to wait is not this limit's alone.
    pub fn standing_until(&mut self, standing: &Standing<'_>, retry_after_s: Option<u64>) {
        let outcome = standing.outcome;
        self.header(&LIMIT, |out| write_number(outcome.limit, out));
        self.header(&REMAINING, |out| write_number(outcome.remaining, out));
        self.header(&RESET, |out| write_number(outcome.reset.seconds_up(), out));
        self.header(&RATELIMIT_POLICY, |out| standing.write_policy(out));
        self.header(&RATELIMIT, |out| standing.write_state(out));
        self.retry_after(retry_after_s);
    }

    pub fn retry_after(&mut self, seconds: Option<u64>) {
        if let Some(seconds) = seconds {
            self.header(&RETRY, |out| write_number(seconds, out));
        }
    }

    /// HTTP wants every 401 to say how to do better.
    pub fn challenge(&mut self, status: StatusCode) {
        if status == StatusCode::UNAUTHORIZED {
            self.header(&CHALLENGE, |out| out.extend_from_slice(b"Bearer"));
        }
    }

    pub fn timing(&mut self, timing: &Timing) {
        for read in timing.reads() {
            self.header(&TIMING, |out| read.write(out));
        }
    }

    pub fn success<T: Serialize>(self, id: RequestId, data: T) -> Reply {
        self.finish(StatusCode::OK, JSON, &Success::new(id.as_str(), data))
    }

    /// The same for what can be written without a serializer.
    pub fn written(mut self, id: RequestId, data: impl Json) -> Reply {
        let body_at = self.text.len();
        Success::new(id.as_str(), data).write(&mut self.text);
        Reply::new(StatusCode::OK, Some(JSON), self.text, body_at)
    }

    /// `meta` and nothing else.
    pub fn done(self, id: RequestId) -> Reply {
        self.finish(StatusCode::OK, JSON, &Done::new(id.as_str()))
    }

    /// An answer that was given before, word for word.
    pub fn again(mut self, body: &[u8]) -> Reply {
        let body_at = self.text.len();
        self.text.extend_from_slice(body);
        Reply::new(StatusCode::OK, Some(JSON), self.text, body_at)
    }

    pub fn page<T: Serialize>(self, id: RequestId, data: T, pagination: Pagination) -> Reply {
        self.finish(StatusCode::OK, JSON, &Success::new(id.as_str(), data).paged(pagination))
    }

    pub fn failure(mut self, id: RequestId, refusal: Refusal) -> Reply {
        self.retry_after(refusal.retry_after_s());
        let status = refusal.status();
        self.challenge(status);
        let allowed = match &refusal {
            Refusal::WrongMethod { allowed } => Some(HeaderValue::from_static(allowed)),
            _ => None,
        };
        let kind = if status == StatusCode::TOO_MANY_REQUESTS { PROBLEM_JSON } else { JSON };
        let mut reply =
            self.finish(status, kind, &Failure::new(id.as_str(), refusal.into_problem()));
        if let Some(allowed) = allowed {
            reply.insert(ALLOW, allowed);
        }
        reply
    }

    /// A refusal in the words of RFC 9457 alone, for clients that know nothing of our envelope.
    pub fn problem(self, status: StatusCode, body: &impl Serialize) -> Reply {
        self.finish(status, PROBLEM_JSON, body)
    }

    /// Headers and nothing else.
    pub fn empty(self, status: StatusCode) -> Reply {
        let body_at = self.text.len();
        Reply::new(status, None, self.text, body_at)
    }

    fn finish(mut self, status: StatusCode, kind: &'static str, body: &impl Serialize) -> Reply {
        let body_at = self.text.len();
        // Writing our own types into memory cannot fail; a half body would still be answered as one.
        let _ = serde_json::to_writer(&mut self.text, body);
        Reply::new(status, Some(kind), self.text, body_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_with_a_line_break_is_left_out() {
        let mut sheet = Sheet::new();
        sheet.header(&LIMIT, |out| out.extend_from_slice(b"1\r\nset-cookie: a=b"));
        let reply = sheet.empty(StatusCode::OK);
        assert_eq!(reply.head(), b"");
    }

    #[test]
    fn a_reply_is_written_on_what_the_last_one_left_and_says_nothing_of_it() {
        let written_on = |reply: &Reply| reply.body().as_ptr();
        let first = Sheet::for_limits(5).again(b"the first");
        let paper = written_on(&first);
        first.left();
        let second = Sheet::for_limits(5).again(b"2nd");
        assert_eq!((written_on(&second), second.body()), (paper, b"2nd".as_slice()));
        let third = Sheet::for_limits(5).again(b"third");
        assert_ne!(written_on(&third), paper, "the second has not left");
    }

    #[test]
    fn paper_that_has_grown_large_is_not_kept() {
        Sheet::for_limits(5).again(&vec![b' '; KEPT_MAX + 1]).left();
        assert!(Sheet::for_limits(5).text.capacity() <= KEPT_MAX);
    }
}
