//! A reply as bytes: one allocation holds the lines of its head that change per request, as they go out, and behind them its
//! body. Over HTTP/1.1 it leaves as it is; hyper is given the same in its own types.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::Full;

use super::fields::write_number;
use super::sheet;

pub const JSON: &str = "application/json";
/// Clients tell a 429 by this type, and every other refusal by plain JSON.
pub const PROBLEM_JSON: &str = "application/problem+json";

const HEADERS: usize = 16;

#[derive(Clone, Debug)]
pub struct Reply {
    status: StatusCode,
    kind: Option<&'static str>,
    /// Lines of the head, and from `body_at` on the body.
    text: Vec<u8>,
    body_at: usize,
    /// What few replies have.
    more: Option<Box<HeaderMap>>,
    /// No other one follows it on its connection.
    is_last: bool,
}

// === impl Reply ===

impl Reply {
    pub fn new(
        status: StatusCode,
        kind: Option<&'static str>,
        text: Vec<u8>,
        body_at: usize,
    ) -> Self {
        Self { status, kind, text, body_at, more: None, is_last: false }
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The lines of its head that are of this reply alone.
    #[cfg(test)]
    pub fn head(&self) -> &[u8] {
        &self.text[..self.body_at]
    }

    pub fn body(&self) -> &[u8] {
        &self.text[self.body_at..]
    }

    pub fn set_kind(&mut self, kind: &'static str) {
        self.kind = Some(kind);
    }

    pub fn insert(&mut self, name: HeaderName, value: HeaderValue) {
        self.more.get_or_insert_default().insert(name, value);
    }

    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// The connection ends behind it.
    pub fn end(&mut self) {
        self.is_last = true;
    }

    /// It does not: over HTTP/2 that is not said in a header.
    pub fn go_on(&mut self) {
        self.is_last = false;
    }

    /// All of it, as HTTP/1.1 has it.
    pub fn write(&self, date: &[u8], out: &mut Vec<u8>) {
        out.reserve(self.text.len() + 256);
        if self.status == StatusCode::OK {
            out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        } else {
            out.extend_from_slice(b"HTTP/1.1 ");
            out.extend_from_slice(self.status.as_str().as_bytes());
            out.push(b' ');
            out.extend_from_slice(self.status.canonical_reason().unwrap_or("").as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        if let Some(kind) = self.kind {
            write_line("content-type", kind.as_bytes(), out);
        }
        out.extend_from_slice(&self.text[..self.body_at]);
        for (name, value) in self.more.iter().flat_map(|more| more.iter()) {
            write_line(name.as_str(), value.as_bytes(), out);
        }
        if self.is_last {
            write_line("connection", b"close", out);
        }
        out.extend_from_slice(b"content-length: ");
        write_number((self.text.len() - self.body_at) as u64, out);
        out.extend_from_slice(b"\r\ndate: ");
        out.extend_from_slice(date);
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(self.body());
    }

    /// The same for hyper.
    pub fn into_response(self) -> Response<Full<Bytes>> {
        let text = Bytes::from(self.text);
        let mut headers = self.more.map_or_else(|| HeaderMap::with_capacity(HEADERS), |more| *more);
        let (mut from, lines) = (0, text.slice(..self.body_at));
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let end = from + line.len();
            let name_end = from + line.iter().position(|byte| *byte == b':').unwrap_or(0);
            let value =
                lines.slice((name_end + 2).min(end)..end.saturating_sub(2).max(name_end + 2));
            if let (Some(name), Ok(value)) =
                (name_of(&lines[from..name_end]), HeaderValue::from_maybe_shared(value))
            {
                headers.append(name, value);
            }
            from = end;
        }
        if let Some(kind) = self.kind {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        if self.is_last {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let mut response = Response::new(Full::new(text.slice(self.body_at..)));
        *response.status_mut() = self.status;
        *response.headers_mut() = headers;
        response
    }

    /// It was written: the next one may be put together where it was.
    pub fn left(self) {
        sheet::keep_paper(self.text);
    }
}

fn write_line(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

fn name_of(text: &[u8]) -> Option<HeaderName> {
    let usual = sheet::USUAL.iter().find(|usual| usual.as_str().as_bytes() == text);
    usual.map(|usual| (*usual).clone()).or_else(|| HeaderName::from_bytes(text).ok())
}

/// A plain text answer, for probes and scrapers.
pub fn plain(status: StatusCode, kind: &'static str, text: impl Into<String>) -> Reply {
    Reply::new(status, Some(kind), text.into().into_bytes(), 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use http::header::ALLOW;

    use super::super::sheet::{LIMIT, RATELIMIT, Sheet, TIMING};
    use super::*;

    fn reply() -> Reply {
        let mut sheet = Sheet::new();
        sheet.header(&LIMIT, |out| write_number(10, out));
        sheet.header(&RATELIMIT, |out| out.extend_from_slice(b"\"api: v2\";r=9;t=1"));
        sheet.header(&TIMING, |out| out.extend_from_slice(b""));
        sheet.header(&TIMING, |out| out.extend_from_slice(b"b"));
        let mut reply = sheet.again(b"{\"ok\":true}");
        reply.insert(ALLOW, HeaderValue::from_static("POST"));
        reply.end();
        reply
    }

    #[test]
    fn a_reply_leaves_as_http_has_it() {
        let mut out = Vec::new();
        reply().write(b"Thu, 01 Jan 1970 00:00:00 GMT", &mut out);
        let lines = [
            "HTTP/1.1 200 OK",
            "content-type: application/json",
            "x-ratelimit-limit: 10",
            "ratelimit: \"api: v2\";r=9;t=1",
            "x-tollkeeper-timing: ",
            "x-tollkeeper-timing: b",
            "allow: POST",
            "connection: close",
            "content-length: 11",
            "date: Thu, 01 Jan 1970 00:00:00 GMT",
            "",
            "{\"ok\":true}",
        ];
        assert_eq!(String::from_utf8(out).unwrap(), lines.join("\r\n"));
    }

    #[test]
    fn hyper_is_given_the_same_headers() {
        let response = reply().into_response();
        let headers = response.headers();
        let told = |name: &HeaderName| -> Vec<_> {
            headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
        };
        assert_eq!(told(&LIMIT), ["10"]);
        assert_eq!(told(&RATELIMIT), ["\"api: v2\";r=9;t=1"]);
        assert_eq!(told(&TIMING), ["", "b"]);
        assert_eq!(told(&ALLOW), ["POST"]);
        assert_eq!(told(&CONTENT_TYPE), [JSON]);
        assert_eq!(told(&CONNECTION), ["close"]);
        assert_eq!(headers.len(), 7);
    }
}
