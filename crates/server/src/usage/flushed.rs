//! What a round has brought to the ledger, for whoever asked for it.

use std::collections::HashSet;
use std::sync::Arc;

use tollkeeper_core::{Component, Minute};

#[derive(Debug, Default)]
pub struct Flushed {
    minutes: HashSet<Minute>,
    records: HashSet<(u32, Arc<str>, Arc<str>)>,
}

// === impl Flushed ===

impl Flushed {
    pub fn add(&mut self, components: &[Component]) {
        const MINUTES_OF_A_DAY: u32 = 1_440;
        for one in components {
            self.minutes.insert(one.minute);
            let day = one.minute.0 / MINUTES_OF_A_DAY;
            self.records.insert((day, Arc::clone(&one.project_id), Arc::clone(&one.key_id)));
        }
    }

    /// Minutes.
    pub fn buckets(&self) -> u64 {
        self.minutes.len() as u64
    }

    /// Days of keys.
    pub fn records(&self) -> u64 {
        self.records.len() as u64
    }
}
