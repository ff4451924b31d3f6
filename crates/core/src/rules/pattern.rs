//! Endpoint patterns: `/users/{id}`, `/api/v1/*`, `/files/**`. Case-sensitive, on the decoded path.
//! `{x}` and an inner `*` are one segment, a trailing `/*` one or more, `**` any number.

use std::fmt;

use super::RequestPath;
use super::path::hex;

/// More segments than any route that a person writes; they bound the depth of the index.
pub(super) const PIECES_MAX: usize = 32;
/// Room for these in full length. Ten thousand patterns stay within a few megabytes.
const PATTERN_BYTES_MAX: usize = 512;
/// Between two `**` a match searches; with this few it stays near one pass over the path.
const ANY_MAX: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    text: Box<str>,
    pieces: Box<[Piece]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(Box<str>),
    /// Exactly one segment.
    One,
    /// Any number of segments, also none.
    Any,
}

/// Why a text is no pattern, and what to write instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAPattern {
    TooLong,
    TooDeep,
    NoSlash,
    EmptySegment,
    DotSegment,
    Query,
    Backslash,
    Escaped,
    PartialWildcard,
    TooManyAny,
}

// === impl PathPattern ===

impl PathPattern {
    /// Refuses what could never match, so that no rule is silently void.
    pub fn parse(text: &str) -> Result<Self, NotAPattern> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(NotAPattern::TooLong);
        }
        let inner = match text.strip_prefix('/') {
            Some(inner) => inner,
            None if text.starts_with("**") => text,
            None => return Err(NotAPattern::NoSlash),
        };
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        let mut pieces = Vec::new();
        if !inner.is_empty() {
            for segment in inner.split('/') {
                pieces.push(Piece::parse(segment)?);
            }
        }
        if inner.rsplit('/').next() == Some("*") {
            pieces.push(Piece::Any);
        }
        if pieces.len() > PIECES_MAX {
            return Err(NotAPattern::TooDeep);
        }
        let pieces = ones_first(pieces);
        if pieces.iter().filter(|piece| **piece == Piece::Any).count() > ANY_MAX {
            return Err(NotAPattern::TooManyAny);
        }
        Ok(Self { text: text.into(), pieces: pieces.into() })
    }

    /// As it was written: what scope `endpoint` counts by.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// From the left; where a `**` took too little it takes one more. What follows the last `**` sits at the path's
    /// end and is compared there at once.
    pub fn matches(&self, path: &RequestPath<'_>) -> bool {
        let mut pieces = &self.pieces[..];
        let mut segments = path.segments();
        let mut wider = None;
        loop {
            let fits = match pieces.split_first() {
                None => match segments.next() {
                    None => return true,
                    Some(_) => false,
                },
                Some((Piece::Any, after)) => {
                    if !after.contains(&Piece::Any) {
                        return ends_with(after, segments);
                    }
                    wider = Some((after, segments.clone()));
                    pieces = after;
                    true
                }
                Some((piece, after)) => {
                    let Some(segment) = segments.next() else { return false };
                    pieces = after;
                    piece.fits(segment)
                }
            };
            if !fits {
                let Some((from, rest)) = &mut wider else { return false };
                rest.next();
                pieces = from;
                segments = rest.clone();
            }
        }
    }
}

fn ends_with<'p>(pieces: &[Piece], mut segments: impl Iterator<Item = &'p str> + Clone) -> bool {
    let Some(spare) = segments.clone().count().checked_sub(pieces.len()) else { return false };
    let at_end = if spare == 0 { Some("") } else { segments.nth(spare - 1) };
    at_end.is_some() && pieces.iter().zip(segments).all(|(piece, segment)| piece.fits(segment))
}

/// Within a run of wildcards only their number counts and whether one is open: `/**/*` is `/*/**`.
/// With the open one last there is one spelling, and no two of them side by side.
fn ones_first(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut ordered = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let after_any = ordered.last() == Some(&Piece::Any);
        match piece {
            Piece::Any if after_any => {}
            Piece::One if after_any => {
                let at = ordered.len() - 1;
                ordered.insert(at, Piece::One);
            }
            piece => ordered.push(piece),
        }
    }
    ordered
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

// === impl Piece ===

impl Piece {
    fn parse(segment: &str) -> Result<Self, NotAPattern> {
        let named = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        match segment {
            "" => Err(NotAPattern::EmptySegment),
            "." | ".." => Err(NotAPattern::DotSegment),
            "*" => Ok(Self::One),
            "**" => Ok(Self::Any),
            _ if named.is_some_and(|name| !name.contains(['{', '}', '*'])) => Ok(Self::One),
            _ if segment.contains(['{', '}', '*']) => Err(NotAPattern::PartialWildcard),
            _ if segment.contains(['?', '#']) => Err(NotAPattern::Query),
            _ if segment.contains(['\\', '\0']) => Err(NotAPattern::Backslash),
            _ if has_escape(segment) => Err(NotAPattern::Escaped),
            _ => Ok(Self::Literal(segment.into())),
        }
    }

    fn fits(&self, segment: &str) -> bool {
        match self {
            Self::Literal(text) => **text == *segment,
            Self::One => true,
            Self::Any => false,
        }
    }
}

fn has_escape(segment: &str) -> bool {
    segment
        .as_bytes()
        .windows(3)
        .any(|window| window[0] == b'%' && hex(window[1]).is_some() && hex(window[2]).is_some())
}

// === impl NotAPattern ===

impl fmt::Display for NotAPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "the pattern is longer than 512 bytes; end it earlier with `/**`",
            Self::TooDeep => "the pattern has more than 32 segments; end it earlier with `/**`",
            Self::NoSlash => "a pattern begins with `/` or `**`",
            Self::EmptySegment => "two slashes in a row never match; write one",
            Self::DotSegment => "`.` and `..` are resolved before matching; write the path that they lead to",
            Self::Query => "patterns are matched against the path alone; leave out `?`, `#` and what follows",
            Self::Backslash => "a backslash or a NUL of a request counts as a slash; write `/`",
            Self::Escaped => "patterns are matched against the decoded path; write the character itself instead of its %-code",
            Self::PartialWildcard => "a wildcard stands for a whole segment: `*`, `**` or `{name}` between slashes",
            Self::TooManyAny => "more than four `**` in one pattern; write several patterns",
        })
    }
}

impl std::error::Error for NotAPattern {}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        PathPattern::parse(pattern).unwrap().matches(&RequestPath::new(path))
    }

    #[test]
    fn each_wildcard_stands_for_what_it_says() {
        for (pattern, yes, no) in [
            ("/", &["/", ""][..], &["/a"][..]),
            ("/users", &["/users", "/users/"], &["/", "/Users", "/users/1", "/user", "/userss"]),
            ("/users/", &["/users"], &["/users/1"]),
            (
                "/users/{id}",
                &["/users/1", "/users%2F1"],
                &["/users", "/users/", "/users/1/x", "/users/1%2Fx"],
            ),
            ("/users/*/posts", &["/users/1/posts"], &["/users/posts", "/users/1/2/posts"]),
            ("/api/v1/*", &["/api/v1/a", "/api/v1/a/b"], &["/api/v1", "/api/v1/", "/api/v2/a"]),
            ("/*", &["/a", "/a/b"], &["/"]),
            ("**", &["/", "/a", "/a/b/c"], &[]),
            ("/**", &["/", "/a", "/a/b/c"], &[]),
            ("/a/**", &["/a", "/a/b", "/a/b/c"], &["/", "/ab"]),
            ("/**/x", &["/x", "/a/x", "/a/x/x"], &["/", "/x/a", "/ax"]),
            ("**/x", &["/x", "/a/b/x"], &["/xx"]),
            ("/a/**/x/**/z", &["/a/x/z", "/a/x/x/b/z", "/a/b/x/c/z"], &["/a/z", "/a/x", "/x/z"]),
            ("/**/*", &["/a", "/a/b"], &["/"]),
            ("/**/{x}/end", &["/a/end", "/a/b/end"], &["/end"]),
            ("/**/a/b/**", &["/a/b", "/a/a/b", "/a/c/a/b/d"], &["/a/c/b", "/b/a"]),
        ] {
            for path in yes {
                assert!(matches(pattern, path), "{pattern} {path}");
            }
            for path in no {
                assert!(!matches(pattern, path), "{pattern} {path}");
            }
        }
    }

    #[test]
    fn no_spelling_of_a_path_dodges_its_pattern() {
        for path in ["/admin/x", "//admin//x", "/a/../admin/x", "/%61dmin/x", "/a/%2e%2e/admin/x"] {
            assert!(matches("/admin/*", path), "{path}");
        }
        assert!(!matches("/admin/*", "/admin/%2e%2e/public"));
        assert!(matches("/public", "/admin/%2e%2e/public"));
    }

    #[test]
    fn what_could_never_match_is_refused() {
        for (text, fault) in [
            ("", NotAPattern::NoSlash),
            ("users", NotAPattern::NoSlash),
            ("*", NotAPattern::NoSlash),
            ("/a//b", NotAPattern::EmptySegment),
            ("/a/../b", NotAPattern::DotSegment),
            ("/a?b=c", NotAPattern::Query),
            ("/a\\b", NotAPattern::Backslash),
            ("/a\0", NotAPattern::Backslash),
            ("/a%20b", NotAPattern::Escaped),
            ("/files/*.json", NotAPattern::PartialWildcard),
            ("/files/{id}.json", NotAPattern::PartialWildcard),
            ("/files/{{id}}", NotAPattern::PartialWildcard),
            ("/***", NotAPattern::PartialWildcard),
            ("/**/a/**/a/**/a/**/a/**", NotAPattern::TooManyAny),
        ] {
            assert_eq!(PathPattern::parse(text), Err(fault), "{text}");
        }
        assert_eq!(PathPattern::parse(&"/a".repeat(40)), Err(NotAPattern::TooDeep));
        assert_eq!(
            PathPattern::parse(&"/aaaaaaaaaaaaaaaaaaaaa".repeat(30)),
            Err(NotAPattern::TooLong)
        );
    }

    #[test]
    fn a_percent_sign_that_escapes_nothing_is_a_character() {
        assert!(matches("/100%", "/100%25"));
        assert!(matches("/%zz", "/%zz"));
    }

    #[test]
    fn a_long_path_is_no_burden_for_a_pattern_that_searches() {
        let path = format!("{}b", "/a".repeat(4096));
        assert!(!matches("/**/a/a/a/**/a/a/a/**/a/a/a/**/c", &path));
        assert!(matches("/**/a/a/a/**/a/a/a/**/a/ab", &path));
    }
}
