//! What one process held of a shared cell when it ended, and how to give back what it had surely not spent.
//! Pure: no clock, no files, no calls.

use tollkeeper_core::{Algorithm, Boot, Millis, Take, Totals};
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
    /// Another mark of the same lease. They may come in any order: a checkpoint repeats what it saw a moment ago. Every
    /// number only ever grew, so the largest are the last.
    pub fn merge(&mut self, other: &Self) {
        let (mine, theirs) = (&mut self.mark, &other.mark);
        mine.limit = theirs.limit;
        mine.totals = mine.totals.merged(theirs.totals);
        mine.ceiling = mine.ceiling.max(theirs.ceiling);
        mine.lapse = mine.lapse.max(theirs.lapse);
    }

    /// All that was given back, and is now: below the ceiling units may have been spent, all else that was granted was not.
    pub fn returned(&self) -> u64 {
        let Totals { granted, returned, .. } = self.mark.totals;
        returned.max(granted.saturating_sub(self.mark.ceiling))
    }

    /// The totals of a process that can no longer speak for itself. Number 0 asks for nothing and disturbs no other call;
    /// said twice it says nothing new. What it was granted later than the journal knows stays granted.
    pub fn last_words(&self, boot: Boot, nodes: u64) -> Take {
        let (granted, returned) = (self.mark.totals.granted, self.returned());
        Take {
            boot,
            seq: 0,
            win: self.mark.win,
            totals: Totals { plain: 0, granted, used: self.mark.ceiling, returned },
            need: 0,
            ask: 0,
            bundled: false,
            nodes,
            limit: self.mark.limit,
        }
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
