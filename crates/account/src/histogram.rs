//! A histogram of durations in microseconds, made of plain counters so that writing costs two additions.

use std::sync::atomic::{AtomicU64, Ordering};

/// Upper bounds in microseconds. Decisions take microseconds; the last ones catch bad days.
pub const BOUNDS_US: [u64; 16] =
    [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 50_000, 200_000, 1_000_000];

#[derive(Debug, Default)]
pub struct Histogram {
    /// One per bound, and one for all that is slower.
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_ns: AtomicU64,
}

/// Counts as they were at one moment; readings of several histograms add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramReading {
    pub buckets: [u64; BOUNDS_US.len() + 1],
    pub sum_ns: u64,
}

// === impl Histogram ===

impl Histogram {
    pub fn observe_ns(&self, ns: u64) {
        let at = BOUNDS_US.partition_point(|bound| bound * 1_000 < ns);
        if let Some(bucket) = self.buckets.get(at) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
