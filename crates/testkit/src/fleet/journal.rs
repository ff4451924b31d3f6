//! What a node writes down before it spends, and what its next life makes of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tollkeeper_core::{Boot, Millis, Take};
use tollkeeper_decide::{Ceilings, LeaseMark};

/// The last mark of each cell and window.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal(Arc<Mutex<Marks>>);

type Marks = HashMap<(Box<str>, u64), LeaseMark>;

// === impl Journal ===

impl Journal {
    /// The totals of a dead boot: all that it cannot have spent is given back, while the lease would still live.
    /// After that a bucket's or a log's has flowed back by itself.
    pub(super) fn last_words(&self, dead: Boot, nodes: u64, now: Millis) -> Vec<(LeaseMark, Take)> {
        let marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut words: Vec<_> = marks
            .values()
            .filter(|mark| now < mark.lapse)
            .map(|mark| (mark.clone(), mark.last_words(dead, nodes)))
            .collect();
        // A map has no order, and a run must have one.
        words.sort_by(|(one, _), (other, _)| {
            (&one.name.identifier, one.win).cmp(&(&other.name.identifier, other.win))
        });
        words
    }
}

impl Ceilings for Journal {
    fn raise(&self, mark: LeaseMark) {
        let mut marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        marks.insert((mark.name.identifier.clone(), mark.win), mark);
    }
}
