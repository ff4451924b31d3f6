//! The hash of the index's maps: a multiplication per word. Without a random key, because what is in such a map was
//! written by the tenant whose own requests look things up in it; a request only ever reads.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(super) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Folding>>;

#[derive(Clone, Copy, Debug)]
pub(super) struct Folding(u64);

/// Digits of the golden ratio and of pi: any odd numbers without a pattern would do.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const FACTOR: u64 = 0x243f_6a88_85a3_08d3;

// === impl Folding ===

impl Default for Folding {
    fn default() -> Self {
        Self(SEED)
    }
}

impl Folding {
    /// Both halves of the product, so that every bit of the word reaches every bit that a map looks at.
    #[allow(clippy::cast_possible_truncation, reason = "the halves of a product, on purpose")]
    fn fold(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(FACTOR);
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for Folding {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.fold(u64::from_le_bytes(*word));
        }
        // In registers: to copy a few bytes of any number takes a call.
        if !rest.is_empty() {
            self.fold(rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.fold(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.fold(u64::from(value));
    }

    fn write_usize(&mut self, value: usize) {
        self.fold(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::*;

    /// A map looks at the highest seven bits and at the lowest ones.
    #[test]
    fn names_that_differ_in_a_digit_spread_over_the_whole_map() {
        let hasher = BuildHasherDefault::<Folding>::default();
        let hashes: Vec<u64> =
            (0..10_000).map(|n| hasher.hash_one(format!("resource-{n}").as_str())).collect();
        let low: HashSet<u64> = hashes.iter().map(|hash| hash % 16_384).collect();
        let high: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
        // At random 10,000 of 16,384 places are taken by 7,500 or so.
        assert!(low.len() > 7_000, "{}", low.len());
        assert_eq!(high.len(), 128);
    }
}
