//! The shared origin as a model: the records of `tollkeeper-core`, an epoch, and a clock of its own.

use std::collections::{HashMap, VecDeque};

use tollkeeper_core::{Algorithm, Boot, Micros, Record, Take, Taken, Totals};

/// How long nothing is granted after history was lost, and how long after the last assertion.
const LEARN_US: u64 = 1_000_000;
const QUIET_US: u64 = 500_000;

/// Copies that a failover may go back to.
const COPIES_MAX: usize = 16;

type Records = HashMap<(u64, u64), Option<Record>>;

#[derive(Debug, Default)]
pub(super) struct Origin {
    records: Records,
    copies: VecDeque<Records>,
    /// What each boot was heard to say of a cell in a window since history was lost.
    told: HashMap<(Boot, u64, u64), Totals>,
    /// Counts losses.
    pub(super) epoch: u64,
    learning_until_us: u64,
    /// It answers nothing before this moment.
    pub(super) stalled_until: u64,
    /// Its clock, beside the true one.
    pub(super) ahead_ms: i64,
}

// === impl Origin ===

impl Origin {
    pub(super) fn take(&mut self, cell: u64, take: &Take, now: Micros, now_us: u64) -> Taken {
        // Fixed windows have a record each.
        let win = match take.limit.algorithm {
            Algorithm::FixedWindow(_) => take.win,
            _ => 0,
        };
        let learning = self.is_learning(now_us);
        let record = self.records.entry((cell, win)).or_default();
        let taken = Record::take(record, take, learning, now);
        if learning && self.is_news(cell, take) {
            self.learning_until_us = self.learning_until_us.max(now_us + QUIET_US);
        }
        taken
    }

    /// Did it say what was not known? Only loans and first words are waited after: what nodes admit by their
    /// policy while they wait must not make the waiting longer.
    fn is_news(&mut self, cell: u64, take: &Take) -> bool {
        if take.totals.counted() == 0 {
            return false;
        }
        let told = self.told.entry((take.boot, cell, take.win));
        let known = matches!(told, std::collections::hash_map::Entry::Occupied(_));
        let told = told.or_default();
        let news = !known || take.totals.granted > told.granted;
        *told = told.merged(take.totals);
        news
    }

    pub(super) fn keep_copy(&mut self) {
        if self.copies.len() == COPIES_MAX {
            self.copies.pop_front();
        }
        self.copies.push_back(self.records.clone());
    }

    /// Everything is gone.
    pub(super) fn wipe(&mut self, now_us: u64) {
        self.records.clear();
        self.copies.clear();
        self.learn(now_us);
    }

    /// One cell is gone.
    pub(super) fn lose(&mut self, cell: u64) {
        self.records.retain(|(of, _), _| *of != cell);
    }

    /// Back to one of the copies kept, the `nth` from the newest.
    pub(super) fn fail_over(&mut self, nth: usize, now_us: u64) {
        self.copies.truncate(self.copies.len().saturating_sub(nth).max(1));
        self.records = self.copies.back().cloned().unwrap_or_default();
        self.learn(now_us);
    }

    fn learn(&mut self, now_us: u64) {
        self.epoch += 1;
        self.told.clear();
        self.learning_until_us = now_us + LEARN_US;
    }

    pub(super) fn is_learning(&self, now_us: u64) -> bool {
        now_us < self.learning_until_us
    }

    pub(super) fn reset(&mut self, cell: u64) {
        for ((of, _), record) in &mut self.records {
            if let Some(record) = record.as_mut().filter(|_| *of == cell) {
                record.reset();
            }
        }
    }
}
