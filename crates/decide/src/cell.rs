//! A cell: one limit for one identifier, the thing that is counted. One cache line each.
//! Its name never enters the table, only a keyed hash of it.

use std::sync::Arc;

use tollkeeper_core::{Algorithm, Cost, Limit, Millis, Outcome, State, Window};

use crate::keyed::Keyed;
use crate::lease::Scope;
use crate::ports::ParkedCell;

mod short;

pub(crate) use short::{Count, Pour, ShortStep, Slide};

/// 128 bits under a secret key: an attacker who chooses identifiers can neither aim at
/// a shard nor make two cells meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CellKey {
    /// Tenant, namespace and identifier. All cells of one identifier share it, and so their shard.
    pub subject: u64,
    /// The same text and the algorithm and width on top.
    pub exact: u64,
}

/// Hashes cell names under one secret. The secret must outlive the process, or no cell would be found again.
#[derive(Clone)]
pub struct CellHasher {
    keyed: Arc<Keyed>,
}

/// One namespace's part of every cell key, hashed once when the namespace is loaded.
#[derive(Clone)]
pub struct NamespaceTag {
    /// What a whole namespace's cells have in common.
    pub tag: u64,
    /// The first part of their names outside this process.
    pub scope: Arc<Scope>,
    /// What the identifiers' texts are summed up behind.
    start: u128,
    keyed: Arc<Keyed>,
}

#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Cell {
    pub(crate) key: CellKey,
    pub(crate) namespace: u64,
    pub(crate) state: State,
    /// Unix seconds, rounded up, so that a cell is never forgotten early.
    pub(crate) idle_at_s: u32,
    /// The share of the limit in use: what eviction compares.
    pub(crate) fill: u16,
}

// === impl CellHasher ===

impl CellHasher {
    pub fn new(secret: [u8; 16]) -> Self {
        Self { keyed: Arc::new(Keyed::new(secret)) }
    }

    /// Every part goes in behind its length, so that no two names can run into each other.
    pub fn namespace(&self, tenant_slug: &str, name: &str) -> NamespaceTag {
        self.scope(&Arc::new(Scope::namespace(tenant_slug, name)))
    }

    /// The same for limits that belong to a key or an identity.
    pub fn owner(&self, tenant_slug: &str, owner_id: &str) -> NamespaceTag {
        self.scope(&Arc::new(Scope::owner(tenant_slug, owner_id)))
    }

    pub fn scope(&self, scope: &Arc<Scope>) -> NamespaceTag {
        // A zero byte keeps owners apart from every namespace that a caller can name, because no slug holds one.
        let owner = if scope.of_owner { "\0owner" } else { "" };
        let tenant = [&*scope.tenant, owner].concat();
        let mut name = Vec::new();
        for part in [&*tenant, &*scope.space] {
            name.extend_from_slice(&(part.len() as u64).to_le_bytes());
            name.extend_from_slice(part.as_bytes());
        }
        let start = self.keyed.sum(0, &name);
        let keyed = Arc::clone(&self.keyed);
        NamespaceTag { tag: halves(start).0, scope: Arc::clone(scope), start, keyed }
    }
}

impl std::fmt::Debug for CellHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CellHasher(secret)")
    }
}

// === impl NamespaceTag ===

impl NamespaceTag {
    pub fn cell(&self, identifier: &str, limit: &Limit) -> CellKey {
        let (subject, name) = halves(self.keyed.sum(self.start, identifier.as_bytes()));
        CellKey { subject, exact: name ^ spread(shape(limit)) }
    }

    /// What all cells of this identifier share.
    pub fn subject(&self, identifier: &str) -> u64 {
        halves(self.keyed.sum(self.start, identifier.as_bytes())).0
    }
}

impl std::fmt::Debug for NamespaceTag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NamespaceTag({:016x})", self.tag)
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the low half, and the high one")]
fn halves(sum: u128) -> (u64, u64) {
    (sum as u64, (sum >> 64) as u64)
}

/// Algorithm and width as one number: no two differ in neither. Quotas are not part of a
/// cell's identity, so that a changed limit goes on counting where the old one was.
fn shape(limit: &Limit) -> u64 {
    let (kind, width) = match limit.algorithm {
        Algorithm::FixedWindow(Window::Aligned(width)) => (1, width.millis()),
        Algorithm::FixedWindow(Window::Day) => (2, 0),
        Algorithm::FixedWindow(Window::Month) => (3, 0),
        Algorithm::SlidingWindow(width) => (4, width.millis()),
        Algorithm::SlidingLog(width) => (5, width.millis()),
        Algorithm::TokenBucket { width, .. } => (6, width.millis()),
    };
    (kind << 56) ^ width
}

/// A bijection, since the factor is odd: distinct shapes stay distinct, and spread over the high bits, which say where a cell goes.
fn spread(x: u64) -> u64 {
    x.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

// === impl Cell ===

impl Cell {
    pub(crate) fn fresh(key: CellKey, namespace: u64, limit: &Limit) -> Self {
        Self { key, namespace, state: State::fresh(limit), idle_at_s: 0, fill: 0 }
    }

    /// Takes the state after a step.
    pub(crate) fn keep(&mut self, state: State, limit: &Limit, outcome: &Outcome) {
        self.idle_at_s = seconds(state.idle_at(limit));
        self.fill = outcome.fill();
        self.state = state;
    }

    /// One step where the cell is. True when it was spent from.
    #[inline]
    pub(crate) fn step(&mut self, limit: &Limit, cost: Cost, now: Millis) -> (Outcome, bool) {
        let outcome = self.state.step(limit, cost, now);
        let spent = outcome.admitted() && cost != Cost::PEEK;
        if spent {
            self.note(limit, &outcome);
        }
        (outcome, spent)
    }

    /// Takes the state that an admitted cost leads to.
    #[inline]
    pub(crate) fn spent(&mut self, next: State, limit: &Limit, outcome: &Outcome) {
        self.state = next;
        self.note(limit, outcome);
    }

    #[inline]
    fn note(&mut self, limit: &Limit, outcome: &Outcome) {
        self.idle_at_s = seconds(match limit.algorithm {
            // As good as fresh when it is whole again, which the step has divided out.
            Algorithm::TokenBucket { .. } => outcome.reset,
            _ => self.state.idle_at(limit),
        });
        self.fill = outcome.fill();
    }

    pub(crate) fn is_idle(&self, now: Millis) -> bool {
        u64::from(self.idle_at_s) * 1000 <= now.0
    }

    pub(crate) fn parked(&self) -> ParkedCell {
        ParkedCell {
            key: self.key,
            namespace: self.namespace,
            idle_at_s: self.idle_at_s,
            fill: self.fill,
            state: self.state.clone(),
        }
    }
}

impl From<ParkedCell> for Cell {
    fn from(parked: ParkedCell) -> Self {
        let ParkedCell { key, namespace, idle_at_s, fill, state } = parked;
        Self { key, namespace, state, idle_at_s, fill }
    }
}

fn seconds(at: Millis) -> u32 {
    u32::try_from(at.seconds_up()).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use tollkeeper_core::{Quota, Width};

    use super::*;

    fn sliding(quota: u64, width_ms: u64) -> Limit {
        Limit::sliding_window(Quota::new(quota).unwrap(), Width::from_millis(width_ms).unwrap())
    }

    #[test]
    fn a_cell_is_one_cache_line() {
        assert_eq!((size_of::<Option<Cell>>(), align_of::<Cell>()), (64, 64));
    }

    #[test]
    fn a_step_notes_the_same_as_keeping_the_state_that_it_leads_to() {
        let (quota, width) = (Quota::new(1_000).unwrap(), Width::from_millis(7_001).unwrap());
        let key = CellKey { subject: 1, exact: 2 };
        for limit in [
            sliding(1_000, 7_001),
            Limit::fixed_window(quota, Window::Aligned(width)),
            Limit::token_bucket(quota, width, Quota::new(300)),
            Limit::sliding_log(quota, width).unwrap(),
        ] {
            let fresh = || Cell::fresh(key, 0, &limit);
            let (mut here, mut there, mut short) = (fresh(), fresh(), fresh());
            for (cost, now) in (1..200).map(|n| (Cost::new(n % 7).unwrap(), Millis(n * 311))) {
                let (stepped, spent) = here.step(&limit, cost, now);
                let (outcome, next) = there.state.clone().spend(&limit, cost, now);
                assert_eq!((stepped, &here.state), (outcome, &next));
                if spent {
                    there.keep(next, &limit, &outcome);
                } else {
                    there.state = next;
                }
                assert_eq!((here.idle_at_s, here.fill), (there.idle_at_s, there.fill), "{limit:?}");
                let shortly = match limit.algorithm {
                    Algorithm::SlidingWindow(_) => Slide::take(&mut short, &limit, cost, now),
                    Algorithm::TokenBucket { .. } => Pour::take(&mut short, &limit, cost, now),
                    _ => Count::take(&mut short, &limit, cost, now),
                };
                let shortly = shortly.unwrap_or_else(|| short.step(&limit, cost, now));
                assert_eq!((stepped, spent), shortly);
                assert_eq!(here.state, short.state);
                assert_eq!((here.idle_at_s, here.fill), (short.idle_at_s, short.fill), "{limit:?}");
            }
        }
    }

    #[test]
    fn no_two_names_run_into_each_other() {
        let hasher = CellHasher::new([7; 16]);
        let limit = sliding(10, 1000);
        let keys = [
            ("t", "ab", "c"),
            ("t", "a", "bc"),
            ("ta", "b", "c"),
            ("t", "abc", ""),
            ("", "t", "abc"),
        ]
        .map(|(tenant, name, id)| hasher.namespace(tenant, name).cell(id, &limit));
        for (i, a) in keys.iter().enumerate() {
            assert!(keys[i + 1..].iter().all(|b| b.subject != a.subject && b.exact != a.exact));
        }
    }

    #[test]
    fn the_quota_is_not_part_of_a_cells_identity_but_algorithm_and_width_are() {
        let tag = CellHasher::new([7; 16]).namespace("t", "n");
        let key = |limit: &Limit| tag.cell("id", limit);
        assert_eq!(key(&sliding(10, 1000)), key(&sliding(20, 1000)));
        assert_ne!(key(&sliding(10, 1000)), key(&sliding(10, 1001)));
        let bucket =
            Limit::token_bucket(Quota::new(10).unwrap(), Width::from_millis(1000).unwrap(), None);
        assert_ne!(key(&sliding(10, 1000)), key(&bucket));
        assert_eq!(key(&bucket).subject, tag.subject("id"));
    }

    #[test]
    fn another_secret_gives_other_keys() {
        let limit = sliding(10, 1000);
        let key = |secret| CellHasher::new([secret; 16]).namespace("t", "n").cell("id", &limit);
        assert_ne!(key(1), key(2));
    }
}
