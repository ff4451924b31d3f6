//! The origin's clock as a node sees it: one reading, and how long ago that was by the node's own clock.
//! The two may drift apart; every use rounds to the side that cannot spend too much.

use tollkeeper_core::Millis;

/// Clocks of machines drift by less than 500 parts in a million; twice that, for both ends.
const DRIFT: u64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sight {
    /// What the origin's clock said…
    pub(super) origin: Millis,
    /// …at some moment between these two of the node's.
    pub(super) sent: Millis,
    pub(super) heard: Millis,
}

// === impl Sight ===

impl Sight {
    /// Before anything was heard a node has only its own clock.
    pub(super) fn guess(now: Millis) -> Self {
        Self { origin: now, sent: now, heard: now }
    }

    /// The origin's time, surely not later than this says.
    pub(super) fn at(&self, now: Millis) -> Millis {
        let passed = now.since(self.heard);
        self.origin + (passed - passed / DRIFT)
    }

    /// The origin's time, surely not earlier than this says. The reading is in whole milliseconds.
    pub(super) fn latest(&self, now: Millis) -> Millis {
        let passed = now.since(self.sent);
        self.origin + (passed + passed / DRIFT + 1)
    }

    /// The node's time at which `origin` has surely not passed yet. The reading is in whole milliseconds, so
    /// it may be older than it looks by one.
    pub(super) fn before(&self, origin: Millis) -> Millis {
        let left = origin.since(self.origin);
        self.sent + left.saturating_sub(left / DRIFT + 1)
    }

    /// The node's time at which so many milliseconds have surely passed since the reading.
    pub(super) fn after(&self, ms: u64) -> Millis {
        self.heard + ms.saturating_add(ms / DRIFT + 1)
    }
}
