//! Tollkeeper as its edge calls it: the identifier is hashed under its namespace, and the cell is spent from.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use tollkeeper_core::{Cost, Limit, Millis};
use tollkeeper_decide::{CellAsk, CellHasher, Cells, NamespaceTag};

use super::contest::Limiter;
use crate::clock;

/// A twentieth above the identifiers: shards fill unevenly, and none may evict.
pub(crate) const CELLS_MAX: usize = 1_050_000;

/// Where `now` comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Time {
    /// From outside, a millisecond later after every thousand checks: the decision alone.
    HandedIn,
    /// From the clock, for every check: the decision and the edge's share.
    Read,
}

pub(super) struct Tollkeeper {
    cells: Cells,
    tag: NamespaceTag,
    limit: Limit,
    time: Time,
    /// The last `now` that was handed in; time goes on from there.
    reached_ms: AtomicU64,
    drained: AtomicU64,
}

// === impl Tollkeeper ===

impl Tollkeeper {
    pub(super) fn new(limit: Limit, time: Time) -> Self {
        Self {
            cells: Cells::new(CELLS_MAX),
            tag: CellHasher::new(*b"a fixed 16 bytes").namespace("tenant", "requests"),
            limit,
            time,
            reached_ms: AtomicU64::new(clock::boot_millis().0),
            drained: AtomicU64::new(0),
        }
    }

    /// Changes that the journal would have written.
    pub(super) fn drained(&self) -> u64 {
        self.drained.load(Ordering::Relaxed)
    }

    fn admits(&self, identifier: &str, now: Millis) -> bool {
        let key = self.tag.cell(identifier, &self.limit);
        let ask = CellAsk { key, namespace: self.tag.tag, limit: self.limit, cost: Cost::ONE };
        self.cells.spend(&ask, Vec::new(), now).admitted()
    }
}

impl Limiter for Tollkeeper {
    fn check_all(&self, requests: &[String]) -> usize {
        if let Time::Read = self.time {
            let admits = |identifier: &&String| self.admits(identifier, clock::boot_millis());
            return requests.iter().filter(admits).count();
        }
        let mut now = Millis(self.reached_ms.load(Ordering::Relaxed));
        let mut admitted = 0;
        for thousand in requests.chunks(1000) {
            now = now + 1;
            admitted += thousand.iter().filter(|identifier| self.admits(identifier, now)).count();
        }
        self.reached_ms.fetch_max(now.0, Ordering::Relaxed);
        admitted
    }

    fn beat(&self) {
        self.cells.drain_changes(|changes| {
            self.drained.fetch_add(black_box(changes).len() as u64, Ordering::Relaxed);
        });
    }
}
