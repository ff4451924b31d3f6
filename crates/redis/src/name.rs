//! What a cell is called in Redis: `rl:{<tag>}:<scope>:<identifier>:<algorithm>[:<window>]`. The braces are the only
//! hash tag there can be: whatever a caller chose is escaped, and where it is long, hashed.

use std::fmt::Write as _;
use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher13};
use tollkeeper_core::{Algorithm, Limit, Window};
use tollkeeper_decide::{CellName, Scope};

/// A part of a name that is longer when escaped is written as its hash.
const PART_BYTES_MAX: usize = 128;

/// The record of a cell; of a fixed window's cell, that of one window.
pub(crate) fn record_key(name: &CellName, limit: &Limit, win: u64) -> String {
    let (kind, width, window) = shape(limit, win);
    let mut key = format!("rl:{{{}}}:", name.tag());
    push_scope(&mut key, &name.scope);
    let _ = write!(key, "/{width}:");
    push_part(&mut key, &name.identifier);
    let _ = write!(key, ":{kind}");
    if let Some(window) = window {
        let _ = write!(key, ":{window}");
    }
    key
}

/// What matches every record of an identifier, or of a whole scope.
pub(crate) fn record_pattern(scope: &Scope, identifier: Option<&str>) -> String {
    let tag = identifier.map(|one| {
        CellName { scope: std::sync::Arc::new(scope.clone()), identifier: one.into() }
            .tag()
            .to_string()
    });
    let mut pattern = format!("rl:{{{}}}:", tag.as_deref().unwrap_or("*"));
    push_scope(&mut pattern, scope);
    pattern.push_str("/*:");
    match identifier {
        Some(identifier) => push_part(&mut pattern, identifier),
        None => pattern.push('*'),
    }
    pattern.push_str(":*");
    pattern
}

fn push_scope(key: &mut String, scope: &Scope) {
    push_part(key, &scope.tenant);
    // No escaped part begins with it: owners and namespaces never meet.
    key.push_str(if scope.of_owner { "/@" } else { "/" });
    push_part(key, &scope.space);
}

fn shape(limit: &Limit, win: u64) -> (&'static str, String, Option<u64>) {
    match limit.algorithm {
        Algorithm::FixedWindow(Window::Aligned(width)) => {
            ("fw", width.millis().to_string(), Some(win / width.millis()))
        }
        Algorithm::FixedWindow(Window::Day) => ("fw", "day".to_owned(), Some(win)),
        Algorithm::FixedWindow(Window::Month) => ("fw", "month".to_owned(), Some(win)),
        Algorithm::SlidingWindow(width) => ("sw", width.millis().to_string(), None),
        Algorithm::SlidingLog(width) => ("sl", width.millis().to_string(), None),
        Algorithm::TokenBucket { width, .. } => ("tb", width.millis().to_string(), None),
    }
}

/// A part as it is written in names.
pub(crate) fn written(part: &str) -> String {
    let mut text = String::new();
    push_part(&mut text, part);
    text
}

/// Letters, digits and three marks stand for themselves, everything else as `%` and two digits. A hash has a `#` in front,
/// which no escaped text has.
fn push_part(key: &mut String, part: &str) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let length: usize = part.bytes().map(|byte| if plain(byte) { 1 } else { 3 }).sum();
    if length > PART_BYTES_MAX {
        let mut hasher = SipHasher13::new_with_keys(0, 0);
        hasher.write(part.as_bytes());
        let hash = hasher.finish128();
        let _ = write!(key, "#{:016x}{:016x}", hash.h1, hash.h2);
        return;
    }
    for byte in part.bytes() {
        if plain(byte) {
            key.push(char::from(byte));
        } else {
            let _ = write!(key, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::Arc;

    use tollkeeper_core::{Quota, Width};

    use super::*;

    fn key(space: &str, identifier: &str) -> String {
        let scope = Arc::new(Scope::namespace("default", space));
        let limit =
            Limit::sliding_window(Quota::new(5).unwrap(), Width::from_millis(60_000).unwrap());
        record_key(&CellName::new(&scope, identifier), &limit, 0)
    }

    #[test]
    fn a_name_says_whose_counter_it_is() {
        let key = key("payments", "user_1");
        assert!(
            key.starts_with("rl:{") && key.ends_with("}:default/payments/60000:user_1:sw"),
            "{key}"
        );
    }

    #[test]
    fn no_caller_can_steer_the_slot_or_reach_another_counter() {
        let hostile = ["{x}", "a:sw", "a/60000:b", "}", "%7B", "#", "@", "*", "\u{0}", "é", "a b"];
        let mut seen = std::collections::HashSet::new();
        for text in hostile {
            for key in [key(text, "i"), key("n", text)] {
                assert_eq!(key.matches('{').count(), 1, "{key}");
                assert!(!key[3..].contains('*') && key.is_ascii(), "{key}");
                assert!(seen.insert(key));
            }
        }
    }

    #[test]
    fn a_long_part_is_hashed_and_still_its_own() {
        let (a, b) = (key("n", &"x".repeat(5_000)), key("n", &"x".repeat(5_001)));
        assert!(a.len() < 100 && a != b, "{a}");
    }

    #[test]
    fn an_owner_never_meets_a_namespace() {
        let limit = Limit::sliding_window(Quota::new(5).unwrap(), Width::from_millis(1).unwrap());
        let of = |scope| record_key(&CellName::new(&Arc::new(scope), "i"), &limit, 0);
        assert_ne!(
            of(Scope::owner("t", "x")).split_once(':').unwrap().1.split_once(':').unwrap().1,
            of(Scope::namespace("t", "@x")).split_once(':').unwrap().1.split_once(':').unwrap().1
        );
    }
}
