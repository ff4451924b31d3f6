//! Paging through a list: where to go on, and how many rows at once.
//! A cursor that no page of the list ended with is refused by its form: it would pass for a list that has ended.

use crate::schema::{Chars, Shape, Spelling, Whole};

pub const CURSOR: Chars = Chars { min: 1, max: 512 };
pub const PAGE: Whole = Whole { min: 1, max: 100 };
/// Rows on a page of keys, identities, permissions and the like, when none are asked for.
pub const PAGE_DEFAULT: u64 = 100;
pub const SEARCH: Chars = Chars { min: 0, max: 256 };

pub(crate) const PAGE_LIMIT: Shape = Shape::Integer(PAGE);
pub(crate) const PAGE_SEARCH: Shape = Shape::Text(SEARCH);

pub(crate) const LIMIT_ABOUT: &str = "Rows on a page. Default 100.";
pub(crate) const CURSOR_ABOUT: &str = "Where to go on, from the page before.";

const OF: &str = "one of ours: what the page before said";
/// Characters behind the prefix of an id.
const ID_CHARS: usize = 20;

/// A list in the order of ids goes on at an id.
macro_rules! at_an_id {
    ($name:ident, $prefix:literal) => {
        pub(crate) const $name: Shape = Shape::Spelled(
            CURSOR,
            &Spelling {
                of: OF,
                pattern: Some(concat!("^", $prefix, "_[a-zA-Z0-9]{20}$")),
                holds: |text| is_id(concat!($prefix, "_"), text),
                examples: &[concat!($prefix, "_2bQ9xW3kTn5mVz8rYp1c")],
            },
        );
    };
}

at_an_id!(KEY_CURSOR, "key");
at_an_id!(IDENTITY_CURSOR, "id");
at_an_id!(OVERRIDE_CURSOR, "rlor");
at_an_id!(PERMISSION_CURSOR, "perm");
at_an_id!(PROJECT_CURSOR, "api");
at_an_id!(ROLE_CURSOR, "role");
at_an_id!(ROOT_KEY_CURSOR, "rk");
at_an_id!(TENANT_CURSOR, "ws");

/// Lists that go on at a moment or at a place in a chain.
pub(crate) const NUMBER_CURSOR: Shape = Shape::Spelled(
    CURSOR,
    &Spelling {
        of: OF,
        pattern: Some("^[0-9]{1,18}$"),
        holds: |text| is_number(text),
        examples: &["1767225600000", "12"],
    },
);

pub(crate) const DECISION_CURSOR: Shape = Shape::Spelled(
    CURSOR,
    &Spelling {
        of: OF,
        pattern: Some("^[0-9]{1,18}[.]req_[a-zA-Z0-9]{16}$"),
        holds: |text| {
            text.split_once(".req_").is_some_and(|(at, id)| is_number(at) && is_word(id, 16))
        },
        examples: &["1767225600000.req_2bQ9xW3kTn5mVz8r"],
    },
);

pub(crate) const USAGE_CURSOR: Shape = Shape::Spelled(
    CURSOR,
    &Spelling {
        of: OF,
        pattern: Some(
            "^([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,18})[|](key_[a-zA-Z0-9]{20})?[|]api_[a-zA-Z0-9]{20}$",
        ),
        holds: is_usage_cursor,
        examples: &["2026-01-01|key_2bQ9xW3kTn5mVz8rYp1c|api_2bQ9xW3kTn5mVz8rYp1c"],
    },
);

/// Rules go on at a name. Any word may be one, so its length stands before it: a cursor that was cut off is seen too.
pub(crate) const RULE_CURSOR: Shape = Shape::Spelled(
    CURSOR,
    &Spelling {
        of: OF,
        pattern: Some("^[0-9]{1,3}:.+$"),
        holds: |text| named_by(text).is_some(),
        examples: &["5:burst"],
    },
);

/// The cursor of a list in the order of names.
pub fn cursor_at(name: &str) -> String {
    format!("{}:{name}", name.len())
}

/// The name that such a cursor goes on at.
pub fn named_by(cursor: &str) -> Option<&str> {
    let (length, name) = cursor.split_once(':')?;
    (is_number(length) && length.parse() == Ok(name.len()) && !name.is_empty()).then_some(name)
}

/// Whether a cursor of usage goes on at a day, and not at a minute or an hour.
pub(crate) fn goes_on_at_a_day(cursor: &str) -> bool {
    cursor.split('|').next().is_some_and(is_date)
}

fn is_usage_cursor(text: &str) -> bool {
    let parts: Vec<_> = text.split('|').collect();
    let [at, key, project] = parts[..] else { return false };
    (is_date(at) || is_number(at))
        && (key.is_empty() || is_id("key_", key))
        && is_id("api_", project)
}

fn is_id(prefix: &str, text: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|random| is_word(random, ID_CHARS))
}

fn is_word(text: &str, chars: usize) -> bool {
    text.len() == chars && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Eighteen digits fit every integer that a cursor is read as.
fn is_number(text: &str) -> bool {
    (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
#[allow(clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_that_was_cut_off_anywhere_is_none() {
        for shape in [
            KEY_CURSOR,
            IDENTITY_CURSOR,
            OVERRIDE_CURSOR,
            PERMISSION_CURSOR,
            PROJECT_CURSOR,
            ROLE_CURSOR,
            ROOT_KEY_CURSOR,
            TENANT_CURSOR,
            DECISION_CURSOR,
            USAGE_CURSOR,
            RULE_CURSOR,
        ] {
            let Shape::Spelled(_, spelling) = shape else { panic!("{shape:?}") };
            for example in spelling.examples {
                assert!((spelling.holds)(example), "{example}");
                for end in 0..example.len() {
                    assert!(!(spelling.holds)(&example[..end]), "{}", &example[..end]);
                }
                assert!(!(spelling.holds)(&format!("{example}0")), "{example}");
            }
            assert!(!(spelling.holds)("bogus"));
        }
    }

    #[test]
    fn the_cursor_of_a_name_leads_back_to_it() {
        for name in ["a", "burst", "größe:2", "1:1"] {
            assert_eq!(named_by(&cursor_at(name)), Some(name));
        }
        for other in ["", "5", "5:", "0:", "4:burst", "+5:burst", "burst", ":burst"] {
            assert_eq!(named_by(other), None, "{other}");
        }
    }
}
