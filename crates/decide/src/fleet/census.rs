//! How many nodes share the limits: the most that were counted lately. A server that lost its history has forgotten the others,
//! and counts whoever says first that it lives for the only one; each would take all limits for its own share.

use std::collections::VecDeque;

use tollkeeper_core::Millis;

/// For as long as a node that says nothing counts as alive.
const LATELY_MS: u64 = 5_000;

/// After so long without a count nobody knows who is gone: as long as this node could not say that it lives, the others could
/// not either, and are counted again as they come back.
const GAP_MS: u64 = LATELY_MS / 2;

/// What was counted lately, but for what a later and no lower count stands for: the first is the highest. No more of
/// them than counts are made in that time.
#[derive(Debug, Default)]
pub(super) struct Census {
    counts: VecDeque<(Millis, u64)>,
}

// === impl Census ===

impl Census {
    /// Takes a count in; says how many nodes there are.
    pub(super) fn note(&mut self, nodes: u64, now: Millis) -> u64 {
        if self.counts.back().is_some_and(|(last, _)| now.since(*last) > GAP_MS)
            && let Some((_, most)) = self.counts.front().copied()
        {
            self.counts.clear();
            self.counts.push_back((now, most));
        }
        while self.counts.back().is_some_and(|(_, before)| *before <= nodes) {
            self.counts.pop_back();
        }
        self.counts.push_back((now, nodes));
        while self.counts.front().is_some_and(|(at, _)| now.since(*at) > LATELY_MS) {
            self.counts.pop_front();
        }
        self.counts.front().map_or(nodes, |(_, most)| *most)
    }
}
