//! A histogram of durations in microseconds, made of plain counters so that writing costs two additions.

use std::sync::atomic::{AtomicU64, Ordering};

use tollkeeper_core::BUCKETS;

/// Upper bounds in microseconds. Decisions take microseconds; the last ones catch bad days.
pub const BOUNDS_US: [u64; BUCKETS - 1] =
    [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 50_000, 200_000, 1_000_000];

#[derive(Debug, Default)]
pub struct Histogram {
    /// One per bound, and one for all that is slower.
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
}

/// Counts as they were at one moment; readings of several histograms add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramReading {
    pub buckets: [u64; BUCKETS],
    pub sum_ns: u64,
}

// === impl Histogram ===

impl Histogram {
    pub fn observe_ns(&self, ns: u64) {
        if let Some(bucket) = self.buckets.get(bucket_of_ns(ns)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    pub fn add_to(&self, reading: &mut HistogramReading) {
        for (sum, bucket) in reading.buckets.iter_mut().zip(&self.buckets) {
            *sum += bucket.load(Ordering::Relaxed);
        }
        reading.sum_ns += self.sum_ns.load(Ordering::Relaxed);
    }
}

/// The bucket that a duration belongs to.
pub fn bucket_of_ns(ns: u64) -> usize {
    BOUNDS_US.partition_point(|bound| bound * 1_000 < ns)
}

/// The duration that this many thousandths of all stay below, in microseconds; within its bucket by an even spread.
/// Durations beyond the last bound count as that bound.
pub fn quantile_us(buckets: &[u64; BUCKETS], thousandths: u64) -> Option<u64> {
    let total: u64 = buckets.iter().sum();
    let rank = u128::from(total) * u128::from(thousandths);
    let mut below = 0;
    let mut lower = 0;
    for (at, count) in buckets.iter().enumerate() {
        let upper = BOUNDS_US.get(at).copied().unwrap_or(lower);
        let reached = u128::from(below + count) * 1_000;
        if *count > 0 && reached >= rank {
            let into = rank.saturating_sub(u128::from(below) * 1_000);
            let share = u128::from(upper - lower) * into / (u128::from(*count) * 1_000);
            return Some(lower + u64::try_from(share).unwrap_or(0));
        }
        below += count;
        lower = upper;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_in_the_bucket_that_holds_it() {
        let mut buckets = [0; BUCKETS];
        assert_eq!(quantile_us(&buckets, 500), None);
        // A hundred between 10 and 20 µs, ten between 500 µs and 1 ms, one beyond every bound.
        (buckets[4], buckets[9], buckets[16]) = (100, 10, 1);
        assert_eq!(quantile_us(&buckets, 500), Some(15));
        assert_eq!(quantile_us(&buckets, 950), Some(772));
        assert_eq!(quantile_us(&buckets, 1_000), Some(1_000_000));
        assert_eq!(quantile_us(&buckets, 0), Some(10));
    }

    #[test]
    fn a_duration_lands_in_the_first_bucket_that_is_not_below_it() {
        let histogram = Histogram::default();
        for ns in [0, 1_000, 1_001, 999_000, 5_000_000_000] {
            histogram.observe_ns(ns);
        }
        let mut reading = HistogramReading::default();
        histogram.add_to(&mut reading);
        assert_eq!(
            (reading.buckets[0], reading.buckets[1], reading.buckets[9], reading.buckets[16]),
            (2, 1, 1, 1)
        );
        assert_eq!(reading.sum_ns, 5_001_001_001);
    }
}
