//! What cells of this node began with when shared limits were given up: what others had spent of them, and their part of the
//! rest. Redis knows of it, so that it must not be told as this node's own when shared limits come back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tollkeeper_core::{Cost, Millis, State};

use crate::ports::Which;
use crate::{CellAsk, CellKey};

/// Cells that are asked for between two changes of the mode, of which one is rarely followed by the other soon. Of more the
/// whole is told as this node's own: too little is admitted then, and never too much.
const KEPT_MAX: usize = 65_536;

#[derive(Debug, Default)]
pub(crate) struct Inherited {
    /// Whether there ever was any: most nodes never leave Redis.
    any: AtomicBool,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// When shared limits were given up.
    left: Millis,
    /// Each as a counter of its own, which fades as the cell does.
    by_cell: HashMap<CellKey, State>,
}

// === impl Inherited ===

impl Inherited {
    /// A cell begins with the cost of this ask.
    pub(crate) fn note(&self, ask: &CellAsk, left: Millis, now: Millis) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.left != left {
            *kept = Kept { left, by_cell: HashMap::new() };
        }
        let (_, state) = State::fresh(&ask.limit).spend(&ask.limit, ask.cost, now);
        // What it began with before counts no more, also where there is no room.
        kept.by_cell.remove(&ask.key);
        if kept.by_cell.len() < KEPT_MAX {
            kept.by_cell.insert(ask.key, state);
            self.any.store(true, Ordering::Relaxed);
        }
    }

    /// Counters were set back: what they began with is gone. Of a namespace all is forgotten, whose cells are not told apart
    /// here: what is told too much then only makes a limit stricter.
    pub(crate) fn forget(&self, which: Which) {
        if !self.any.load(Ordering::Relaxed) {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match which {
            Which::Subject(subject) => kept.by_cell.retain(|key, _| key.subject != subject),
            Which::Namespace(_) => kept.by_cell.clear(),
        }
    }

    /// What of it still counts. It is asked for once, when the cell goes over.
    pub(crate) fn take(&self, ask: &CellAsk, now: Millis) -> u64 {
        if !self.any.load(Ordering::Relaxed) {
            return 0;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.by_cell.remove(&ask.key).map_or(0, |state| counts(&state, ask, now))
    }

    /// The same of a cell that stays.
    pub(crate) fn read(&self, ask: &CellAsk, now: Millis) -> u64 {
        if !self.any.load(Ordering::Relaxed) {
            return 0;
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.by_cell.get(&ask.key).map_or(0, |state| counts(state, ask, now))
    }
}

/// What a counter beside the cell stands at.
pub(super) fn counts(state: &State, ask: &CellAsk, now: Millis) -> u64 {
    let stands = state.probe(&ask.limit, Cost::PEEK, now);
    ask.limit.ceiling().saturating_sub(stands.remaining)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use tollkeeper_core::{Limit, Quota, Width};

    use super::*;

    #[test]
    fn what_was_inherited_fades_as_the_cell_does_and_is_told_once() {
        let limit =
            Limit::token_bucket(Quota::new(100).unwrap(), Width::from_millis(1_000).unwrap(), None);
        let key = CellKey { subject: 1, exact: 2 };
        let ask = CellAsk { key, namespace: 0, limit, cost: Cost::new(80).unwrap() };
        let inherited = Inherited::default();
        inherited.note(&ask, Millis(1), Millis(10_000));
        assert_eq!(inherited.read(&ask, Millis(10_500)), 30);
        assert_eq!(inherited.take(&ask, Millis(10_500)), 30);
        assert_eq!(inherited.take(&ask, Millis(10_500)), 0);
        inherited.note(&ask, Millis(1), Millis(10_000));
        inherited.note(
            &CellAsk { key: CellKey { subject: 3, exact: 4 }, ..ask },
            Millis(2),
            Millis(20_000),
        );
        assert_eq!(inherited.take(&ask, Millis(20_000)), 0, "of another time");
        for which in [Which::Subject(1), Which::Namespace(0)] {
            inherited.note(&ask, Millis(2), Millis(30_000));
            inherited.forget(which);
            assert_eq!(inherited.take(&ask, Millis(30_000)), 0, "set back");
        }
    }
}
