//! How often each limit was asked and how often it refused. A count is found once, when its limit is loaded; a request
//! only adds to it.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tollkeeper_core::Millis;

/// Whose limit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Counted {
    Namespace,
    Rule,
    Key,
    /// Not one limit: all that was asked for an identity, and refused to it.
    Identity,
}

/// In the place of a limit's name: all that a rule was asked, each decision once. No limit is called so.
pub const WHOLE_RULE: &str = "";

/// Which limit is counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CountOf {
    pub tenant_id: Arc<str>,
    pub kind: Counted,
    /// The id of what it belongs to; a rule's name.
    pub subject: Arc<str>,
    pub name: Arc<str>,
}

#[derive(Debug, Default)]
pub struct LimitCount {
    hits: AtomicU64,
    denied: AtomicU64,
    shadow: AtomicU64,
    /// When it was last asked, unix ms; only of an identity.
    seen_at: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub hits: u64,
    pub denied: u64,
    /// Would have been denied by a rule that only watches.
    pub shadow: u64,
    /// The moment of the last request, where that is kept.
    pub seen_at: Millis,
}

/// So many parts, each under a lock of its own: loading a key waits at most while one part is drained.
const SHARDS: usize = 64;

type Shard = Mutex<HashMap<CountOf, Arc<LimitCount>>>;

/// All counts of this node: as many as there are limits in memory, and those that were not written yet.
#[derive(Debug)]
pub struct LimitCounts {
    shards: [Shard; SHARDS],
    hasher: RandomState,
}

// === impl Counted ===

impl Counted {
    /// The word that it is stored by.
    pub fn word(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Rule => "rule",
            Self::Key => "key",
            Self::Identity => "identity",
        }
    }
}

// === impl LimitCount ===

impl LimitCount {
    pub fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    pub fn deny(&self) {
        self.denied.fetch_add(1, Ordering::Relaxed);
    }

    pub fn shadow(&self) {
        self.shadow.fetch_add(1, Ordering::Relaxed);
    }

    /// Never backwards. Mostly somebody was there in the same millisecond, and nothing is written.
    pub fn seen(&self, at: Millis) {
        if self.seen_at.load(Ordering::Relaxed) < at.0 {
            self.seen_at.fetch_max(at.0, Ordering::Relaxed);
        }
    }

    fn take(&self) -> Counts {
        // Most limits in memory were not asked since the last time: those are only read.
        let take = |count: &AtomicU64| match count.load(Ordering::Relaxed) {
            0 => 0,
            _ => count.swap(0, Ordering::Relaxed),
        };
        let (hits, denied) = (take(&self.hits), take(&self.denied));
        let shadow = take(&self.shadow);
        // It stays, and means something only with what was counted.
        let seen_at = if hits > 0 { self.seen_at.load(Ordering::Relaxed) } else { 0 };
        Counts { hits, denied, shadow, seen_at: Millis(seen_at) }
    }

    fn add(&self, counts: Counts) {
        self.hits.fetch_add(counts.hits, Ordering::Relaxed);
        self.denied.fetch_add(counts.denied, Ordering::Relaxed);
        self.shadow.fetch_add(counts.shadow, Ordering::Relaxed);
        self.seen_at.fetch_max(counts.seen_at.0, Ordering::Relaxed);
    }
}

// === impl LimitCounts ===

impl Default for LimitCounts {
    fn default() -> Self {
        let shards = std::array::from_fn(|_| Shard::default());
        Self { shards, hasher: RandomState::new() }
    }
}

impl LimitCounts {
    /// The same count for the same limit, however often it is loaded anew.
    pub fn of(&self, of: CountOf) -> Arc<LimitCount> {
        let hash = self.hasher.hash_one(&of.subject);
        let shard = &self.shards[usize::try_from(hash % SHARDS as u64).unwrap_or(0)];
        Arc::clone(lock(shard).entry(of).or_default())
    }

    /// What was counted since the last time. Limits that left memory are forgotten with it.
    pub fn drain(&self) -> Vec<(CountOf, Counts)> {
        let mut drained = Vec::new();
        for shard in &self.shards {
            lock(shard).retain(|of, count| {
                // Asked before the count is taken: whoever drops it afterwards leaves it for the next time.
                let in_use = Arc::strong_count(count) > 1;
                let counts = count.take();
                if counts != Counts::default() {
                    drained.push((of.clone(), counts));
                }
                in_use
            });
        }
        drained
    }

    /// What could not be written is counted again next time.
    pub fn put_back(&self, drained: Vec<(CountOf, Counts)>) {
        for (of, counts) in drained {
            self.of(of).add(counts);
        }
    }
}

/// Counts are whole after every step, also after a panic elsewhere.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> CountOf {
        let subject = Arc::from("api");
        CountOf { tenant_id: Arc::from("ws"), kind: Counted::Rule, subject, name: name.into() }
    }

    #[test]
    fn every_hit_is_drained_once_also_of_a_limit_that_is_gone() {
        let counts = LimitCounts::default();
        let count = counts.of(of("a"));
        count.hit();
        counts.of(of("a")).deny();
        drop(count);
        let once = Counts { hits: 1, denied: 1, ..Counts::default() };
        assert_eq!(counts.drain(), [(of("a"), once)]);
        assert_eq!(counts.drain(), []);
        assert!(counts.shards.iter().all(|shard| lock(shard).is_empty()));
    }

    #[test]
    fn the_last_moment_is_kept_and_goes_with_what_was_counted_since() {
        let counts = LimitCounts::default();
        let count = counts.of(of("a"));
        for at in [5, 9, 7] {
            count.hit();
            count.seen(Millis(at));
        }
        let seen = Counts { hits: 3, seen_at: Millis(9), ..Counts::default() };
        assert_eq!(counts.drain(), [(of("a"), seen)]);
        assert_eq!(counts.drain(), [], "nobody asked since");
    }

    #[test]
    fn what_could_not_be_written_is_drained_again() {
        let counts = LimitCounts::default();
        counts.of(of("a")).shadow();
        let drained = counts.drain();
        counts.put_back(drained.clone());
        assert_eq!(counts.drain(), drained);
    }
}
