//! Identifiers as clients send them: 40 characters, and random streams of them that are the same in every run.

/// As many as a busy node holds.
pub(crate) const IDENTIFIERS: u64 = 1_000_000;

/// A fixed walk through all 64-bit numbers (splitmix64), so that every run sees the same requests.
#[derive(Clone, Debug)]
pub(crate) struct Walk(u64);

// === impl Walk ===

impl Walk {
    pub(crate) fn from(seed: u64) -> Self {
        Self(seed)
    }
}

impl Iterator for Walk {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        Some(mix(self.0))
    }
}

/// The `n`-th identifier, shaped like an API key.
pub(crate) fn identifier(n: u64) -> String {
    format!("rk_live_{:016x}{:016x}", mix(n), mix(!n))
}

pub(crate) fn all() -> Vec<String> {
    (0..IDENTIFIERS).map(identifier).collect()
}

/// Requests in the order they come in, each with its own copy of the text, as if just parsed.
pub(crate) fn stream(seed: u64, requests: usize) -> Vec<String> {
    Walk::from(seed).take(requests).map(|random| identifier(random % IDENTIFIERS)).collect()
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_has_forty_bytes_and_is_like_no_other() {
        let some: std::collections::HashSet<_> = (0..10_000).map(identifier).collect();
        assert_eq!(some.len(), 10_000);
        assert!(some.iter().all(|text| text.len() == 40));
    }

    #[test]
    fn a_stream_is_the_same_in_every_run() {
        assert_eq!(stream(7, 100), stream(7, 100));
        assert_ne!(stream(7, 100), stream(8, 100));
    }
}
