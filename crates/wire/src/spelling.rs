//! The spellings of the API: which characters a prefix, a slug or an address is made of.
//! Plain predicates. Whether the thing that is spelled exists is never asked here.

use std::net::IpAddr;

use crate::schema::{Chars, Shape, Spelling};

/// A text with exactly these characters. The pattern says in a regular expression what the predicate says in Rust.
macro_rules! alphabet {
    ($(#[$about:meta])* $name:ident, $of:literal, $pattern:literal, $class:pat, $examples:expr) => {
        $(#[$about])*
        pub const $name: Spelling = Spelling {
            of: $of,
            pattern: Some($pattern),
            holds: |text| text.bytes().all(|byte| matches!(byte, $class)),
            examples: $examples,
        };
    };
}

alphabet! {
    /// Ids that the server made, and key prefixes.
    WORD, "letters, digits and `_`", "^[a-zA-Z0-9_]+$",
    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_',
    &["key_2bQ9", "prod"]
}
alphabet! {
    /// A caller's own names for its users and tiers.
    NAME, "letters, digits, `_`, `.` and `-`", "^[a-zA-Z0-9_.-]+$",
    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-',
    &["user_123", "ann.example"]
}
alphabet! {
    /// Permissions. The star is a character like any other.
    PERMISSION, "letters, digits, `_`, `:`, `-`, `.` and `*`", "^[a-zA-Z0-9_:.*-]+$",
    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b':' | b'-' | b'.' | b'*',
    &["documents.read", "api.*.verify_key"]
}
alphabet! {
    /// Names of projects and tenants as they stand in URLs and cell names.
    SLUG, "lower-case letters, digits and `-`", "^[a-z0-9-]+$",
    b'a'..=b'z' | b'0'..=b'9' | b'-',
    &["payments", "eu-1"]
}
alphabet! {
    /// Methods, as HTTP spells them.
    TOKEN, "an HTTP method, such as `GET`", "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~',
    &["GET", "PATCH"]
}

pub const ADDRESS: Spelling = Spelling {
    of: "an IPv4 or IPv6 address",
    pattern: None,
    holds: |text| text.parse::<IpAddr>().is_ok(),
    examples: &["203.0.113.9", "2001:db8::1"],
};

pub const ADDRESS_RANGE: Spelling = Spelling {
    of: "an address, or a range like `10.0.0.0/8`",
    pattern: None,
    holds: is_address_range,
    examples: &["10.0.0.0/8", "2001:db8::/32", "203.0.113.9"],
};

pub const HOST: Spelling = Spelling {
    of: "a host name, or `*.` and a host name",
    pattern: Some(r"^(\*\.)?[a-zA-Z0-9._:-]*[a-zA-Z0-9_:-]\.*$"),
    holds: is_host,
    examples: &["example.com", "*.example.com"],
};

pub const DIGEST: Spelling = Spelling {
    of: "a SHA-256 digest in hexadecimal or base64",
    pattern: Some("^([0-9a-fA-F]{64}|[A-Za-z0-9+/_-]{43}=?)$"),
    holds: is_digest,
    examples: &[
        "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=",
    ],
};

fn is_address_range(text: &str) -> bool {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let bits = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    prefix.is_none_or(|prefix| {
        // `parse` alone would also take a plus sign.
        prefix.bytes().all(|byte| byte.is_ascii_digit())
            && prefix.parse::<u8>().is_ok_and(|prefix| prefix <= bits)
    })
}

fn is_host(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let known =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-');
    !name.trim_end_matches('.').is_empty() && name.bytes().all(known)
}

fn is_digest(text: &str) -> bool {
    let base64 =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_' | b'-');
    match text.len() {
        64 => text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        43 | 44 => {
            let digits = if text.len() == 44 { text.strip_suffix('=') } else { Some(text) };
            digits.is_some_and(|digits| digits.bytes().all(base64))
        }
        _ => false,
    }
}

/// An id that the server made.
pub(crate) const ID: Shape = Shape::Spelled(Chars { min: 3, max: 255 }, &WORD);
pub(crate) const PREFIX: Shape = Shape::Spelled(Chars { min: 1, max: 16 }, &WORD);
pub(crate) const EXTERNAL_ID: Shape = Shape::Spelled(Chars { min: 1, max: 255 }, &NAME);
pub(crate) const TIER: Shape = Shape::Spelled(Chars { min: 1, max: 64 }, &NAME);
pub(crate) const PERMISSION_SLUG: Shape = Shape::Spelled(Chars { min: 1, max: 128 }, &PERMISSION);
pub(crate) const PROJECT_SLUG: Shape = Shape::Spelled(Chars { min: 1, max: 64 }, &SLUG);
pub(crate) const IP: Shape = Shape::Spelled(Chars { min: 2, max: 45 }, &ADDRESS);
/// Longer lists belong into a firewall; each entry is looked at on every verification.
pub(crate) const IP_ALLOWLIST: Shape = Shape::List {
    of: &Shape::Spelled(Chars { min: 2, max: 49 }, &ADDRESS_RANGE),
    min: 0,
    max: 100,
};
pub(crate) const HOSTS: Shape =
    Shape::List { of: &Shape::Spelled(Chars { min: 1, max: 255 }, &HOST), min: 0, max: 100 };
pub(crate) const KEY_HASH: Shape = Shape::Spelled(Chars { min: 43, max: 64 }, &DIGEST);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_holds_for_its_own_examples() {
        for spelling in [WORD, NAME, PERMISSION, SLUG, TOKEN, ADDRESS, ADDRESS_RANGE, HOST, DIGEST]
        {
            assert!(spelling.examples.iter().all(|text| (spelling.holds)(text)), "{}", spelling.of);
        }
    }

    #[test]
    fn a_spelling_refuses_what_it_does_not_name() {
        let refused: [(Spelling, &[&str]); 9] = [
            (WORD, &["a-b", "a.b", "ä", "a b", "a\n"]),
            (NAME, &["a/b", "a:b", "ann@example.com"]),
            (PERMISSION, &["a b", "a/b", "a,b"]),
            (SLUG, &["A", "a_b", "a/b"]),
            (TOKEN, &["GET /", "GET\r", "G(T", "G\"T", "GÄT", "A:B", "A,B", "\u{7f}"]),
            (ADDRESS, &["", "256.1.1.1", "10.0.0.0/8", "::1%eth0", "localhost"]),
            (
                ADDRESS_RANGE,
                &["10.0.0.0/", "10.0.0.0/33", "::/129", "10.0.0.0/+8", "10/8", "1.2.3.4/8/8"],
            ),
            (HOST, &["", ".", "*.", "*", "https://example.com", "a.*.com", "exa mple"]),
            (DIGEST, &["", "abc", "g", "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ?"]),
        ];
        for (spelling, texts) in refused {
            for text in texts {
                assert!(!(spelling.holds)(text), "{text:?} is not {}", spelling.of);
            }
        }
    }

    #[test]
    fn an_address_range_covers_at_most_the_whole_family() {
        for text in ["0.0.0.0/0", "10.1.2.3/32", "::/0", "::1/128", "::ffff:10.0.0.1/96"] {
            assert!(is_address_range(text), "{text}");
        }
    }
}
