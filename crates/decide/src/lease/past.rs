//! What a node spent of a log, by time: an origin that lost its history is told how much of it counts no more. Totals are of a
//! boot's whole life, and all of that at once would fill the log for as long as it is wide.

use std::collections::VecDeque;

use tollkeeper_core::{Millis, Width};

/// So many marks in a width: what is told beyond what counts is an eighth at most.
const MARKS: u64 = 8;

/// Two clocks differ by less in the time that a log remembers, and by a thousandth of it.
const MARGIN_MS: u64 = 100;

#[derive(Debug, Default)]
pub(super) struct Past {
    /// By then so much was spent in all.
    pub(super) marks: VecDeque<(Millis, u64)>,
    pub(super) last: Millis,
}

// === impl Past ===

impl Past {
    /// Something is spent now, where so much was before.
    pub(super) fn note(&mut self, spent: u64, width: Width, now: Millis) {
        self.last = now;
        let due = width.millis() / MARKS;
        if self.marks.back().is_some_and(|(at, _)| now.since(*at) <= due) {
            return;
        }
        while self.marks.get(1).is_some_and(|(at, _)| is_past(*at, width, now)) {
            self.marks.pop_front();
        }
        self.marks.push_back((now, spent));
    }

    /// What was spent until now was told by the origin: when it was, nobody here knows.
    pub(super) fn adopt(&mut self, now: Millis) {
        self.last = self.last.max(now);
    }

    /// Of so much in all, what was spent so long ago that a log has forgotten it.
    pub(super) fn forgotten(&self, spent: u64, width: Width, now: Millis) -> u64 {
        if is_past(self.last, width, now) {
            return spent;
        }
        let past = self.marks.iter().rev().find(|(at, _)| is_past(*at, width, now));
        past.map_or(0, |(_, by_then)| spent.min(*by_then))
    }
}

fn is_past(at: Millis, width: Width, now: Millis) -> bool {
    now.since(at) > width.millis() + width.millis() / 1000 + MARGIN_MS
}
