//! What the ledger has shown lately. A database that comes back as it was a minute ago has forgotten the last of it, for
//! commits are lost from the end.

use std::collections::{HashMap, VecDeque};

use tollkeeper_core::{Component, Usage};

/// The last of so many rounds. One would do; the others are for a bucket of Redis that brings a single one back.
const REMEMBERED_MAX: usize = 8;

#[derive(Debug, Default)]
pub struct Memory(VecDeque<Component>);

/// Components by what they are about.
pub struct Shown<'a>(HashMap<About<'a>, Usage>);

type About<'a> = (u32, [u8; 16], &'a str, &'a str);

// === impl Memory ===

impl Memory {
    pub fn note(&mut self, shown: &Component) {
        self.0.retain(|one| !one.is_about(shown));
        self.0.push_back(shown.clone());
        if self.0.len() > REMEMBERED_MAX {
            self.0.pop_front();
        }
    }

    pub fn components(&self) -> Vec<Component> {
        self.0.iter().cloned().collect()
    }

    /// Is all of it still shown?
    pub fn is_in(&self, shown: &[Component]) -> bool {
        let shown = Self::of(shown);
        self.0.iter().all(|one| shown.shows(one))
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn of(shown: &[Component]) -> Shown<'_> {
        Shown(shown.iter().map(|one| (about(one), one.usage)).collect())
    }
}

// === impl Shown ===

impl Shown<'_> {
    pub fn shows(&self, one: &Component) -> bool {
        self.0.get(&about(one)).is_some_and(|usage| usage.covers(&one.usage))
    }
}

fn about(one: &Component) -> About<'_> {
    (one.minute.0, one.boot, &one.project_id, &one.key_id)
}
