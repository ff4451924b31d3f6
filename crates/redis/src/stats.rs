//! What the server exports about Redis: connections and calls, counted where they end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::CallError;
use crate::histogram::{Histogram, HistogramReading};

#[derive(Debug, Default)]
pub(crate) struct Stats {
    connects_ok: AtomicU64,
    connects_failed: AtomicU64,
    calls_ok: AtomicU64,
    calls_failed: AtomicU64,
    calls_late: AtomicU64,
    took: Histogram,
}

/// All of it at one moment. Late calls are not among the failed ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatsReading {
    pub connects_ok: u64,
    pub connects_failed: u64,
    pub calls_ok: u64,
    pub calls_failed: u64,
    pub calls_late: u64,
    /// Of calls that were sent; one that found nobody took no time worth counting.
    pub took: HistogramReading,
}

// === impl Stats ===

impl Stats {
    pub(crate) fn connected(&self) {
        self.connects_ok.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn not_connected(&self) {
        self.connects_failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn called<T>(&self, result: &Result<T, CallError>, took: Duration) {
        let counter = match result {
            Ok(_) => &self.calls_ok,
            Err(CallError::Late) => &self.calls_late,
            Err(_) => &self.calls_failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if !matches!(result, Err(CallError::Away | CallError::Busy)) {
            self.took.observe(took);
        }
    }

    pub(crate) fn read(&self) -> StatsReading {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StatsReading {
            connects_ok: count(&self.connects_ok),
            connects_failed: count(&self.connects_failed),
            calls_ok: count(&self.calls_ok),
            calls_failed: count(&self.calls_failed),
            calls_late: count(&self.calls_late),
            took: self.took.read(),
        }
    }
}
