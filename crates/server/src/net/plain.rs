//! Plain requests: HTTP/1.1, a body of known length or none, nothing that would have to be agreed upon. They are nearly all
//! there are, and are read and answered here, without a channel for the body and a map for every header. Whatever is not
//! plain, or not whole soon, is put back unread, and hyper serves that connection from there on.

use std::cell::Cell;
use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Version};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};

use super::watched::{Activity, Watched};
use crate::app::App;
use crate::http::{Asked, IDEMPOTENCY_KEY, Reply, answer_whole};

/// Head and body together, at most: some fifty limits in one call.
const BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 32;
/// A request comes in so many pieces, at most: each means to look at its head once more.
const PIECES_MAX: u32 = 4;
/// So long each further piece is waited for. hyper waits longer, and says so in the end.
const REST_PATIENCE: Duration = Duration::from_secs(1);
/// Where the paths of all calls begin.
const CALLS: &str = "/v2/";
/// And those of what proxies ask.
const PROXIED: &[u8] = b"/check/";
/// What a read has room for at least.
const ROOM: usize = 2 << 10;
/// A buffer that has grown beyond it is not kept.
const KEPT_MAX: usize = 32 << 10;

thread_local! {
    /// Where replies are put together. One for all connections of a thread: it stays in the core's cache, and connections that
    /// wait hold none. Whoever has to wait while it writes keeps it so long, and the next one begins another.
    static OUT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// How it ended here.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// There is nobody to answer any more.
    Gone,
    /// Something that is not plain comes next.
    NotPlain,
}

/// What stands at the front of what was read.
#[derive(Debug, PartialEq, Eq)]
enum Front {
    Whole(Request),
    /// Not all of it is there.
    Part,
    NotPlain,
}

/// Where the parts of a request are.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    method: Method,
    path: Range<usize>,
    body: Range<usize>,
}

/// The headers that somebody will read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// Who calls, and under which key for its retries.
    OfCalls,
    /// What a proxy sends along is told in many.
    All,
}

/// What it means that a client will send no more before it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silence {
    /// It has sent all, and waits: what it asked for may be done by now, and it wants to know.
    WantsToKnow,
    /// It is gone: a proxy's client left, and what is held back for it only takes a place.
    IsGone,
}

/// The second in words, as the `Date` header has it.
#[derive(Debug)]
struct Date {
    second: u64,
    text: String,
}

/// Answers plain requests until there comes another or the client leaves. What was read and not answered is put back.
pub(super) async fn serve(socket: &mut Watched, app: &Arc<App>, activity: &Activity) -> End {
    let mut arrived = Vec::new();
    let mut headers = HeaderMap::new();
    let mut date = Date { second: 0, text: String::new() };
    loop {
        let request = match next(socket, activity, &mut arrived, &mut headers).await {
            Ok(request) => request,
            Err(end) => {
                socket.put_back(arrived);
                return end;
            }
        };
        let mut ahead = Vec::new();
        let answering = activity.begin(Version::HTTP_11);
        let reply = {
            let (path, body) = (&arrived[request.path], &arrived[request.body.clone()]);
            let path = std::str::from_utf8(path).unwrap_or("");
            let asked = Asked { method: &request.method, path, headers: &mut headers };
            // Pinned where it is made: it has two kilobytes and more, and would be copied on its way.
            let answer = pin!(answer_whole(app, asked, body));
            // Who sent more behind it is there: nobody looks further, or a client could send faster than it is answered.
            let all_is_read = arrived.len() > request.body.end;
            if all_is_read {
                Some(answer.await)
            } else {
                let silence =
                    if path.starts_with(CALLS) { Silence::WantsToKnow } else { Silence::IsGone };
                unless_gone(answer, silence, socket, &mut ahead).await
            }
        };
        let Some(mut reply) = reply else { return End::Gone };
        drop(answering);
        if activity.is_leaving() {
            reply.end();
        }
        let mut out = OUT.take();
        reply.write(date.at(app.clock.now().0 / 1000), &mut out);
        let (is_last, shared) = (reply.is_last(), reply.shared_body().cloned());
        reply.left();
        if socket.write_all(&out).await.is_err() {
            return End::Gone;
        }
        if let Some(body) = shared
            && socket.write_all(&body).await.is_err()
        {
            return End::Gone;
        }
        out.clear();
        out.shrink_to(KEPT_MAX);
        OUT.set(out);
        if is_last {
            let _ = socket.shutdown().await;
            return End::Gone;
        }
        arrived.drain(..request.body.end);
        arrived.append(&mut ahead);
        arrived.shrink_to(KEPT_MAX);
    }
}

/// The next request, once it is whole.
async fn next(
    socket: &mut Watched,
    activity: &Activity,
    arrived: &mut Vec<u8>,
    headers: &mut HeaderMap,
) -> Result<Request, End> {
    let mut pieces = 0;
    loop {
        headers.clear();
        match look(arrived, headers) {
            Front::Whole(request) => return Ok(request),
            Front::NotPlain => return Err(End::NotPlain),
            Front::Part if pieces == PIECES_MAX => return Err(End::NotPlain),
            Front::Part => pieces += 1,
        }
        arrived.reserve(ROOM);
        let read = if arrived.is_empty() {
            if activity.is_leaving() {
                return Err(End::Gone);
            }
            activity.begin_pause();
            let read = socket.read_buf(arrived).await;
            activity.end_pause();
            read
        } else {
            activity.arrive();
            let rest = tokio::time::timeout(REST_PATIENCE, socket.read_buf(arrived));
            Box::pin(rest).await.map_err(|_| End::NotPlain)?
        };
        if !matches!(read, Ok(1..)) {
            return Err(End::Gone);
        }
    }
}

/// Looks at what was read, without changing it. Of its headers those are kept that somebody reads.
fn look(bytes: &[u8], headers: &mut HeaderMap) -> Front {
    let method = match bytes {
        [b'P', b'O', b'S', b'T', b' ', ..] => Method::POST,
        [b'G', b'E', b'T', b' ', ..] => Method::GET,
        _ if b"POST ".starts_with(bytes) || b"GET ".starts_with(bytes) => return Front::Part,
        _ => return Front::NotPlain,
    };
    let mut lines = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut []);
    let head_end = match head.parse_with_uninit_headers(bytes, &mut lines) {
        Ok(httparse::Status::Complete(end)) => end,
        Ok(httparse::Status::Partial) if bytes.len() < BYTES_MAX => return Front::Part,
        _ => return Front::NotPlain,
    };
    let path = head.path.unwrap_or("");
    if head.version != Some(1) || !is_plain_path(path) {
        return Front::NotPlain;
    }
    let kept = if path.starts_with(CALLS) { Kept::OfCalls } else { Kept::All };
    let Some(length) = length(head.headers, kept, headers) else { return Front::NotPlain };
    let end = head_end.saturating_add(length);
    // Where others expect no body they may see a second request.
    if end > BYTES_MAX || (length > 0 && method == Method::GET) {
        return Front::NotPlain;
    }
    if end > bytes.len() {
        return Front::Part;
    }
    let path_at = method.as_str().len() + 1;
    Front::Whole(Request { path: path_at..path_at + path.len(), method, body: head_end..end })
}

/// The length of the body, 0 where none is declared; keeps what headers are read. `None` where one of them asks for more than
/// an answer, or says something that others on the way may read differently.
fn length(lines: &[httparse::Header<'_>], kept: Kept, headers: &mut HeaderMap) -> Option<usize> {
    let mut length = None;
    for line in lines {
        let is = |name: &str| line.name.eq_ignore_ascii_case(name);
        let name = match line.name.len() {
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
    Some(length.unwrap_or(0))
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

/// The answer, unless the client leaves before there is one. Something may come from it meanwhile: that is kept for later, and
/// then it is there for certain.
async fn unless_gone(
    mut answer: Pin<&mut impl Future<Output = Reply>>,
    silence: Silence,
    socket: &mut Watched,
    ahead: &mut Vec<u8>,
) -> Option<Reply> {
    let mut has_ended = false;
    poll_fn(|context| {
        if let Poll::Ready(reply) = answer.as_mut().poll(context) {
            return Poll::Ready(Some(reply));
        }
        if ahead.is_empty() && !has_ended {
            let mut room = [0; ROOM];
            let mut read = ReadBuf::new(&mut room);
            match Pin::new(&mut *socket).poll_read(context, &mut read) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) if !read.filled().is_empty() => ahead.extend(read.filled()),
                Poll::Ready(Ok(())) if silence == Silence::WantsToKnow => has_ended = true,
                Poll::Ready(_) => return Poll::Ready(None),
            }
        }
        Poll::Pending
    })
    .await
}

// === impl Date ===

impl Date {
    fn at(&mut self, second: u64) -> &[u8] {
        if self.second != second {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            (self.second, self.text) = (second, httpdate::fmt_http_date(at));
        }
        self.text.as_bytes()
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
        let text =
            "GET /check/caddy HTTP/1.1\r\nX-Forwarded-Uri: /a\r\nX-Forwarded-Uri: /b\r\n\r\n";
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
            "Bad Name: a",
            "a: b\r\n folded",
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
            ("Bearer c", "Bearer \u{1}"),
        ] {
            assert_eq!(front(&PLAIN.replace(from, to)), Front::NotPlain, "{to}");
        }
        assert_eq!(front("GET /livez HTTP/1.1\r\ncontent-length: 2\r\n\r\nab"), Front::NotPlain);
        assert_eq!(front("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Front::NotPlain);
    }

    #[test]
    fn a_proxy_is_known_by_what_it_asks_first() {
        assert!(is_of_a_proxy(b"GET /check/caddy?a=b HTTP/1.0\r\n\r\n"));
        assert!(is_of_a_proxy(b"GET http://a/check/caddy HTTP/1.1\r\nhost: a\r\n\r\n"));
        assert!(!is_of_a_proxy(b"POST /v2/keys.verifyKey HTTP/1.0\r\nx: /check/caddy\r\n\r\n"));
        assert!(!is_of_a_proxy(b"GET "));
    }

    #[test]
    fn the_date_is_that_of_the_second() {
        let mut date = Date { second: 0, text: String::new() };
        assert_eq!(date.at(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date.at(784_111_778), b"Sun, 06 Nov 1994 08:49:38 GMT");
    }
}
