//! A histogram of how long calls took, made of plain counters so that writing costs two additions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds in microseconds: a healthy call takes a fraction of a millisecond, the deadline is near 10 ms.
pub const BOUNDS_US: [u64; 14] =
    [50, 100, 200, 350, 500, 750, 1_000, 2_000, 5_000, 10_000, 25_000, 100_000, 500_000, 2_000_000];

#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
}

/// Counts as they were at one moment: one per bound of [`BOUNDS_US`], and one for all that is slower.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramReading {
    pub buckets: [u64; BOUNDS_US.len() + 1],
    pub sum_us: u64,
}

// === impl Histogram ===

impl Histogram {
    pub(crate) fn observe(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS_US.partition_point(|bound| *bound < us);
        if let Some(bucket) = self.buckets.get(at) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> HistogramReading {
        let mut reading = HistogramReading::default();
        for (read, bucket) in reading.buckets.iter_mut().zip(&self.buckets) {
            *read = bucket.load(Ordering::Relaxed);
        }
        reading.sum_us = self.sum_us.load(Ordering::Relaxed);
        reading
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_lands_in_the_first_bucket_that_is_not_below_it() {
        let histogram = Histogram::default();
        for us in [0, 50, 51, 2_000_000, 2_000_001] {
            histogram.observe(Duration::from_micros(us));
        }
        let HistogramReading { buckets, sum_us } = histogram.read();
        assert_eq!((buckets[0], buckets[1], buckets[13], buckets[14]), (2, 1, 1, 1));
        assert_eq!(sum_us, 4_000_102);
    }
}
