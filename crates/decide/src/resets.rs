//! The last resets of a shard: a state that was read from the shelf before one must not undo it,
//! and a reset of other cells must not cost this one its counters.

use std::collections::VecDeque;

use crate::ports::{ParkedCell, Which};

/// A request is under way for at most some 250 ms, and a reset waits for the shelf: so many in one
/// shard in that time would take a flood of them. Beyond it a state is given up, counted and shown.
const RECENT_MAX: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Resets {
    seen: u64,
    recent: VecDeque<Which>,
}

// === impl Resets ===

impl Resets {
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    pub(crate) fn note(&mut self, which: Which) {
        self.seen += 1;
        self.recent.push_back(which);
        if self.recent.len() > RECENT_MAX {
            self.recent.pop_front();
        }
    }

    /// Was this cell reset after the first `seen` resets? `None` when those are too long ago to know.
    pub(crate) fn since(&self, seen: u64, cell: &ParkedCell) -> Option<bool> {
        let newer = usize::try_from(self.seen.saturating_sub(seen)).ok()?;
        let known = newer <= self.recent.len();
        let covered = || {
            self.recent.iter().rev().take(newer).any(|which| which.covers(cell.key, cell.namespace))
        };
        known.then(covered)
    }
}

#[cfg(test)]
mod tests {
    use tollkeeper_core::{FixedWindow, State};

    use super::*;
    use crate::CellKey;

    fn cell(subject: u64) -> ParkedCell {
        let key = CellKey { subject, exact: subject };
        ParkedCell {
            key,
            namespace: 7,
            idle_at_s: 1,
            fill: 0,
            state: State::Fixed(FixedWindow::default()),
        }
    }

    #[test]
    fn only_newer_resets_of_the_same_cell_count() {
        let mut resets = Resets::default();
        resets.note(Which::Subject(1));
        let seen = resets.seen();
        assert_eq!(resets.since(seen, &cell(1)), Some(false));
        resets.note(Which::Subject(2));
        assert_eq!(resets.since(seen, &cell(1)), Some(false));
        assert_eq!(resets.since(seen, &cell(2)), Some(true));
        resets.note(Which::Namespace(7));
        assert_eq!(resets.since(seen, &cell(1)), Some(true));
    }

    #[test]
    fn what_is_too_long_ago_is_not_guessed() {
        let mut resets = Resets::default();
        for subject in 0..=RECENT_MAX as u64 {
            resets.note(Which::Subject(subject + 10));
        }
        assert_eq!(resets.since(0, &cell(1)), None);
        assert_eq!(resets.since(1, &cell(1)), Some(false));
    }
}
