//! Whether most keys that are asked for are not there, as when somebody guesses them. Reading a key with all that belongs to it
//! is a statement of a dozen joins, also where there is none; whether there is one is a look into an index. In ordinary times the one statement is asked at once; among strangers it comes second.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// So many more than are found: nobody mistypes a key so often.
const MANY: u32 = 16;
/// However many there were, some that are found end it.
const MOST: u32 = 64;
/// One that is found outweighs so many. Known keys are read anew all the time, so that it may not be all of them.
const FOUND: u32 = 2;

/// A clone is a second handle on the same count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strangers(Arc<AtomicU32>);

// === impl Strangers ===

impl Strangers {
    pub(crate) fn are_many(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= MANY
    }

    /// One more was asked for. Two at once may count as one: it is a guess at best.
    pub(crate) fn note(&self, is_there: bool) {
        let score = self.0.load(Ordering::Relaxed);
        let next = if is_there { score.saturating_sub(FOUND) } else { MOST.min(score + 1) };
        self.0.store(next, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_make_a_crowd_also_among_known_ones_and_some_that_are_found_end_it() {
        let strangers = Strangers::default();
        let note = |is_there: bool, times: u32| (0..times).for_each(|_| strangers.note(is_there));
        note(false, MANY - 1);
        assert!(!strangers.are_many());
        note(false, 1_000);
        assert!(strangers.are_many());
        (0..100).for_each(|_| {
            note(false, 3);
            note(true, 1);
        });
        assert!(strangers.are_many());
        note(true, MOST / FOUND);
        assert!(!strangers.are_many());
    }
}
