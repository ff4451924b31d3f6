//! One journal for the thread that writes changes and for those that spend credits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Journal;

#[derive(Clone, Debug)]
pub struct SharedJournal(Arc<Mutex<Journal>>);

// === impl SharedJournal ===

impl SharedJournal {
    pub fn new(journal: Journal) -> Self {
        Self(Arc::new(Mutex::new(journal)))
    }

    /// Held for one write at a time: some tens of microseconds for the largest.
    pub fn lock(&self) -> MutexGuard<'_, Journal> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
