//! The meter: counts what a key was used for, in the pages of the journal. A request costs two adds to memory that is a
//! file; only the first request of a key in a minute has to find its slot. It never waits for a disk or a database.

use std::sync::Arc;

use tollkeeper_core::{Millis, Minute, Usage};
use tollkeeper_decide::LoadedKey;

use crate::journal::Pages;

/// A handle; clones count in the same pages.
#[derive(Clone, Debug)]
pub struct Meter(Arc<Pages>);

// === impl Meter ===

impl Meter {
    pub fn new(pages: Arc<Pages>) -> Self {
        Self(pages)
    }

    /// Counts at the minute that the decision was made for.
    pub fn count(&self, key: &LoadedKey, usage: Usage, at: Millis) {
        let minute = Minute::of(at);
        let found = key.counted_in(minute).or_else(|| self.find(key, minute));
        match found {
            Some(slot) => self.0.add(slot, usage),
            None => self.0.lose(usage),
        }
    }

    /// Has the place fetched where [`Self::count`] will count, if the key knows it.
    pub fn fetch(&self, key: &LoadedKey, at: Millis) {
        if let Some(slot) = key.counted_in(Minute::of(at)) {
            self.0.fetch(slot);
        }
    }

    fn find(&self, key: &LoadedKey, minute: Minute) -> Option<u32> {
        let slot = self.0.find(&key.record.project.id, &key.record.id, minute)?;
        key.count_in(minute, slot);
        Some(slot)
    }

    pub fn pages(&self) -> &Arc<Pages> {
        &self.0
    }
}
