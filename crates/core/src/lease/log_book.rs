//! The record of a sliding log: units by the microsecond that they count as spent. It does not know whose they are.

use std::collections::BTreeMap;

use crate::{Micros, Millis, Quota, SlidingLog, Width};

/// One with more units is kept in this many steps of its width, so that it never has more entries than that by much: a moment
/// is rounded up, so at most 0.1 % is late.
const STEPS: u64 = 1000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LogBook(BTreeMap<u64, u64>);

/// The moment under which what makes a log is entered: when its millisecond is over, as no more is kept of it until somebody
/// asks again.
pub fn first_moment(quota: Quota, width: Width, now: Millis) -> u64 {
    LogBook::default().moment(quota, width, Micros::last_of(now))
}

/// What a node needs of a log: when its first units are forgotten, and that the rest is not before that.
pub fn log_copy(first: Option<(u64, u64)>, live: u64, now: Millis) -> SlidingLog {
    let Some((at, units)) = first else { return SlidingLog::default() };
    // Nodes know whole milliseconds: by then they are surely forgotten.
    let at = at.div_ceil(1000);
    let newest = Millis(at.max(now.0) + 1);
    let rest = live - units;
    let entries = std::iter::once((Millis(at), units)).chain((rest > 0).then_some((newest, rest)));
    SlidingLog::from_parts(newest, entries).unwrap_or_default()
}

// === impl LogBook ===

impl LogBook {
    /// The moment under which units are entered that were spent at `at`: not before that microsecond is over, or what is spent
    /// late in it and what is spent early in one that is a width later would lie less than a width apart.
    pub(super) fn moment(&self, quota: Quota, width: Width, at: Micros) -> u64 {
        let coarse = quota.get().max(self.live()) > STEPS;
        (at.0 + 1).next_multiple_of(if coarse { width.millis() * 1000 / STEPS } else { 1 })
    }

    pub(super) fn live(&self) -> u64 {
        self.0.values().sum()
    }

    /// What stands under moments after the first, up to the second.
    pub(super) fn within(&self, after: u64, upto: u64) -> u64 {
        self.0.range(after + 1..=upto).map(|(_, units)| units).sum()
    }

    pub(super) fn enter(&mut self, moment: u64, units: u64) {
        if units > 0 {
            *self.0.entry(moment).or_default() += units;
        }
    }

    /// No more than stands there; says how much that was.
    pub(super) fn take_out(&mut self, moment: u64, units: u64) -> u64 {
        let Some(stands) = self.0.get_mut(&moment) else { return 0 };
        let taken = units.min(*stands);
        *stands -= taken;
        if *stands == 0 {
            self.0.remove(&moment);
        }
        taken
    }

    pub(super) fn forget(&mut self, width: Width, now: Micros) {
        self.0.retain(|at, _| at + width.millis() * 1000 > now.0);
    }

    /// Only what is lent is left, under the latest moment of all.
    pub(super) fn reset(&mut self, outstanding: u64) {
        let newest = self.0.keys().next_back().copied();
        self.0.clear();
        if let Some(at) = newest {
            self.enter(at, outstanding);
        }
    }

    pub(super) fn copy(&self, now: Millis) -> SlidingLog {
        log_copy(self.0.first_key_value().map(|(at, units)| (*at, *units)), self.live(), now)
    }
}
