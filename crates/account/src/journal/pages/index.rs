//! Where each name is counted, minute by minute. A table that grows moves all that is in it while requests wait; so each minute
//! has one of its own, made as large as the minute before it came to be.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tollkeeper_core::Minute;

use super::super::slot::SlotName;

#[derive(Debug, Default)]
pub(super) struct Index {
    minutes: BTreeMap<Minute, Names>,
    names: usize,
}

type Names = HashMap<(Arc<str>, Arc<str>), u32>;

// === impl Index ===

impl Index {
    pub(super) fn get(&self, name: &SlotName) -> Option<u32> {
        self.minutes.get(&name.minute)?.get(&key(name)).copied()
    }

    pub(super) fn insert(&mut self, name: &SlotName, slot: u32) {
        let newest = self.newest();
        let names = self.minutes.entry(name.minute);
        let names = names.or_insert_with(|| HashMap::with_capacity(newest));
        if names.insert(key(name), slot).is_none() {
            self.names += 1;
        }
    }

    pub(super) fn remove(&mut self, name: &SlotName) {
        let Some(names) = self.minutes.get_mut(&name.minute) else { return };
        if names.remove(&key(name)).is_some() {
            self.names -= 1;
        }
        if names.is_empty() {
            self.minutes.remove(&name.minute);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.names
    }

    /// How many names the newest minute has, and at least as many as the one before it: it may just have begun.
    pub(super) fn newest(&self) -> usize {
        self.minutes.values().rev().take(2).map(HashMap::len).max().unwrap_or(0)
    }
}

fn key(name: &SlotName) -> (Arc<str>, Arc<str>) {
    (Arc::clone(&name.project_id), Arc::clone(&name.key_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(minute: u32, key: &str) -> SlotName {
        SlotName { minute: Minute(minute), project_id: "api".into(), key_id: key.into() }
    }

    #[test]
    fn names_are_found_until_they_are_removed_and_told_apart_by_their_minute() {
        let mut index = Index::default();
        index.insert(&name(1, "a"), 1);
        index.insert(&name(2, "a"), 2);
        index.insert(&name(2, "b"), 3);
        assert_eq!((index.get(&name(1, "a")), index.get(&name(2, "a"))), (Some(1), Some(2)));
        assert_eq!((index.get(&name(1, "b")), index.get(&name(3, "a"))), (None, None));
        assert_eq!((index.len(), index.newest()), (3, 2));
        index.remove(&name(2, "a"));
        index.remove(&name(2, "a"));
        assert_eq!((index.get(&name(2, "a")), index.len(), index.newest()), (None, 2, 1));
    }
}
