//! A Bloom filter over parked cells: says "surely not parked" without asking the shelf.
//! Fixed in size; a wrong "maybe" costs one read, a wrong "no" cannot happen.

use crate::sync::{AtomicBool, AtomicU64, Ordering};

use crate::CellKey;

/// Four bits per key out of 16 per cell of the table: about 1 wrong "maybe" in 400 when as many
/// cells are parked as the table holds.
const BITS_PER_CELL: usize = 16;
const PROBES: u32 = 4;

#[derive(Debug)]
pub(crate) struct Filter {
    words: Box<[AtomicU64]>,
    used: AtomicBool,
}

// === impl Filter ===

impl Filter {
    pub(crate) fn for_cells(cells: usize) -> Self {
        let words = (cells * BITS_PER_CELL / 64).max(64);
        Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            used: AtomicBool::new(false),
        }
    }

    pub(crate) fn add(&self, key: CellKey) {
        self.used.store(true, Ordering::Relaxed);
        for (word, bit) in self.places(key) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    pub(crate) fn holds_any(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn may_hold(&self, key: CellKey) -> bool {
        self.places(key).all(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    /// The two halves of a key are independent hashes, so their combinations are good probes.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the product's high half is below the length"
    )]
    fn places(&self, key: CellKey) -> impl Iterator<Item = (&AtomicU64, u64)> {
        (0..PROBES).filter_map(move |i| {
            let hash = key.subject.wrapping_add(key.exact.rotate_left(i * 16));
            let at = (u128::from(hash) * self.words.len() as u128) >> 64;
            self.words.get(at as usize).map(|word| (word, 1 << (hash & 63)))
        })
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    fn key(i: u64) -> CellKey {
        let mix = |x: u64| x.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (x << 32);
        CellKey { subject: mix(i + 1), exact: mix(i + 77_777) }
    }

    #[test]
    fn what_was_added_is_never_denied_and_most_of_the_rest_is() {
        let filter = Filter::for_cells(10_000);
        (0..10_000).for_each(|i| filter.add(key(i)));
        assert!((0..10_000).all(|i| filter.may_hold(key(i))));
        let wrong = (10_000..20_000).filter(|i| filter.may_hold(key(*i))).count();
        assert!(wrong < 300, "{wrong} of 10000");
    }
}
