//! Where a request over HTTP/1 ends, told from its head, and whether that is told so clearly that nobody on the way may think
//! otherwise. It looks at bytes and changes nothing.

use std::mem::MaybeUninit;

use http::Uri;

use super::front::Fault;

/// Larger heads are nobody's: a root key has at most 512 characters.
pub(super) const HEAD_BYTES_MAX: usize = 64 << 10;
pub(super) const HEADERS_MAX: usize = 64;
/// A line between chunks, or behind the last one.
const LINE_BYTES_MAX: usize = 16 << 10;

/// What stands at the front, where a request begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// Not all of it is there.
    Part,
    Whole {
        bytes: usize,
        body: Body,
    },
    Bad(Fault),
}

/// What follows a head, or the part of it that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// So many bytes, or none.
    Sized(u64),
    Chunks,
}

/// What stands where a line between chunks is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Part,
    /// How long the line is, and how long the chunk behind it; the last one has no bytes.
    Chunk {
        bytes: usize,
        size: u64,
    },
    /// A trailer, or the end of a chunk or of all.
    Text {
        bytes: usize,
        is_empty: bool,
    },
    /// Where the body ends will never be known.
    Garbled,
}

pub(super) fn head(bytes: &[u8]) -> Head {
    let mut lines = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut []);
    let end = match head.parse_with_uninit_headers(bytes, &mut lines) {
        Ok(httparse::Status::Complete(end)) if end <= HEAD_BYTES_MAX => end,
        Ok(httparse::Status::Partial) if bytes.len() <= HEAD_BYTES_MAX => return Head::Part,
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Head::Bad(Fault::Large),
        Err(_) => return Head::Bad(Fault::Garbled),
    };
    if Uri::try_from(head.path.unwrap_or("")).is_err() {
        return Head::Bad(Fault::Garbled);
    }
    let takes_chunks = head.version == Some(1);
    body(head.headers, takes_chunks)
        .map_or(Head::Bad(Fault::Framing), |body| Head::Whole { bytes: end, body })
}

/// One length of digits alone, or chunks and nothing else. Of whatever is said twice, or otherwise, others on the way may think
/// differently, and then disagree with us about where the next request begins.
fn body(lines: &[httparse::Header<'_>], takes_chunks: bool) -> Option<Body> {
    let mut said = None;
    for line in lines {
        let body = if line.name.eq_ignore_ascii_case("content-length") {
            Body::Sized(length(line.value)?)
        } else if line.name.eq_ignore_ascii_case("transfer-encoding") {
            let chunks = takes_chunks && line.value.eq_ignore_ascii_case(b"chunked");
            chunks.then_some(Body::Chunks)?
        } else {
            continue;
        };
        if said.replace(body).is_some() {
            return None;
        }
    }
    Some(said.unwrap_or(Body::Sized(0)))
}

/// Nothing is that long which has no place in 63 bits.
fn length(value: &[u8]) -> Option<u64> {
    let is_plain = value.iter().all(u8::is_ascii_digit);
    let length = std::str::from_utf8(value).ok().filter(|_| is_plain)?.parse().ok()?;
    (length <= i64::MAX.unsigned_abs()).then_some(length)
}

pub(super) fn chunk_line(bytes: &[u8]) -> Line {
    match httparse::parse_chunk_size(bytes) {
        Ok(httparse::Status::Complete((bytes, size))) => Line::Chunk { bytes, size },
        Ok(httparse::Status::Partial) if bytes.len() <= LINE_BYTES_MAX => Line::Part,
        Ok(httparse::Status::Partial) | Err(_) => Line::Garbled,
    }
}

/// Behind a chunk.
pub(super) fn text_line(bytes: &[u8]) -> Line {
    let end = bytes.iter().position(|byte| *byte == b'\r');
    match end.map(|end| (end, bytes.get(end + 1))) {
        Some((end, Some(b'\n'))) => Line::Text { bytes: end + 2, is_empty: end == 0 },
        Some((_, Some(_))) => Line::Garbled,
        _ if bytes.len() <= LINE_BYTES_MAX => Line::Part,
        _ => Line::Garbled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(lines: &str) -> Head {
        head(format!("POST / HTTP/1.1\r\nhost: a\r\n{lines}\r\nbody").as_bytes())
    }

    fn body_of(lines: &str) -> Option<Body> {
        match framed(lines) {
            Head::Whole { body, .. } => Some(body),
            _ => None,
        }
    }

    #[test]
    fn a_body_has_one_length_of_digits_or_chunks() {
        assert_eq!(body_of(""), Some(Body::Sized(0)));
        assert_eq!(body_of("Content-Length: 71\r\n"), Some(Body::Sized(71)));
        assert_eq!(body_of("Transfer-Encoding: Chunked\r\n"), Some(Body::Chunks));
        let text = "GET / HTTP/1.0\r\n\r\nGET ";
        assert_eq!(head(text.as_bytes()), Head::Whole { bytes: 18, body: Body::Sized(0) });
    }

    #[test]
    fn what_is_said_twice_or_otherwise_is_refused() {
        for value in ["71, 71", "+71", "-1", "0x45", "", "7 1", "71;", "99999999999999999999999"] {
            let line = format!("content-length: {value}\r\n");
            assert_eq!(framed(&line), Head::Bad(Fault::Framing), "{line}");
        }
        for value in
            ["xchunked", "identity", "", "gzip, chunked", "chunked, chunked", "chunked;q=1"]
        {
            let line = format!("transfer-encoding: {value}\r\n");
            assert_eq!(framed(&line), Head::Bad(Fault::Framing), "{line}");
        }
        let (length, chunks) = ("content-length: 4\r\n", "transfer-encoding: chunked\r\n");
        for lines in [[length, length], [length, chunks], [chunks, length], [chunks, chunks]] {
            assert_eq!(framed(&lines.concat()), Head::Bad(Fault::Framing), "{lines:?}");
        }
        let old = format!("POST / HTTP/1.0\r\n{chunks}\r\n");
        assert_eq!(head(old.as_bytes()), Head::Bad(Fault::Framing));
    }

    #[test]
    fn a_head_has_its_bounds_and_what_is_none_is_told_apart() {
        let long = |bytes: usize| format!("GET /{} HTTP/1.1\r\n", "p".repeat(bytes));
        let many = "a: b\r\n".repeat(HEADERS_MAX);
        assert_eq!(framed(&many), Head::Bad(Fault::Large));
        assert_eq!(head(long(HEAD_BYTES_MAX).as_bytes()), Head::Bad(Fault::Large));
        assert_eq!(head(long(HEAD_BYTES_MAX - 100).as_bytes()), Head::Part);
        let whole = format!("{}a: {}\r\n\r\n", long(9), "v".repeat(HEAD_BYTES_MAX));
        assert_eq!(head(whole.as_bytes()), Head::Bad(Fault::Large));
        for garbled in ["\x16\x03\x01", "GET / HTTP/2.0\r\n\r\n", "GET [ HTTP/1.1\r\n\r\n"] {
            assert_eq!(head(garbled.as_bytes()), Head::Bad(Fault::Garbled), "{garbled:?}");
        }
    }

    #[test]
    fn lines_of_chunks_are_read_to_their_end_and_no_further() {
        let chunk = |bytes, size| Line::Chunk { bytes, size };
        assert_eq!(chunk_line(b"a;note=1\r\n0123456789\r\n"), chunk(10, 10));
        assert_eq!(chunk_line(b"0\r\n\r\n"), chunk(3, 0));
        assert_eq!(chunk_line(b"a;no"), Line::Part);
        assert_eq!(chunk_line(&b";".repeat(LINE_BYTES_MAX + 1)), Line::Garbled);
        for garbled in ["zz\r\n", "-1\r\n", "0x1\r\n", "1\n", "10000000000000000\r\n"] {
            assert_eq!(chunk_line(garbled.as_bytes()), Line::Garbled, "{garbled:?}");
        }
        let text = |bytes, is_empty| Line::Text { bytes, is_empty };
        assert_eq!(text_line(b"a: b\r\n\r\n"), text(6, false));
        assert_eq!(text_line(b"\r\nGET /"), text(2, true));
        assert_eq!((text_line(b""), text_line(b"a: b\r")), (Line::Part, Line::Part));
        assert_eq!(text_line(b"a\rb"), Line::Garbled);
    }
}
