//! A request's path as rules see it: percent-decoded once, without query, fragment and trailing slash, with `.`, `..`
//! and empty segments resolved as a proxy would, so that no spelling of a path dodges a rule.
//! Any text gives a path; nothing here fails.

use std::fmt;

#[derive(Clone, Debug)]
pub struct RequestPath<'a> {
    form: Form<'a>,
}

#[derive(Clone, Debug)]
enum Form<'a> {
    /// Nothing to decode or to resolve: the text as it came, without the slashes at its ends.
    Plain(&'a str),
    /// Segments one behind the other. They have ends of their own because a decoded one may hold a slash.
    Resolved { text: String, ends: Vec<usize> },
}

#[derive(Clone, Debug)]
pub(super) enum Segments<'p> {
    Plain(Option<&'p str>),
    Resolved { text: &'p str, ends: &'p [usize], start: usize },
}

// === impl RequestPath ===

impl<'a> RequestPath<'a> {
    pub fn new(text: &'a str) -> Self {
        let path = without_origin(text);
        let (path, plain) = cut(path.strip_prefix('/').unwrap_or(path));
        let form = if plain { Form::Plain(path) } else { resolved(path) };
        Self { form }
    }

    pub(super) fn segments(&self) -> Segments<'_> {
        match &self.form {
            Form::Plain(text) => Segments::Plain((!text.is_empty()).then_some(text)),
            Form::Resolved { text, ends } => Segments::Resolved { text, ends, start: 0 },
        }
    }
}

/// What stands before the path in the absolute form of a request: `https://host/path` asks for `/path`.
fn without_origin(text: &str) -> &str {
    if text.starts_with('/') {
        return text;
    }
    match text.split_once("://") {
        Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            rest.find(['/', '?', '#']).map_or("", |at| &rest[at..])
        }
        _ => text,
    }
}

/// The path without query, fragment and one slash at its end, and whether it is to be taken as it is.
fn cut(text: &str) -> (&str, bool) {
    let bytes = text.as_bytes();
    let (mut end, mut start, mut plain) = (bytes.len(), 0, true);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'/' => {
                plain &= !is_resolved(&bytes[start..at]);
                start = at + 1;
            }
            b'%' | b'\\' | 0 => plain = false,
            b'?' | b'#' => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    // Nothing behind the last slash: a trailing slash, or the root.
    let end = if start == end {
        start.saturating_sub(1)
    } else {
        plain &= !is_resolved(&bytes[start..end]);
        end
    };
    (&text[..end], plain)
}

fn is_resolved(segment: &[u8]) -> bool {
    matches!(segment, b"" | b"." | b"..")
}

/// To some servers a backslash is a slash, and at a NUL the path ends: as separators, neither hides what stands before it.
const SEPARATORS: [char; 3] = ['/', '\\', '\0'];

fn resolved<'a>(inner: &str) -> Form<'a> {
    // Decoded first: to most servers `%2F` is a slash like any other, and a rule must not be dodged by writing it so.
    let mut decoded = String::with_capacity(inner.len());
    decode(inner, &mut decoded);
    let mut text = String::with_capacity(decoded.len());
    let mut ends: Vec<usize> = Vec::new();
    for segment in decoded.split(SEPARATORS) {
        match segment {
            "" | "." => {}
            ".." => {
                // Above the root there is only the root again.
                ends.pop();
                text.truncate(ends.last().copied().unwrap_or(0));
            }
            _ => {
                text.push_str(segment);
                ends.push(text.len());
            }
        }
    }
    Form::Resolved { text, ends }
}

/// Percent-decodes a path. A `%` without two digits stands for itself; bytes that are no UTF-8 become U+FFFD.
fn decode(raw: &str, into: &mut String) {
    if !raw.contains('%') {
        into.push_str(raw);
        return;
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = match after {
            [high, low, ..] if first == b'%' => hex(*high).zip(hex(*low)),
            _ => None,
        };
        if let Some((high, low)) = escaped {
            bytes.push(high << 4 | low);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    into.push_str(&String::from_utf8_lossy(&bytes));
}

pub(super) fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Decoded.
impl fmt::Display for RequestPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut segments = self.segments().peekable();
        if segments.peek().is_none() {
            return f.write_str("/");
        }
        for segment in segments {
            write!(f, "/{segment}")?;
        }
        Ok(())
    }
}

// === impl Segments ===

impl<'p> Iterator for Segments<'p> {
    type Item = &'p str;

    fn next(&mut self) -> Option<&'p str> {
        match self {
            Self::Plain(rest) => {
                let text = (*rest)?;
                let (segment, after) = match text.bytes().position(|byte| byte == b'/') {
                    Some(at) => (&text[..at], Some(&text[at + 1..])),
                    None => (text, None),
                };
                *rest = after;
                Some(segment)
            }
            Self::Resolved { text, ends, start } => {
                let (&end, after) = ends.split_first()?;
                let segment = &text[*start..end];
                (*ends, *start) = (after, end);
                Some(segment)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segments(text: &str) -> Vec<String> {
        RequestPath::new(text).segments().map(str::to_owned).collect()
    }

    #[test]
    fn every_spelling_of_a_path_is_the_same_path() {
        for text in [
            "/api/users",
            "/api/users/",
            "/api/users?x=/y",
            "/api/users/#top",
            "api/users",
            "//api///users//",
            "/./api/./users/.",
            "/api/x/../users",
            "/api/%2e/users",
            "/api/x/%2E%2e/users",
            "/../../api/users",
            "/%61pi/user%73",
            "/api/users/x/..",
            "https://example.com/api/users?x",
        ] {
            assert_eq!(segments(text), ["api", "users"], "{text}");
        }
    }

    #[test]
    fn an_encoded_slash_is_a_slash_so_that_no_rule_is_dodged_by_it() {
        assert_eq!(segments("/admin%2Fusers"), ["admin", "users"]);
        assert_eq!(segments("/public/..%2fadmin"), ["admin"]);
        assert_eq!(RequestPath::new("/files/a%2fb").to_string(), "/files/a/b");
    }

    #[test]
    fn a_backslash_and_a_nul_part_segments_encoded_or_not() {
        for text in [
            "/admin\\users",
            "\\admin\\users",
            "/admin%5cusers",
            "/admin%00/users",
            "/x\\..%5Cadmin\0users",
        ] {
            assert_eq!(segments(text), ["admin", "users"], "{text:?}");
        }
        assert_eq!(segments("/admin;x=1/users"), ["admin;x=1", "users"]);
    }

    #[test]
    fn what_was_encoded_twice_is_decoded_once() {
        assert_eq!(segments("/%252e%252e/a"), ["%2e%2e", "a"]);
        assert_eq!(segments("/a%3Fb%23c"), ["a?b#c"]);
    }

    #[test]
    fn bad_escapes_stand_for_themselves_and_bad_utf8_for_no_character() {
        assert_eq!(segments("/%/%z1/%1"), ["%", "%z1", "%1"]);
        assert_eq!(segments("/%ff/%C3%A9"), ["\u{fffd}", "é"]);
        assert_eq!(segments("/%é1"), ["%é1"]);
    }

    #[test]
    fn the_root_has_no_segments() {
        for text in ["", "/", "//", "/.", "/..", "/a/..", "?x", "#", "https://example.com", "%2e"] {
            assert_eq!(segments(text), Vec::<String>::new(), "{text}");
            assert_eq!(RequestPath::new(text).to_string(), "/", "{text}");
        }
    }

    #[test]
    fn a_plain_path_is_not_copied() {
        for text in ["/api/v1/users/42", "/", "/api/users/?q=%20", "/né/.well-known/..."] {
            assert!(matches!(RequestPath::new(text).form, Form::Plain(_)), "{text}");
        }
    }

    #[test]
    fn a_long_path_of_dots_and_slashes_is_read_in_one_pass() {
        for unit in ["/", "../", "%2e%2e/", "a/", "%", "%2", "/a/..", "a/../"] {
            let text = unit.repeat(8192 / unit.len());
            let path = RequestPath::new(&text);
            assert!(path.segments().count() <= 8192);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(10_000) })]

        #[test]
        fn no_text_leads_above_the_root_or_keeps_what_a_proxy_resolves(
            text in r"(/|\.|%2e|%2E|%2f|%|%%|a|é|%ff|\?|#|:|\\|\PC){0,40}",
        ) {
            for segment in segments(&text) {
                prop_assert!(!matches!(&*segment, "" | "." | ".."), "{segment:?}");
                prop_assert!(!segment.contains(SEPARATORS), "{segment:?}");
            }
        }

        #[test]
        fn what_is_shown_of_a_path_without_percent_signs_is_the_same_path(
            text in r"(/|\.|a|b|é|%2e|%2f|%61){0,40}",
        ) {
            let shown = RequestPath::new(&text).to_string();
            prop_assert_eq!(segments(&shown), segments(&text));
        }
    }
}
