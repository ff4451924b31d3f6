//! An ask in the line of a cell, until somebody can be told.

use tollkeeper_core::{Limit, Millis};

use super::LeaseAsk;

#[derive(Debug)]
pub(super) struct Waiter<W> {
    pub(super) id: u64,
    pub(super) ask: LeaseAsk,
    pub(super) tell: W,
    /// Calls that were made for it.
    pub(super) rounds: u32,
    /// So often it was refused, and waited a moment for more.
    pub(super) waits: u32,
    /// Its patience ends.
    pub(super) until: Millis,
}

// === impl Waiter ===

impl<W> Waiter<W> {
    /// May the origin spend for it at once, in a call for one that costs so much under this limit?
    pub(super) fn asks_for(&self, cost: u64, limit: &Limit) -> bool {
        !self.ask.bundled && self.ask.limit == *limit && self.ask.cost.get() == cost
    }
}
