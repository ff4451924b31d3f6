//! What this node knows to have changed: the oldest revision at which a record may have been read to be used still.
//! Bounded. What it has no room for it remembers as one number for all, which refuses too much and never too little.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tollkeeper_decide::KeyHash;

/// Changes of which it knows what they were about: those of a busy minute, in some 2 MB.
const KNOWN_MAX: usize = 16_384;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Touched {
    Key(KeyHash),
    /// Everything of a tenant, by its id.
    Tenant(Arc<str>),
}

#[derive(Debug)]
pub struct Floors {
    /// Of everything.
    all: u64,
    /// Of what was not found: any tenant may have got it since.
    absent: u64,
    known: HashMap<Touched, u64>,
    /// In the order of revisions, to forget the oldest first.
    order: VecDeque<(Touched, u64)>,
}

// === impl Floors ===

impl Floors {
    /// Of a node that knows nothing of what came before this revision.
    pub fn new(revision: u64) -> Self {
        Self { all: revision, absent: revision, known: HashMap::new(), order: VecDeque::new() }
    }

    /// This changed. To be told in the order of revisions.
    pub fn raise(&mut self, touched: Touched, revision: u64) {
        if matches!(touched, Touched::Tenant(_)) {
            self.absent = self.absent.max(revision);
        }
        self.known.insert(touched.clone(), revision);
        self.order.push_back((touched, revision));
        while self.order.len() > KNOWN_MAX {
            let Some((oldest, revision)) = self.order.pop_front() else { return };
            // Touched again since: then the later one still stands for it.
            if self.known.get(&oldest) == Some(&revision) {
                self.known.remove(&oldest);
                self.all = self.all.max(revision);
            }
        }
    }

    /// Of a key of this tenant.
    pub fn of_key(&self, hash: KeyHash, tenant_id: &str) -> u64 {
        self.of(&Touched::Key(hash)).max(self.of_tenant(tenant_id))
    }

    /// Of a key that was not found.
    pub fn of_absent_key(&self, hash: KeyHash) -> u64 {
        self.of(&Touched::Key(hash)).max(self.absent)
    }

    pub fn of_tenant(&self, tenant_id: &str) -> u64 {
        self.of(&Touched::Tenant(tenant_id.into()))
    }

    fn of(&self, touched: &Touched) -> u64 {
        self.known.get(touched).copied().unwrap_or(0).max(self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: KeyHash = KeyHash([1; 32]);
    const OTHER: KeyHash = KeyHash([2; 32]);

    fn tenant(id: &str) -> Touched {
        Touched::Tenant(id.into())
    }

    #[test]
    fn a_change_is_a_floor_for_what_it_touched_and_for_nothing_else() {
        let mut floors = Floors::new(10);
        floors.raise(Touched::Key(KEY), 11);
        assert_eq!((floors.of_key(KEY, "a"), floors.of_key(OTHER, "a")), (11, 10));
        assert_eq!((floors.of_absent_key(KEY), floors.of_absent_key(OTHER)), (11, 10));
        floors.raise(tenant("a"), 12);
        assert_eq!((floors.of_key(KEY, "a"), floors.of_key(KEY, "b")), (12, 11));
        assert_eq!((floors.of_tenant("a"), floors.of_tenant("b")), (12, 10));
        assert_eq!(floors.of_absent_key(OTHER), 12, "the tenant may have got it");
    }

    #[test]
    fn what_there_is_no_room_for_is_a_floor_for_all_and_never_for_less() {
        let mut floors = Floors::new(0);
        floors.raise(Touched::Key(KEY), 1);
        floors.raise(tenant("a"), 2);
        floors.raise(Touched::Key(KEY), 3);
        for revision in 4..=KNOWN_MAX as u64 + 1 {
            floors.raise(Touched::Key(OTHER), revision);
        }
        assert_eq!(floors.all, 0, "the first was touched again");
        assert_eq!(floors.of_key(KEY, "b"), 3);
        floors.raise(tenant("b"), 1_000_000);
        assert_eq!((floors.all, floors.of_key(KEY, "b")), (2, 1_000_000));
        floors.raise(tenant("c"), 1_000_001);
        assert_eq!((floors.all, floors.of_key(KEY, "d")), (3, 3));
        assert_eq!(floors.order.len(), KNOWN_MAX);
    }
}
