//! What one process held of a shared cell when it ended, and until when it can be given back.
//! Pure: no clock, no files, no calls.

use tollkeeper_core::{Algorithm, Millis};
use tollkeeper_decide::LeaseMark;

use crate::journal::BootId;

/// A call that leaves so long before a lapse is heard before it, or not at all.
const BEFORE_LAPSE_MS: u64 = 1_000;

/// Written before anything below the mark's ceiling is spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseLeft {
    pub boot: BootId,
    /// Its lapse is in milliseconds since the machine started: the one clock that the next process shares.
    pub mark: LeaseMark,
}

// === impl LeaseLeft ===

impl LeaseLeft {
    /// Another mark of the same lease. They may come in any order: a checkpoint repeats what it saw a moment ago. In one
    /// window every number only ever grew, so the largest are the last. A bucket and a log have no windows, and a cell of
    /// theirs that was forgotten everywhere begins at nothing again: there the mark that lapses last is the last.
    pub fn merge(&mut self, other: &Self) {
        let (mine, theirs) = (&mut self.mark, &other.mark);
        let timeless = matches!(
            theirs.limit.algorithm,
            Algorithm::SlidingLog(_) | Algorithm::TokenBucket { .. }
        );
        if timeless && mine.lapse != theirs.lapse {
            if theirs.lapse > mine.lapse {
                *mine = theirs.clone();
            }
            return;
        }
        mine.limit = theirs.limit;
        mine.totals = mine.totals.merged(theirs.totals);
        mine.ceiling = mine.ceiling.max(theirs.ceiling);
        mine.lapse = mine.lapse.max(theirs.lapse);
    }

    /// Nobody would gain by it any more; or, where units come back by themselves, they would be free twice.
    /// `machine` is the time since the machine started.
    pub fn is_late(&self, now: Millis, machine: Millis) -> bool {
        let LeaseMark { limit, win, lapse, .. } = &self.mark;
        match limit.algorithm {
            Algorithm::FixedWindow(window) => now >= window.bounds(Millis(*win)).1,
            Algorithm::SlidingWindow(width) => now.0 >= win.saturating_add(2 * width.millis()),
            Algorithm::SlidingLog(_) | Algorithm::TokenBucket { .. } => {
                machine + BEFORE_LAPSE_MS >= *lapse
            }
        }
    }
}
