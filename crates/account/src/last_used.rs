//! When keys, projects and root keys were last used: noted beside the answer, written in batches long after it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tollkeeper_core::Millis;
use tollkeeper_decide::{LoadedKey, RootKey};

/// Objects that wait to be written, at most. A busy node uses that many keys in half a minute; more are
/// noted the next time they are used.
const WAITING_MAX: usize = 200_000;

#[derive(Debug, Default)]
pub struct LastUsed {
    waiting: Mutex<Waiting>,
}

/// What is to be written: the newest moment of each.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    pub keys: HashMap<Arc<str>, Millis>,
    pub projects: HashMap<Arc<str>, Millis>,
    pub root_keys: HashMap<Arc<str>, Millis>,
}

// === impl LastUsed ===

impl LastUsed {
    /// Costs one read of an atomic when the key was noted lately.
    pub fn note(&self, key: &LoadedKey, now: Millis) {
        if !key.noted.take(now) {
            return;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.keys.len() < WAITING_MAX {
            waiting.keys.insert(Arc::clone(&key.record.id), now);
            waiting.projects.insert(Arc::clone(&key.record.project.id), now);
        }
    }

    /// As cheap.
    pub fn note_root_key(&self, key: &RootKey, now: Millis) {
        if !key.noted.take(now) {
            return;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.root_keys.len() < WAITING_MAX {
            waiting.root_keys.insert(Arc::clone(&key.id), now);
        }
    }

    pub fn take(&self) -> Waiting {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
