//! What stands at the front of what was read: a plain request, a part of one, something for hyper, or nothing that HTTP has.
//! It looks and changes nothing.

use std::mem::MaybeUninit;
use std::ops::Range;

use http::Method;
use http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue};

use crate::http::IDEMPOTENCY_KEY;
use crate::status::Refusal;

/// Head and body together, at most: some fifty limits in one call.
const BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 32;
/// Where the paths of all calls begin.
const CALLS: &str = "/v2/";
/// And those of what proxies ask.
const PROXIED: &[u8] = b"/check/";
/// How a connection over HTTP/2 begins.
const HTTP2: &[u8] = b"PRI ";

/// What stands at the front of what was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Front {
    Whole(Request),
    /// Not all of it is there.
    Part,
    NotPlain,
    Bad(Fault),
}

/// Where the parts of a request are.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) path: Range<usize>,
    pub(super) body: Range<usize>,
}

/// What makes it no request at all, or none that may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Garbled,
    Host,
    /// Where it ends is a matter of opinion.
    Framing,
    Large,
}

/// What the lines of a head say of it as a whole.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    /// Of the body, 0 where none is declared.
    length: usize,
    hosts: u32,
}

/// The headers that somebody will read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// Who calls, and under which key for its retries.
    OfCalls,
    /// What a proxy sends along is told in many.
    All,
}

/// Is it one of our own callers, and no proxy or probe?
pub(super) fn is_of_a_call(path: &str) -> bool {
    path.starts_with(CALLS)
}

/// Looks at what was read, without changing it. Of its headers those are kept that somebody reads.
pub(super) fn look(bytes: &[u8], headers: &mut HeaderMap) -> Front {
    let method = match bytes {
        [b'P', b'O', b'S', b'T', b' ', ..] => Method::POST,
        [b'G', b'E', b'T', b' ', ..] => Method::GET,
        _ if b"POST ".starts_with(bytes) || b"GET ".starts_with(bytes) => return Front::Part,
        _ => return look_at_rare(bytes),
    };
    let mut lines = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut []);
    let head_end = match head.parse_with_uninit_headers(bytes, &mut lines) {
        Ok(httparse::Status::Complete(end)) => end,
        Ok(httparse::Status::Partial) if bytes.len() < BYTES_MAX => return Front::Part,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Front::NotPlain;
        }
        Err(_) => return Front::Bad(Fault::Garbled),
    };
    let path = head.path.unwrap_or("");
    if head.version != Some(1) || !is_plain_path(path) {
        return Front::NotPlain;
    }
    let kept = if is_of_a_call(path) { Kept::OfCalls } else { Kept::All };
    let Some(Said { length, hosts }) = said(head.headers, kept, headers) else {
        return Front::NotPlain;
    };
    let end = head_end.saturating_add(length);
    // Where others expect no body they may see a second request.
    if end > BYTES_MAX || (length > 0 && method == Method::GET) {
        return Front::NotPlain;
    }
    if hosts != 1 {
        return Front::Bad(Fault::Host);
    }
    if end > bytes.len() {
        return Front::Part;
    }
    let path_at = method.as_str().len() + 1;
    Front::Whole(Request { path: path_at..path_at + path.len(), method, body: head_end..end })
}

/// By another method, or over HTTP/2: hyper's, unless it is no HTTP. hyper would say so without a word, and to nobody else.
#[cold]
fn look_at_rare(bytes: &[u8]) -> Front {
    let mut lines = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut []);
    match head.parse_with_uninit_headers(bytes, &mut lines) {
        Ok(_) | Err(httparse::Error::TooManyHeaders) => Front::NotPlain,
        Err(_) if bytes.starts_with(HTTP2) => Front::NotPlain,
        Err(_) => Front::Bad(Fault::Garbled),
    }
}

/// What the lines say; keeps what headers are read. `None` where one of them asks for more than an answer, or says something
/// that others on the way may read differently.
fn said(lines: &[httparse::Header<'_>], kept: Kept, headers: &mut HeaderMap) -> Option<Said> {
    let (mut length, mut hosts) = (None, 0);
    for line in lines {
        let is = |name: &str| line.name.eq_ignore_ascii_case(name);
        let name = match line.name.len() {
            4 if is("host") => {
                hosts += 1;
                if kept == Kept::OfCalls {
                    continue;
                }
                HOST
            }
            14 if is("content-length") => {
                let digits = line.value.iter().all(u8::is_ascii_digit);
                let said = std::str::from_utf8(line.value).ok().filter(|_| digits)?.parse().ok()?;
                if length.replace(said).is_some() {
                    return None;
                }
                continue;
            }
            10 if is("connection") => {
                if !line.value.eq_ignore_ascii_case(b"keep-alive") {
                    return None;
                }
                continue;
            }
            6 if is("expect") => return None,
            7 if is("upgrade") || is("trailer") => return None,
            16 if is("content-encoding") => return None,
            17 if is("transfer-encoding") => return None,
            13 if is("authorization") => AUTHORIZATION,
            15 if is("idempotency-key") => IDEMPOTENCY_KEY,
            _ if kept == Kept::OfCalls => continue,
            _ => HeaderName::from_bytes(line.name.as_bytes()).ok()?,
        };
        headers.append(name, HeaderValue::from_bytes(line.value).ok()?);
    }
    Some(Said { length: length.unwrap_or(0), hosts })
}

/// What is asked by a proxy, as far as it can be seen at the beginning of a connection: it speaks of nothing else there.
pub(super) fn is_of_a_proxy(arrived: &[u8]) -> bool {
    let line = arrived.split(|byte| *byte == b'\n').next().unwrap_or(arrived);
    line.windows(PROXIED.len()).any(|part| part == PROXIED)
}

/// Such as all routes have. Any other is hyper's to make sense of.
fn is_plain_path(path: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'-' | b'_');
    path.starts_with('/') && path.bytes().all(plain)
}

// === impl Fault ===

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Garbled => Self::HeadUnreadable,
            Fault::Host => Self::HostUnclear,
            Fault::Framing => Self::FramingUnclear,
            Fault::Large => Self::HeadTooLarge,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const PLAIN: &str = "POST /v2/ratelimit.limit HTTP/1.1\r\nHost: a\r\nUser-Agent: b\r\n\
                         Authorization: Bearer c\r\nContent-Length: 2\r\n\r\n{}";

    fn front(text: &str) -> Front {
        look(text.as_bytes(), &mut HeaderMap::new())
    }

    #[test]
    fn a_plain_request_is_found_with_the_headers_that_are_read() {
        let mut headers = HeaderMap::new();
        let text = format!("{PLAIN}GET /livez HTTP/1.1\r\n");
        let found = look(text.as_bytes(), &mut headers);
        let (path, body) = (5..24, PLAIN.len() - 2..PLAIN.len());
        assert_eq!((&text[path.clone()], &text[body.clone()]), ("/v2/ratelimit.limit", "{}"));
        assert_eq!(found, Front::Whole(Request { method: Method::POST, path, body }));
        assert_eq!(headers.get(AUTHORIZATION).unwrap(), "Bearer c");
        assert_eq!(headers.len(), 1);
    }

    #[test]
    fn a_proxy_is_read_with_all_that_it_sends_along() {
        let mut headers = HeaderMap::new();
        let text = "GET /check/caddy HTTP/1.1\r\nHost: a\r\nX-Forwarded-Uri: /a\r\nX-Forwarded-Uri: /b\r\n\r\n";
        assert!(matches!(look(text.as_bytes(), &mut headers), Front::Whole(_)));
        let all: Vec<_> = headers.get_all("x-forwarded-uri").iter().collect();
        assert_eq!(all, ["/a", "/b"]);
    }

    #[test]
    fn what_is_not_all_there_is_a_part_wherever_it_is_cut() {
        for end in 0..PLAIN.len() {
            assert_eq!(front(&PLAIN[..end]), Front::Part, "{}", &PLAIN[..end]);
        }
    }

    #[test]
    fn whatever_asks_for_more_or_can_be_read_differently_is_not_plain() {
        let behind = |line: &str| PLAIN.replace("Host: a\r\n", &format!("Host: a\r\n{line}\r\n"));
        for line in [
            "Transfer-Encoding: chunked",
            "transfer-encoding:",
            "Content-Length: 2",
            "Content-Length: 3",
            "Expect: 100-continue",
            "Upgrade: h2c",
            "Connection: close",
            "Connection: keep-alive, upgrade",
            "Content-Encoding: gzip",
            "Trailer: a",
        ] {
            assert_eq!(front(&behind(line)), Front::NotPlain, "{line}");
        }
        assert!(matches!(front(&behind("Connection: Keep-Alive")), Front::Whole(_)));
        for (from, to) in [
            ("HTTP/1.1", "HTTP/1.0"),
            ("POST", "PUT"),
            ("POST", "post"),
            ("/v2/ratelimit.limit", "/v2/ratelimit.limit?a=b"),
            ("/v2/ratelimit.limit", "/v2/%72atelimit.limit"),
            ("/v2/ratelimit.limit", "http://a/v2/ratelimit.limit"),
            ("/v2/ratelimit.limit", "*"),
            ("Content-Length: 2", "Content-Length: +2"),
            ("Content-Length: 2", "Content-Length: 2, 2"),
            ("Content-Length: 2", "Content-Length:"),
            ("Content-Length: 2", "Content-Length: 99999999999999999999"),
            ("Content-Length: 2", "Content-Length: 20000"),
        ] {
            assert_eq!(front(&PLAIN.replace(from, to)), Front::NotPlain, "{to}");
        }
        assert_eq!(front("GET /livez HTTP/1.1\r\ncontent-length: 2\r\n\r\nab"), Front::NotPlain);
        assert_eq!(front("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Front::NotPlain);
        assert_eq!(front(&behind(&"a: b\r\n".repeat(HEADERS_MAX))), Front::NotPlain);
    }

    #[test]
    fn what_is_no_http_is_told_from_what_is_only_not_plain() {
        for (from, to) in [
            ("Host: a", "Host: a\r\nBad Name: a"),
            ("Host: a", "Host: a\r\na: b\r\n folded"),
            ("Bearer c", "Bearer \u{1}"),
            ("HTTP/1.1", "HTTP/9.9"),
            ("POST", "P\0ST"),
            ("POST", "PUT\t/"),
            ("POST /v2", "\u{16}\u{3}\u{1}"),
        ] {
            assert_eq!(front(&PLAIN.replace(from, to)), Front::Bad(Fault::Garbled), "{to}");
        }
        for line in ["", "Host: a\r\nhost: a\r\n", "Host: a\r\nHost: b\r\n"] {
            let text = PLAIN.replace("Host: a\r\n", line);
            assert_eq!(front(&text), Front::Bad(Fault::Host), "{line}");
            let old = text.replace("HTTP/1.1", "HTTP/1.0");
            assert_eq!(front(&old), Front::NotPlain, "{line}");
        }
    }

    #[test]
    fn a_proxy_is_known_by_what_it_asks_first() {
        assert!(is_of_a_proxy(b"GET /check/caddy?a=b HTTP/1.0\r\n\r\n"));
        assert!(is_of_a_proxy(b"GET http://a/check/caddy HTTP/1.1\r\nhost: a\r\n\r\n"));
        assert!(!is_of_a_proxy(b"POST /v2/keys.verifyKey HTTP/1.0\r\nx: /check/caddy\r\n\r\n"));
        assert!(!is_of_a_proxy(b"GET "));
    }
}
