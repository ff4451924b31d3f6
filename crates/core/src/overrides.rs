//! Overrides of one namespace: which one, if any, replaces the limit that a request asks for.
//! Built once when the namespace is loaded, read on every request.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Millis, Quota, Width, Wildcard};

/// Patterns are tried one by one on the way of every request: a thousand take some ten microseconds.
const WILDCARDS_MAX: usize = 1_000;
/// All overrides of a namespace are loaded together, some 100 bytes each.
const EXACT_MAX: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    pub id: Arc<str>,
    pub identifier: String,
    pub quota: Quota,
    pub width: Width,
    pub created_at: Millis,
}

#[derive(Clone, Debug, Default)]
pub struct Overrides {
    exact: HashMap<String, Override>,
    /// Most specific first; of equals, the oldest.
    wild: Vec<(Wildcard, Override)>,
}

// === impl Overrides ===

impl Overrides {
    /// The override for this identifier: exact beats wildcard, then most literal characters, then age. A wildcard asked for by
    /// its own text is exact too, whichever others match that text.
    pub fn find(&self, identifier: &str) -> Option<&Override> {
        if self.exact.is_empty() && self.wild.is_empty() {
            return None;
        }
        let named = || {
            let named = |(_, one): &&(Wildcard, Override)| one.identifier == identifier;
            Wildcard::is_pattern(identifier).then(|| self.wild.iter().find(named)).flatten()
        };
        let wild = || self.wild.iter().find(|(pattern, _)| pattern.matches(identifier));
        let found = || named().or_else(wild).map(|(_, found)| found);
        self.exact.get(identifier).or_else(found)
    }
}

impl Overrides {
    /// May this identifier have an override beside those that are here, or does it have one already?
    pub fn has_room_for(&self, identifier: &str) -> bool {
        if Wildcard::is_pattern(identifier) {
            let known = self.wild.iter().any(|(_, one)| one.identifier == identifier);
            known || self.wild.len() < WILDCARDS_MAX
        } else {
            self.exact.contains_key(identifier) || self.exact.len() < EXACT_MAX
        }
    }
}

impl FromIterator<Override> for Overrides {
    fn from_iter<I: IntoIterator<Item = Override>>(all: I) -> Self {
        let mut overrides = Self::default();
        for one in all {
            if Wildcard::is_pattern(&one.identifier) {
                overrides.wild.push((Wildcard::new(&one.identifier), one));
            } else {
                overrides.exact.insert(one.identifier.clone(), one);
            }
        }
        overrides.wild.sort_by(|(a, left), (b, right)| {
            let specific = b.literal_chars().cmp(&a.literal_chars());
            specific.then_with(|| (left.created_at, &left.id).cmp(&(right.created_at, &right.id)))
        });
        overrides
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn overrides(identifiers: &[&str]) -> Overrides {
        let one = |(age, identifier): (usize, &&str)| Override {
            id: Arc::from(format!("rlor_{age}")),
            identifier: (*identifier).to_owned(),
            quota: Quota::new(age as u64).unwrap(),
            width: Width::from_millis(1000).unwrap(),
            created_at: Millis(age as u64),
        };
        identifiers.iter().enumerate().map(one).collect()
    }

    fn winner(identifiers: &[&str], text: &str) -> Option<String> {
        overrides(identifiers).find(text).map(|found| found.identifier.clone())
    }

    #[test]
    fn an_exact_override_beats_every_wildcard() {
        assert_eq!(winner(&["*", "user_*", "user_1"], "user_1").as_deref(), Some("user_1"));
    }

    #[test]
    fn the_wildcard_with_most_literal_characters_wins() {
        assert_eq!(winner(&["*", "u*", "user_*", "us*"], "user_9").as_deref(), Some("user_*"));
    }

    #[test]
    fn a_wildcard_is_found_by_its_own_text_whichever_others_match_it() {
        assert_eq!(winner(&["*a*b*", "a*b"], "a*b").as_deref(), Some("a*b"));
        assert_eq!(winner(&["*a*b*", "a*b"], "*a*b*").as_deref(), Some("*a*b*"));
        assert_eq!(winner(&["*a*b*", "a*b"], "ab").as_deref(), Some("*a*b*"));
    }

    #[test]
    fn of_equally_specific_wildcards_the_oldest_wins() {
        assert_eq!(winner(&["*a", "a*"], "aa").as_deref(), Some("*a"));
    }

    #[test]
    fn a_wildcard_is_anchored_at_both_ends_and_case_sensitive() {
        for (pattern, text, expected) in [
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "abcd", false),
            ("a*c", "xabc", false),
            ("A*", "abc", false),
            ("*ab*ab*", "abab", true),
            ("*ab*ab*", "aba", false),
            ("a*a", "a", false),
            ("**", "", true),
            ("*é*", "né", true),
            ("a*b*c", "aXbYbZc", true),
        ] {
            assert_eq!(Wildcard::new(pattern).matches(text), expected, "{pattern} {text}");
        }
    }
}
