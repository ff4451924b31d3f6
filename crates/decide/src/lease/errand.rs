//! A call that somebody must bring to the origin, and whose answer the table wants back.

use std::sync::Arc;

use tollkeeper_core::Take;

use super::CellName;
use crate::CellKey;

#[derive(Clone, Debug)]
pub struct Errand {
    pub key: CellKey,
    pub name: Arc<CellName>,
    pub take: Take,
    /// Of a cell that has no place in the table: nobody but the asker wants the answer.
    pub detached: Option<u64>,
}

// === impl Errand ===

impl Errand {
    /// It asks for nothing, so nobody waits for it.
    pub fn only_tells(&self) -> bool {
        self.take.need == 0 && self.take.ask == 0
    }
}

/// There was no answer. It may have been heard all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// Nothing came back in time.
    Silent,
    /// The origin is known to be away: it was not even sent.
    Away,
}
