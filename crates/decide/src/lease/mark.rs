//! What is written down of a lease before it is spent, and what the next process says by it in the name of a dead one.
//! Pure: it neither writes nor calls.

use std::sync::Arc;

use tollkeeper_core::{Boot, Limit, Millis, Stand, Take, Taken, Totals};

use super::CellName;

/// The number of a dead process's last words. None of its calls has a higher one: whatever of it is still on the way is
/// granted nothing when it arrives.
const LAST_SEQ: u64 = (1 << 53) - 1;

/// What the journal keeps of a lease: below the ceiling units may have been spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseMark {
    pub name: Arc<CellName>,
    pub limit: Limit,
    pub win: u64,
    pub totals: Totals,
    pub ceiling: u64,
    /// By the node's clock. Later it must not be given back: a bucket's has been written off by then, and a
    /// log's forgotten, so that it would be free twice.
    pub lapse: Millis,
}

/// Where ceilings are written, before the units below them are spent.
pub trait Ceilings: Send + Sync + 'static {
    fn raise(&self, mark: LeaseMark);
}

// === impl LeaseMark ===

impl LeaseMark {
    /// All that was given back, and is now: below the ceiling units may have been spent, all else that was granted was not.
    pub fn returned(&self) -> u64 {
        let Totals { granted, returned, .. } = self.totals;
        returned.max(granted.saturating_sub(self.ceiling))
    }

    /// The totals of a process that can no longer speak for itself. Said twice they say nothing new.
    pub fn last_words(&self, boot: Boot, nodes: u64) -> Take {
        let (granted, returned) = (self.totals.granted, self.returned());
        Take {
            boot,
            seq: LAST_SEQ,
            win: self.win,
            totals: Totals { plain: 0, granted, used: self.ceiling, returned },
            need: 0,
            more: 0,
            // Only a log asks for it.
            forgotten: returned,
            ask: 0,
            bundled: false,
            nodes,
            limit: self.limit,
        }
    }

    /// Takes in the answer to them: what was granted by an answer that the dead process never heard, it cannot have spent.
    /// Is there something to give back that was not yet?
    pub fn hear(&mut self, taken: &Taken) -> bool {
        let before = self.returned();
        if taken.stand != Stand::WrongWindow && taken.win == self.win {
            self.totals.granted = self.totals.granted.max(taken.totals.granted);
            self.ceiling = self.ceiling.max(taken.totals.used);
        }
        self.returned() > before
    }
}
