//! Stale-while-revalidate cache of records: fresh ones are served, stale ones served and renewed behind,
//! older ones never. One load per key at a time; what is absent is remembered in a budget of its own.
//! It reads no clock and knows no storage: `now` and the load come in.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quick_cache::Equivalent;
use quick_cache::sync::Cache;
use tollkeeper_core::Millis;

use crate::ports::{Loading, OriginError};

/// How long an entry is served.
#[derive(Clone, Copy, Debug)]
pub struct Lifetime {
    pub fresh_ms: u64,
    /// Also the hard limit: nothing older is ever served.
    pub stale_ms: u64,
}

/// What a read found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    Fresh,
    Stale,
    Miss,
}

#[derive(Debug)]
pub struct Swr<K, V> {
    found: Cache<K, Arc<Slot<V>>>,
    /// Apart from `found`, so that guessing names cannot push out real ones.
    absent: Cache<K, Millis>,
    /// The last failure of a load and its turn, for those who waited for it.
    failed: Cache<K, (u64, OriginError)>,
    lifetime: Lifetime,
    /// Counts invalidations: a load that began before one may be older than it, and is not kept.
    epoch: AtomicU64,
    /// Counts failures.
    turn: AtomicU64,
    /// Counts entries, so that those which came together are not renewed together.
    entries: AtomicU64,
}

#[derive(Debug)]
struct Slot<V> {
    value: V,
    loaded_at: Millis,
    /// Its first reader after this age has it renewed, though it is still fresh.
    due_ms: u64,
    renewing: AtomicBool,
}

/// What the cache says without waiting.
#[derive(Debug)]
pub enum Near<V> {
    /// `None`: known to be absent.
    Known(Option<V>),
    /// Fresh, and this one reader should load it anew before it is stale.
    Due(V),
    /// Usable, but due: `renew` is true for the one reader that should load it anew.
    Stale {
        value: V,
        renew: bool,
    },
    Unknown,
}

// === impl Swr ===

impl<K, V> Swr<K, V>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub fn new(found_max: usize, absent_max: usize, lifetime: Lifetime) -> Self {
        Self {
            found: Cache::new(found_max),
            absent: Cache::new(absent_max),
            failed: Cache::new(absent_max),
            lifetime,
            epoch: AtomicU64::new(0),
            turn: AtomicU64::new(0),
            entries: AtomicU64::new(0),
        }
    }

    pub fn near<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q, now: Millis) -> Near<V> {
        if let Some(slot) = self.found.get(key) {
            let age = now.since(slot.loaded_at);
            if age <= self.lifetime.fresh_ms {
                let value = slot.value.clone();
                let due = age > slot.due_ms && !slot.renewing.swap(true, Ordering::Relaxed);
                return if due { Near::Due(value) } else { Near::Known(Some(value)) };
            }
            if age <= self.lifetime.stale_ms {
                let renew = !slot.renewing.swap(true, Ordering::Relaxed);
                return Near::Stale { value: slot.value.clone(), renew };
            }
            return Near::Unknown;
        }
        let absent = self.absent.get(key).is_some_and(|at| now.since(at) <= self.lifetime.fresh_ms);
        if absent { Near::Known(None) } else { Near::Unknown }
    }

    /// Loads what is not near. Callers for the same key share one load, and its failure too:
    /// trying again one after the other would make the last of them wait for ever.
    pub async fn fetch(
        &self,
        key: K,
        now: Millis,
        load: impl FnOnce() -> Loading<Option<V>>,
    ) -> Result<Option<V>, OriginError> {
        let turn = self.turn.load(Ordering::Acquire);
        // An entry past its hard limit must not answer those who wait for this load.
        self.found.remove_if(&key, |slot| now.since(slot.loaded_at) > self.lifetime.stale_ms);
        let guard = match self.found.get_value_or_guard_async(&key).await {
            Ok(slot) => return Ok(Some(slot.value.clone())),
            Err(guard) => guard,
        };
        if let Some((_, error)) = self.failed.get(&key).filter(|(failed, _)| *failed > turn) {
            return Err(error);
        }
        // Another caller may have learnt meanwhile that there is nothing.
        if let Near::Known(known) = self.near(&key, now) {
            return Ok(known);
        }
        let epoch = self.epoch.load(Ordering::Acquire);
        let loaded = load().await;
        match &loaded {
            Ok(Some(value)) if self.is_at(epoch) => {
                // Fails when the key was forgotten since: then the value is not kept, as it should be.
                let _ = guard.insert(self.slot(value.clone(), now));
            }
            Ok(None) if self.is_at(epoch) => {
                self.absent.insert(key.clone(), now);
                // Forgotten between the look and the insert: then it was to be forgotten here too.
                if !self.is_at(epoch) {
                    self.absent.remove(&key);
                }
            }
            // Whoever is spared waits for nobody, and a flood of them leaves nothing behind.
            Ok(_) | Err(OriginError::Spared) => {}
            Err(error) => {
                let turn = self.turn.fetch_add(1, Ordering::AcqRel) + 1;
                self.failed.insert(key, (turn, error.clone()));
            }
        }
        loaded
    }

    /// Loads a stale entry anew. A load that fails leaves it as it is, to be tried by the next reader.
    pub async fn renew(&self, key: K, now: Millis, load: Loading<Option<V>>) {
        let epoch = self.epoch.load(Ordering::Acquire);
        match load.await {
            Ok(Some(value)) if self.is_at(epoch) => {
                self.found.insert(key.clone(), self.slot(value, now));
                if !self.is_at(epoch) {
                    self.found.remove(&key);
                }
            }
            Ok(None) if self.is_at(epoch) => {
                self.found.remove(&key);
            }
            _ => self.postpone(&key),
        }
    }

    /// Leaves the renewal of an entry to its next reader.
    pub fn postpone(&self, key: &K) {
        if let Some(slot) = self.found.get(key) {
            slot.renewing.store(false, Ordering::Relaxed);
        }
    }

    /// Forgets a key, also for loads that are under way.
    pub fn forget<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.found.remove(key);
        self.absent.remove(key);
    }

    /// Forgets all entries that `which` covers, and everything known to be absent.
    pub fn forget_where(&self, which: impl Fn(&V) -> bool) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.found.retain(|_, slot| !which(&slot.value));
        self.absent.clear();
    }

    /// Puts a record that was loaded in bulk, unless something was forgotten meanwhile.
    pub fn prewarm(&self, key: &K, value: V, mark: u64, now: Millis) {
        self.found.insert(key.clone(), self.slot(value, now));
        if !self.is_at(mark) {
            self.found.remove(key);
        }
    }

    /// Changes with everything that is forgotten.
    pub fn mark(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    pub fn len(&self) -> usize {
        self.found.len()
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// An entry, due in the second half of its fresh time. Thousands that were loaded in the same moment, by a start or a
    /// burst, would else be renewed in the same moment for ever, and requests would wait behind that for their core.
    fn slot(&self, value: V, loaded_at: Millis) -> Arc<Slot<V>> {
        /// Multiples of the golden ratio fall evenly however many there are.
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let turn = self.entries.fetch_add(1, Ordering::Relaxed).wrapping_mul(GOLDEN) >> 48;
        let half = self.lifetime.fresh_ms / 2;
        let due_ms = half + (half.saturating_mul(turn) >> 16);
        Arc::new(Slot { value, loaded_at, due_ms, renewing: AtomicBool::new(false) })
    }

    /// Was nothing forgotten since?
    fn is_at(&self, epoch: u64) -> bool {
        self.epoch.load(Ordering::Acquire) == epoch
    }
}
