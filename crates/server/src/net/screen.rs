//! Follows a connection that hyper serves, request by request, and says what of it may pass: over HTTP/1 no byte of a head before
//! the whole of it was looked at. It holds no bytes and no socket.

use super::framing::{Body, HEAD_BYTES_MAX, Head, Line, chunk_line, head, text_line};
use super::front::Fault;

/// How a connection over HTTP/2 begins.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[derive(Debug)]
pub(super) struct Screen {
    next: Next,
    /// Of the head so many bytes were there at the last look.
    looked: usize,
    /// Heads that have passed.
    heads: u64,
}

/// Which versions may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    Any,
    /// A connection speaks one for all its life.
    Http1,
}

/// What may pass now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// So many bytes of what is held.
    Held(usize),
    /// So many bytes of what has not been read: nothing is held.
    Unread(u64),
    /// More must be there for the next look.
    NotYet,
    /// Nothing any more. Without a fault hyper learns of the end in the middle of a body, and says so itself.
    Nothing(Option<Fault>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Of a connection: whether it speaks HTTP/2 is open.
    First,
    Head,
    /// So many bytes, and then a head or the next chunk.
    Data {
        left: u64,
        in_chunks: bool,
    },
    ChunkLine,
    /// The end of a chunk's data.
    ChunkEnd,
    TrailerLine,
    Anything,
    Nothing(Option<Fault>),
}

// === impl Screen ===

impl Screen {
    pub(super) fn new(versions: Versions) -> Self {
        let next = if versions == Versions::Any { Next::First } else { Next::Head };
        Self { next, looked: 0, heads: 0 }
    }

    /// What was refused, if anything.
    pub(super) fn fault(&self) -> Option<Fault> {
        if let Next::Nothing(fault) = self.next { fault } else { None }
    }

    /// How many requests have passed.
    pub(super) fn requests(&self) -> u64 {
        self.heads
    }

    /// Looks at what is held; that much of it has passed when it is asked again.
    pub(super) fn look(&mut self, held: &[u8]) -> Pass {
        loop {
            let (bytes, next) = match self.next {
                Next::First if held.starts_with(HTTP2) => (0, Next::Anything),
                Next::First if HTTP2.starts_with(held) => return Pass::NotYet,
                Next::First | Next::Data { left: 0, in_chunks: false } => (0, Next::Head),
                Next::Head => match self.look_at_head(held) {
                    Head::Part => return Pass::NotYet,
                    Head::Whole { bytes, body: Body::Sized(left) } => {
                        (bytes, Next::Data { left, in_chunks: false })
                    }
                    Head::Whole { bytes, body: Body::Chunks } => (bytes, Next::ChunkLine),
                    Head::Bad(fault) => (0, Next::Nothing(Some(fault))),
                },
                Next::Data { left: 0, in_chunks: true } => (0, Next::ChunkEnd),
                Next::Data { left, .. } if held.is_empty() => return Pass::Unread(left),
                Next::Data { left, in_chunks } => {
                    let bytes = usize::try_from(left).unwrap_or(usize::MAX).min(held.len());
                    (bytes, Next::Data { left: left - bytes as u64, in_chunks })
                }
                Next::ChunkLine | Next::ChunkEnd | Next::TrailerLine => {
                    let line = if self.next == Next::ChunkLine { chunk_line } else { text_line };
                    match (line(held), self.next) {
                        (Line::Part, _) => return Pass::NotYet,
                        (Line::Chunk { bytes, size: 0 }, _) => (bytes, Next::TrailerLine),
                        (Line::Chunk { bytes, size }, _) => {
                            (bytes, Next::Data { left: size, in_chunks: true })
                        }
                        (Line::Text { bytes, is_empty: true }, Next::ChunkEnd) => {
                            (bytes, Next::ChunkLine)
                        }
                        (Line::Text { bytes, is_empty: true }, _) => (bytes, Next::Head),
                        (Line::Text { bytes, .. }, Next::TrailerLine) => (bytes, Next::TrailerLine),
                        (Line::Text { .. } | Line::Garbled, _) => (0, Next::Nothing(None)),
                    }
                }
                Next::Anything if held.is_empty() => return Pass::Unread(u64::MAX),
                Next::Anything => return Pass::Held(held.len()),
                Next::Nothing(fault) => return Pass::Nothing(fault),
            };
            self.heads += u64::from(self.next == Next::Head && bytes > 0);
            self.next = next;
            if bytes > 0 {
                self.looked = 0;
                return Pass::Held(bytes);
            }
        }
    }

    /// So many bytes passed that were never held.
    pub(super) fn passed(&mut self, bytes: usize) {
        if let Next::Data { left, .. } = &mut self.next {
            *left = left.saturating_sub(bytes as u64);
        }
    }

    /// Once at the first bytes, for what is no HTTP at all, and then where a line is empty: one that comes byte by byte would
    /// otherwise be read as often as it has bytes.
    fn look_at_head(&mut self, held: &[u8]) -> Head {
        let new = &held[self.looked.saturating_sub(3).min(held.len())..];
        let has_empty_line = new.windows(2).any(|two| two == b"\n\n")
            || new.windows(3).any(|three| three == b"\n\r\n");
        let is_due = self.looked == 0 || has_empty_line || held.len() > HEAD_BYTES_MAX;
        self.looked = held.len();
        if is_due { head(held) } else { Head::Part }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "POST / HTTP/1.1\r\nhost: a\r\n";

    /// What passes of these bytes, as they come in pieces of so many, and what was found wrong.
    fn passed(bytes: &str, piece: usize) -> (usize, Option<Fault>) {
        let (mut screen, mut held, mut passed) = (Screen::new(Versions::Any), Vec::new(), 0);
        let mut pieces = bytes.as_bytes().chunks(piece);
        loop {
            match screen.look(&held) {
                Pass::Held(bytes) => {
                    held.drain(..bytes);
                    passed += bytes;
                }
                Pass::Unread(most) => {
                    let Some(piece) = pieces.next() else { return (passed, None) };
                    let straight = piece.len().min(usize::try_from(most).unwrap_or(usize::MAX));
                    screen.passed(straight);
                    passed += straight;
                    held.extend_from_slice(&piece[straight..]);
                }
                Pass::NotYet => match pieces.next() {
                    Some(piece) => held.extend_from_slice(piece),
                    None => return (passed, None),
                },
                Pass::Nothing(fault) => return (passed, fault),
            }
        }
    }

    #[test]
    fn requests_pass_one_by_one_however_they_are_cut() {
        let sized = format!("{HEAD}content-length: 4\r\n\r\nGET ");
        let chunks = format!(
            "{HEAD}transfer-encoding: chunked\r\n\r\n4;a=b\r\n\r\n\r\n\r\n1\r\nx\r\n0\r\na: b\r\n\r\n"
        );
        let all = format!("{sized}{chunks}{HEAD}\r\n{chunks}{sized}\r\nGET / HTTP/1.0\r\n\r\n");
        for piece in 1..all.len() {
            assert_eq!(passed(&all, piece), (all.len(), None), "{piece}");
        }
    }

    #[test]
    fn nothing_of_a_doubtful_head_passes_nor_of_what_stands_behind_it() {
        let good = format!("{HEAD}transfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n");
        for (lines, fault) in [
            ("content-length: 1\r\ntransfer-encoding: chunked\r\n", Fault::Framing),
            ("content-length: 1\r\ncontent-length: 2\r\n", Fault::Framing),
            ("no name\r\n", Fault::Garbled),
            (&*"a: b\r\n".repeat(64), Fault::Large),
        ] {
            let bad = format!("{good}{HEAD}{lines}\r\n{good}");
            for piece in [1, 2, 3, 5, 64, bad.len()] {
                assert_eq!(passed(&bad, piece), (good.len(), Some(fault)), "{lines} {piece}");
            }
        }
    }

    #[test]
    fn behind_chunks_that_end_nowhere_nothing_passes() {
        let head = format!("{HEAD}transfer-encoding: chunked\r\n\r\n");
        for chunks in ["zz\r\n\r\n", "1\r\nxyz0\r\n\r\n", "0\r\na\rb\r\n\r\n"] {
            let bytes = format!("{head}{chunks}{HEAD}\r\n");
            let (passed, fault) = passed(&bytes, 7);
            assert!(passed < head.len() + chunks.len() && fault.is_none(), "{chunks:?}: {passed}");
        }
    }

    #[test]
    fn all_of_http2_passes_and_only_where_a_connection_begins() {
        let bytes = format!("{}\0\0\0\u{4}\0no heads at all", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        for piece in [1, 10, bytes.len()] {
            assert_eq!(passed(&bytes, piece), (bytes.len(), None));
        }
        assert_eq!(passed(&format!("{HEAD}\r\n{bytes}"), 9).1, Some(Fault::Garbled));
        let garbled = Pass::Nothing(Some(Fault::Garbled));
        assert_eq!(Screen::new(Versions::Http1).look(bytes.as_bytes()), garbled);
    }
}
