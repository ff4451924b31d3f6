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
    more: Option<Box<More>>,
    /// No other one follows it on its connection.
    is_last: bool,
}

#[derive(Clone, Debug, Default)]
struct More {
    headers: HeaderMap,
    /// A body that is the same for all who ask, in place of one of its own: however many wait to read it, it is there once.
    body: Option<Bytes>,
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
        self.shared_body().map_or(&self.text[self.body_at..], |body| body)
    }

    /// The body, where it is not written with the head.
    pub fn shared_body(&self) -> Option<&Bytes> {
        self.more.as_ref()?.body.as_ref()
    }

    pub fn set_kind(&mut self, kind: &'static str) {
        self.kind = Some(kind);
    }

    pub fn insert(&mut self, name: HeaderName, value: HeaderValue) {
        self.more.get_or_insert_default().headers.insert(name, value);
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

    /// All of it, as HTTP/1.1 has it, but for a body that it shares.
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
        for (name, value) in self.more.iter().flat_map(|more| more.headers.iter()) {
            write_line(name.as_str(), value.as_bytes(), out);
        }
        if self.is_last {
            write_line("connection", b"close", out);
        }
        out.extend_from_slice(b"content-length: ");
        write_number(self.body().len() as u64, out);
        out.extend_from_slice(b"\r\ndate: ");
        out.extend_from_slice(date);
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(&self.text[self.body_at..]);
    }

    /// The same for hyper.
    pub fn into_response(self) -> Response<Full<Bytes>> {
        let text = Bytes::from(self.text);
        let more = self.more.map_or_else(
            || More { headers: HeaderMap::with_capacity(HEADERS), body: None },
            |more| *more,
        );
        let More { mut headers, body } = more;
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
        let body = body.unwrap_or_else(|| text.slice(self.body_at..));
        let mut response = Response::new(Full::new(body));
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

/// The same with a body that is there once for all who ask.
pub fn shared(status: StatusCode, kind: &'static str, body: Bytes) -> Reply {
    let more = More { headers: HeaderMap::new(), body: Some(body) };
    let reply = Reply::new(status, Some(kind), Vec::new(), 0);
    Reply { more: Some(Box::new(more)), ..reply }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use http::header::ALLOW;
    use http_body_util::BodyExt;

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

    #[tokio::test]
    async fn a_shared_body_is_copied_for_nobody_and_told_of_by_its_length() {
        let body = Bytes::from_static(b"the same for all");
        let reply = shared(StatusCode::OK, JSON, body.clone());
        assert_eq!(reply.body().as_ptr(), body.as_ptr());
        let mut out = Vec::new();
        reply.write(b"Thu, 01 Jan 1970 00:00:00 GMT", &mut out);
        let head = String::from_utf8(out).unwrap();
        assert!(head.contains("content-length: 16\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        let given = reply.into_response().into_body().collect().await.unwrap().to_bytes();
        assert_eq!(given.as_ptr(), body.as_ptr());
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
