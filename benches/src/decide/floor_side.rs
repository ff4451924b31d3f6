//! The least that a check in memory can take: the same hash of the identifier, and one line of memory that is locked,
//! read, changed and unlocked. It decides nothing and keeps no identifiers apart; it says what part of a check is the
//! machine's.

use std::sync::atomic::{AtomicU64, Ordering};

use tollkeeper_core::Limit;
use tollkeeper_decide::{CellHasher, NamespaceTag};

use super::contest::Limiter;
use super::tollkeeper_side::CELLS_MAX;

/// As large as what a cell takes of memory, in whole lines.
#[repr(align(64))]
#[derive(Default)]
struct Line {
    lock: AtomicU64,
    words: [AtomicU64; 7],
}

pub(super) struct Floor {
    lines: Vec<Line>,
    tag: NamespaceTag,
    limit: Limit,
}

// === impl Floor ===

impl Floor {
    pub(super) fn new(limit: Limit) -> Self {
        let tag = CellHasher::new(*b"a fixed 16 bytes").namespace("tenant", "requests");
        Self { lines: (0..CELLS_MAX).map(|_| Line::default()).collect(), tag, limit }
    }

    fn touches(&self, identifier: &str) -> bool {
        let key = self.tag.cell(identifier, &self.limit);
        let place = (u128::from(key.exact) * self.lines.len() as u128) >> 64;
        let Some(line) = usize::try_from(place).ok().and_then(|place| self.lines.get(place)) else {
            return false;
        };
        while line.lock.swap(1, Ordering::Acquire) == 1 {
            std::hint::spin_loop();
        }
        let [count, ..] = &line.words;
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        line.lock.store(0, Ordering::Release);
        true
    }
}

impl Limiter for Floor {
    fn check_all(&self, requests: &[String]) -> usize {
        requests.iter().filter(|identifier| self.touches(identifier)).count()
    }
}
