//! A decision that was made and not yet recorded. Only the ledger turns it into an answer.

use tollkeeper_core::Millis;

#[must_use = "a decision that is not recorded was spent and not counted"]
#[derive(Debug)]
pub struct Decided<T> {
    made: T,
    at: Millis,
}

// === impl Decided ===

impl<T> Decided<T> {
    pub(crate) fn new(made: T, at: Millis) -> Self {
        Self { made, at }
    }

    /// When it was made.
    pub fn at(&self) -> Millis {
        self.at
    }

    /// For the ledger, which counts it and answers.
    pub fn open(self) -> T {
        self.made
    }
}
