//! Counts of connections, for the metrics and for the cap.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct Gauges {
    open: AtomicU64,
    refused: AtomicU64,
    timed_out: AtomicU64,
}

/// A place under the cap, given back when the connection ends however it ends.
#[derive(Debug)]
pub struct Place(Arc<Gauges>);

// === impl Gauges ===

impl Gauges {
    /// `None` when `max` connections are open already.
    pub fn enter(self: &Arc<Self>, max: u64) -> Option<Place> {
        let open = self.open.fetch_add(1, Ordering::Relaxed);
        let place = Place(Arc::clone(self));
        if open < max {
            return Some(place);
        }
        self.refuse();
        None
    }

    pub(super) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn time_out(&self) {
        self.timed_out.fetch_add(1, Ordering::Relaxed);
    }

    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub fn timed_out(&self) -> u64 {
        self.timed_out.load(Ordering::Relaxed)
    }
}

// === impl Place ===

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
