//! Replies as bytes. One allocation holds the body and the values of all headers that change per request.

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;
use tollkeeper_wire::{Done, Failure, Pagination, Success};

use super::fields::{Standing, write_number};
use super::timing::Timing;
use crate::ids::RequestId;
use crate::status::Refusal;

pub type Reply = Response<Full<Bytes>>;

pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Clients tell a 429 by this type, and every other refusal by plain JSON.
pub const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

static LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
static REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
static RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
static RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
static RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
static RETRY: HeaderName = RETRY_AFTER;
static TIMING: HeaderName = HeaderName::from_static("x-tollkeeper-timing");

/// Fits one limit's reply with all its headers; longer ones grow.
const SHEET_BYTES: usize = 640;
/// What each further limit adds to a reply that lists them.
const LIMIT_BYTES: usize = 256;
const HEADERS: usize = 16;

/// A reply in the making: text first, cut into header values and a body at the end.
#[derive(Debug)]
pub struct Sheet {
    text: Vec<u8>,
    cuts: smallvec::SmallVec<[(&'static HeaderName, usize); 12]>,
}

// === impl Sheet ===

impl Sheet {
    pub fn new() -> Self {
        Self::for_limits(1)
    }

    /// With room for a reply that lists so many.
    pub fn for_limits(limits: usize) -> Self {
        let bytes = SHEET_BYTES + limits.saturating_sub(1) * LIMIT_BYTES;
        Self { text: Vec::with_capacity(bytes), cuts: smallvec::SmallVec::new() }
    }

    pub fn header(&mut self, name: &'static HeaderName, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.text);
        self.cuts.push((name, self.text.len()));
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

    pub fn timing(&mut self, timing: &Timing) {
        for read in timing.reads() {
            self.header(&TIMING, |out| read.write(out));
        }
    }

    pub fn success<T: Serialize>(self, id: RequestId, data: T) -> Reply {
        self.finish(StatusCode::OK, JSON, &Success::new(id.as_str(), data))
    }

    /// `meta` and nothing else.
    pub fn done(self, id: RequestId) -> Reply {
        self.finish(StatusCode::OK, JSON, &Done::new(id.as_str()))
    }

    /// An answer that was given before, word for word.
    pub fn again(mut self, body: &[u8]) -> Reply {
        let body_at = self.text.len();
        self.text.extend_from_slice(body);
        let mut reply = self.cut(StatusCode::OK, body_at);
        reply.headers_mut().insert(CONTENT_TYPE, JSON);
        reply
    }

    pub fn page<T: Serialize>(self, id: RequestId, data: T, pagination: Pagination) -> Reply {
        self.finish(StatusCode::OK, JSON, &Success::new(id.as_str(), data).paged(pagination))
    }

    pub fn failure(mut self, id: RequestId, refusal: Refusal) -> Reply {
        self.retry_after(refusal.retry_after_s());
        let status = refusal.status();
        let allowed = match &refusal {
            Refusal::WrongMethod { allowed } => Some(HeaderValue::from_static(allowed)),
            _ => None,
        };
        let kind = if status == StatusCode::TOO_MANY_REQUESTS { PROBLEM_JSON } else { JSON };
        let mut reply =
            self.finish(status, kind, &Failure::new(id.as_str(), refusal.into_problem()));
        if let Some(allowed) = allowed {
            reply.headers_mut().insert(ALLOW, allowed);
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
        self.cut(status, body_at)
    }

    fn finish(mut self, status: StatusCode, kind: HeaderValue, body: &impl Serialize) -> Reply {
        let body_at = self.text.len();
        // Writing our own types into memory cannot fail; a half body would still be answered as one.
        let _ = serde_json::to_writer(&mut self.text, body);
        let mut reply = self.cut(status, body_at);
        reply.headers_mut().insert(CONTENT_TYPE, kind);
        reply
    }

    fn cut(self, status: StatusCode, body_at: usize) -> Reply {
        let text = Bytes::from(self.text);
        let mut headers = HeaderMap::with_capacity(HEADERS);
        let mut from = 0;
        for (name, to) in self.cuts {
            if let Ok(value) = HeaderValue::from_maybe_shared(text.slice(from..to)) {
                headers.append(name, value);
            }
            from = to;
        }
        let mut reply = Response::new(Full::new(text.slice(body_at..)));
        *reply.status_mut() = status;
        *reply.headers_mut() = headers;
        reply
    }
}

/// A plain text answer, for probes and scrapers.
pub fn plain(status: StatusCode, kind: &'static str, text: impl Into<String>) -> Reply {
    let mut body = BytesMut::new();
    body.put_slice(text.into().as_bytes());
    let mut reply = Response::new(Full::new(body.freeze()));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}
