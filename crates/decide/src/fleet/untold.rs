//! What Redis has not heard of what this node admitted by itself, where memory was given up for shadow: cells that are
//! compared in the window of that moment, and what of each is still to be told. It never says what was told already.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tollkeeper_core::{Algorithm, Cost, Limit, Millis, State};

use super::inherited::counts;
use super::{Fleet, SharedAsk};
use crate::CellKey;
use crate::cells::{CellAsk, Cells};
use crate::lease::LeaseAsk;
use crate::ports::Which;

/// Cells that are compared in the window in which memory was given up for shadow. Of more, the whole is told when shared limits
/// come, also what comparisons have told already: too little is admitted then, and never too much.
const KEPT_MAX: usize = 65_536;

/// How often it is searched for cells whose windows are over, where it is full: a look at all of them takes a millisecond.
const SEARCH_MS: u64 = 1_000;

#[derive(Debug, Default)]
pub(crate) struct Untold {
    /// Whether there ever was any: most nodes never come from memory.
    any: AtomicBool,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_cell: HashMap<CellKey, Debt>,
    searched: Millis,
}

#[derive(Debug)]
struct Debt {
    since: Since,
    namespace: u64,
    /// As a counter of its own, which fades as the cell does. `None`: all was told.
    owed: Option<State>,
    /// Is the cell one that this node shares by now? Then what it counts by itself was told to nobody.
    shared: bool,
}

/// When memory was given up, and the end of the window of that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Since {
    left: Millis,
    until: Millis,
}

/// What is to be told of a cell as shared limits begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) owed: u64,
    /// And what the node has counted by itself: of that nobody has heard.
    pub(crate) and_used: bool,
}

/// A cell of which Redis may have to be told more than its comparisons say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrears {
    pub(crate) cell: CellAsk,
    pub(crate) since: Since,
    pub(crate) now: Millis,
}

// === impl Since ===

impl Since {
    /// `None` where the window of that moment is over: all that counts was admitted later.
    pub(crate) fn running(limit: &Limit, left: Millis, now: Millis) -> Option<Self> {
        let until = match limit.algorithm {
            Algorithm::FixedWindow(_) => limit.window_at(left).1,
            Algorithm::SlidingWindow(width) | Algorithm::SlidingLog(width) => left + width.millis(),
            Algorithm::TokenBucket { width, capacity } => {
                // Full again by then, whatever was spent of it.
                let fills = u128::from(width.millis()) * u128::from(capacity.get());
                let fills = fills.div_ceil(u128::from(limit.quota.get().max(1)));
                Millis(left.0.saturating_add(u64::try_from(fills).unwrap_or(u64::MAX)))
            }
        };
        (now < until).then_some(Self { left, until })
    }
}

// === impl Untold ===

impl Untold {
    /// What is to be told of a cell that is compared. `None` for one that was not compared since.
    fn compared(&self, ask: &CellAsk, since: Since, now: Millis) -> Option<u64> {
        let mut kept = self.kept()?;
        let debt = kept.of(ask, since)?;
        debt.shared = false;
        Some(debt.take(ask, now))
    }

    /// The same as shared limits begin.
    pub(crate) fn goes_over(&self, ask: &CellAsk, since: Since, now: Millis) -> Option<Due> {
        let mut kept = self.kept()?;
        let debt = kept.of(ask, since)?;
        let and_used = std::mem::replace(&mut debt.shared, true);
        Some(Due { owed: debt.take(ask, now), and_used })
    }

    /// From now on what is compared of this cell is known to be told. False where it was already, or there is no room.
    fn begin(&self, ask: &CellAsk, since: Since, now: Millis) -> bool {
        self.any.store(true, Ordering::Relaxed);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.of(ask, since).is_some() {
            return false;
        }
        if kept.by_cell.len() >= KEPT_MAX && kept.searched + SEARCH_MS <= now {
            kept.searched = now;
            kept.by_cell.retain(|_, debt| now < debt.since.until);
        }
        // Of another time it has its place already.
        let room = kept.by_cell.len() < KEPT_MAX || kept.by_cell.contains_key(&ask.key);
        if room {
            let debt = Debt { since, namespace: ask.namespace, owed: None, shared: false };
            kept.by_cell.insert(ask.key, debt);
        }
        room
    }

    /// Redis was not told of these. Of a cell that was not compared yet all is told later.
    pub(crate) fn owe(&self, ask: &CellAsk, since: Since, units: u64, now: Millis) {
        let Some(mut kept) = self.kept() else { return };
        if let Some(debt) = kept.of(ask, since) {
            debt.add(ask, units, now);
        }
    }

    /// Counters were set back: nothing of them is owed.
    pub(crate) fn forget(&self, which: Which) {
        let Some(mut kept) = self.kept() else { return };
        let covered = kept.by_cell.iter_mut();
        for (_, debt) in covered.filter(|(key, debt)| which.covers(**key, debt.namespace)) {
            debt.owed = None;
        }
    }

    fn kept(&self) -> Option<MutexGuard<'_, Kept>> {
        let any = self.any.load(Ordering::Relaxed);
        any.then(|| self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

// === impl Kept ===

impl Kept {
    fn of(&mut self, ask: &CellAsk, since: Since) -> Option<&mut Debt> {
        self.by_cell.get_mut(&ask.key).filter(|debt| debt.since.left == since.left)
    }
}

// === impl Debt ===

impl Debt {
    fn add(&mut self, ask: &CellAsk, units: u64, now: Millis) {
        let owed = self.owed.take().unwrap_or_else(|| State::fresh(&ask.limit));
        let room = owed.probe(&ask.limit, Cost::PEEK, now).remaining;
        let cost = Cost::new(units.min(room)).unwrap_or(Cost::PEEK);
        self.owed = Some(owed.spend(&ask.limit, cost, now).1);
    }

    fn take(&mut self, ask: &CellAsk, now: Millis) -> u64 {
        self.owed.take().map_or(0, |owed| counts(&owed, ask, now))
    }
}

// === impl Fleet ===

impl Fleet {
    /// What Redis has to be told of a cell that is being compared, beside `spent`, what this request spends of it: at its first
    /// comparison all that was used here before, later what it could not be told.
    pub(super) fn owed(&self, arrears: &Arrears, cells: &Cells, spent: u64) -> u64 {
        let Arrears { cell, since, now } = arrears;
        if let Some(owed) = self.untold.compared(cell, *since, *now) {
            return owed;
        }
        if !self.untold.begin(cell, *since, *now) {
            return 0;
        }
        let inherited = self.inherited.read(cell, *now);
        let peek = CellAsk { cost: Cost::PEEK, ..*cell };
        let left = cells.spend(&peek, Vec::new(), *now).remaining;
        let used = cell.limit.ceiling().saturating_sub(left);
        used.saturating_sub(spent).saturating_sub(inherited)
    }

    pub(super) fn owe(&self, arrears: Option<&Arrears>, units: u64) {
        if let Some(Arrears { cell, since, now }) = arrears {
            self.untold.owe(cell, *since, units, *now);
        }
    }

    /// Spends what was used elsewhere, or as much of it as there is. False where nobody can say.
    pub(crate) async fn charge(self: &Arc<Self>, asked: SharedAsk<'_>, used: u64) -> bool {
        /// Once for all of it, once for what is left, and once more where that was taken meanwhile.
        const ROUNDS: usize = 3;
        let mut owed = used;
        for _ in 0..ROUNDS {
            let Some(cost) = Cost::new(owed).filter(|_| owed > 0) else { return true };
            let ask = LeaseAsk { cost, bundled: false, ..asked.ask };
            let gathered = self.obtain(&[SharedAsk { ask, ..asked }]).await;
            if gathered.passed {
                return gathered.spend(self.now());
            }
            let Some(dealt) = gathered.dealt.first().filter(|dealt| !dealt.degraded) else {
                return false;
            };
            owed = owed.min(dealt.outcome.remaining);
        }
        true
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use tollkeeper_core::{Quota, Width, Window};

    use super::*;

    const LEFT: Millis = Millis(60_500);

    fn ask(subject: u64, limit: Limit) -> CellAsk {
        let key = CellKey { subject, exact: subject };
        CellAsk { key, namespace: 7, limit, cost: Cost::ONE }
    }

    fn width() -> Width {
        Width::from_millis(1_000).unwrap()
    }

    fn bucket(quota: u64, capacity: u64) -> Limit {
        Limit::token_bucket(Quota::new(quota).unwrap(), width(), Quota::new(capacity))
    }

    fn since(limit: &Limit) -> Since {
        Since::running(limit, LEFT, LEFT).unwrap()
    }

    #[test]
    fn the_moment_matters_until_nothing_of_before_counts_any_more() {
        let quota = Quota::new(10).unwrap();
        for (limit, until) in [
            (Limit::fixed_window(quota, Window::Aligned(width())), 61_000),
            (Limit::sliding_window(quota, width()), 61_500),
            (Limit::sliding_log(quota, width()).unwrap(), 61_500),
            (bucket(10, 10), 61_500),
            (bucket(10, 25), 63_000),
            (bucket(10, 1), 60_600),
        ] {
            assert!(Since::running(&limit, LEFT, Millis(until - 1)).is_some(), "{limit:?}");
            assert_eq!(Since::running(&limit, LEFT, Millis(until)), None, "{limit:?}");
        }
    }

    #[test]
    fn what_is_owed_fades_as_the_cell_does_and_is_told_once() {
        let (untold, limit) = (Untold::default(), bucket(100, 100));
        let (one, since) = (ask(1, limit), since(&limit));
        untold.owe(&one, since, 5, LEFT);
        assert_eq!(untold.compared(&one, since, LEFT), None, "nobody compared it yet");
        assert!(untold.begin(&one, since, LEFT) && !untold.begin(&one, since, LEFT));
        untold.owe(&one, since, 50, LEFT);
        untold.owe(&one, since, 1_000, LEFT);
        assert_eq!(untold.compared(&one, since, LEFT + 200), Some(80), "no more than the limit");
        assert_eq!(untold.compared(&one, since, LEFT + 200), Some(0));
        let later = Since { left: LEFT + 1, ..since };
        assert_eq!(untold.compared(&one, later, LEFT + 1), None, "of another time");
    }

    #[test]
    fn what_is_counted_here_after_a_cell_went_over_was_told_to_nobody() {
        let (untold, limit) = (Untold::default(), bucket(100, 100));
        let (one, since) = (ask(1, limit), since(&limit));
        assert_eq!(untold.goes_over(&one, since, LEFT), None);
        untold.begin(&one, since, LEFT);
        untold.owe(&one, since, 5, LEFT);
        let due = |owed, and_used| Some(Due { owed, and_used });
        assert_eq!(untold.goes_over(&one, since, LEFT), due(5, false));
        assert_eq!(untold.goes_over(&one, since, LEFT), due(0, true));
        // Shadow again: what is counted from here on is compared.
        assert_eq!(untold.compared(&one, since, LEFT), Some(0));
        assert_eq!(untold.goes_over(&one, since, LEFT), due(0, false));
    }

    #[test]
    fn of_counters_that_were_set_back_nothing_is_owed() {
        let (untold, limit) = (Untold::default(), bucket(100, 100));
        let (one, since) = (ask(1, limit), since(&limit));
        untold.forget(Which::Subject(1));
        untold.begin(&one, since, LEFT);
        for which in [Which::Subject(1), Which::Namespace(7)] {
            untold.owe(&one, since, 5, LEFT);
            untold.forget(Which::Subject(2));
            untold.forget(Which::Namespace(8));
            untold.forget(which);
            assert_eq!(untold.compared(&one, since, LEFT), Some(0), "{which:?}");
        }
    }

    #[test]
    fn there_is_room_for_so_many_cells_and_for_others_once_their_windows_are_over() {
        let (untold, limit) = (Untold::default(), bucket(100, 100));
        let since = since(&limit);
        for subject in 0..KEPT_MAX as u64 {
            assert!(untold.begin(&ask(subject, limit), since, LEFT));
        }
        assert!(!untold.begin(&ask(1 << 40, limit), since, LEFT));
        let left = LEFT + 2_000;
        let later = Since::running(&limit, left, left).unwrap();
        assert!(untold.begin(&ask(1, limit), later, left), "it has its place");
        assert!(untold.begin(&ask(1 << 40, limit), later, left));
        assert_eq!(untold.kept().unwrap().by_cell.len(), 2);
    }
}
