//! Units that are set aside for one ask: spent by the decision, or given back when there is none.

use std::sync::Arc;

use smallvec::SmallVec;
use tollkeeper_core::Millis;

use super::LeaseTable;
use crate::CellKey;

/// What was set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    pub key: CellKey,
    pub units: u64,
    pub stage: Stage,
}

/// How far along units are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Spent by the origin when it was asked: the decision was its.
    Taken,
    /// Spent from the lease in hand.
    Spent,
    /// Set aside in this lease of the cell: to be spent or given back.
    Aside { lease: u64 },
    /// Admitted without a lease, by what is known here: counted when the decision stands.
    Pledged,
}

/// The same for all cells of one ask, as a value that cannot be forgotten: dropped unspent, it goes back.
pub struct Hold<W> {
    table: Arc<LeaseTable<W>>,
    units: SmallVec<[Units; 1]>,
}

// === impl Units ===

impl Units {
    pub(super) fn is_aside(&self) -> bool {
        matches!(self.stage, Stage::Aside { .. })
    }

    pub(super) fn is_of(&self, number: u64) -> bool {
        matches!(self.stage, Stage::Aside { lease } if lease == number)
    }

    /// Does the decision make a difference to them?
    pub(super) fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Aside { .. } | Stage::Pledged)
    }
}

// === impl Hold ===

impl<W> Hold<W> {
    pub fn new(table: &Arc<LeaseTable<W>>) -> Self {
        Self { table: Arc::clone(table), units: SmallVec::new() }
    }

    pub fn add(&mut self, units: Units) {
        self.units.push(units);
    }

    /// What is counted of this cell once the decision stands.
    pub(crate) fn pledged(&self, key: CellKey) -> u64 {
        let pledged = |one: &&Units| one.key == key && one.stage == Stage::Pledged;
        self.units.iter().filter(pledged).map(|one| one.units).sum()
    }

    pub fn is_ready(&self, now: Millis) -> bool {
        self.units.iter().all(|units| self.table.keeps(units, now))
    }

    /// Spends all of it, for a decision that stands.
    pub fn commit(mut self) {
        let units = std::mem::take(&mut self.units);
        self.table.commit(&units);
    }

    /// Spends all of it, or nothing: false where a lease was over before.
    pub fn spend(mut self, now: Millis) -> bool {
        let units = std::mem::take(&mut self.units);
        self.table.settle(&units, now)
    }
}

impl<W> Drop for Hold<W> {
    fn drop(&mut self) {
        for units in self.units.drain(..) {
            self.table.release(units);
        }
    }
}

impl<W> std::fmt::Debug for Hold<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Hold").field(&self.units).finish()
    }
}
