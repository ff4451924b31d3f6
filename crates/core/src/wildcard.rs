//! Identifier patterns of overrides: `*` stands for any run of characters, the rest for itself.
//! Anchored at both ends, case-sensitive.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wildcard {
    pattern: Box<str>,
}

// === impl Wildcard ===

impl Wildcard {
    pub fn new(pattern: &str) -> Self {
        Self { pattern: pattern.into() }
    }

    /// Is there a `*` in it at all? Without one it only ever matches itself.
    pub fn is_pattern(text: &str) -> bool {
        text.contains('*')
    }

    /// More literal characters make a pattern more specific.
    pub fn literal_chars(&self) -> usize {
        self.pattern.chars().filter(|c| *c != '*').count()
    }

    /// First and last literal run sit at the ends; those between are found greedily from the left,
    /// which is enough because a run found earlier only leaves more text for the next.
    pub fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.pattern.split_once('*') else {
            return *self.pattern == *text;
        };
        let Some(mut text) = text.strip_prefix(first) else { return false };
        let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        for run in middle.split('*') {
            let Some(found) = text.find(run) else { return false };
            text = &text[found + run.len()..];
        }
        text.ends_with(last)
    }
}
