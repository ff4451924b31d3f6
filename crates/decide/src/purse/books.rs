//! All pockets of a node and the calls to the bank that change them. A call that has begun runs to its end,
//! whoever waits for it, and no other about the same key begins before: an answer always finds what it is about.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::OwnedMutexGuard;
use tollkeeper_core::Millis;

use super::pocket::{Pocket, Standing};
use super::{Filled, Held};
use crate::ports::{Bank, OriginError};

/// Two callers rarely meet, and so many calls to the bank can be under way.
const SHARDS: usize = 64;

/// A millisecond each. A request that has not decided by then finds nothing set aside any more.
const CLOSING_TURNS: usize = 50;

type Pockets = HashMap<Arc<str>, Pocket>;

pub(super) struct Books {
    shards: [Mutex<Pockets>; SHARDS],
    flights: [Arc<tokio::sync::Mutex<()>>; SHARDS],
    lives: AtomicU64,
    hasher: RandomState,
    bank: Arc<dyn Bank>,
    boot: [u8; 16],
    pub(super) backstage: Handle,
}

/// The right to talk to the bank about a key.
pub(super) type Flight = OwnedMutexGuard<()>;

// === impl Books ===

impl Books {
    pub(super) fn new(bank: Arc<dyn Bank>, boot: [u8; 16], backstage: Handle) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            flights: std::array::from_fn(|_| Arc::default()),
            lives: AtomicU64::new(0),
            hasher: RandomState::new(),
            bank,
            boot,
            backstage,
        }
    }

    pub(super) async fn flight(&self, key_id: &str) -> Flight {
        Arc::clone(&self.flights[self.shard_of(key_id)]).lock_owned().await
    }

    /// What can be answered without the bank.
    pub(super) fn try_fill(
        self: &Arc<Self>,
        key_id: &Arc<str>,
        cost: u64,
        now: Millis,
    ) -> Option<Filled> {
        self.fill_from(self.shard(key_id).get_mut(key_id)?, key_id, cost, now)
    }

    fn fill_from(
        self: &Arc<Self>,
        pocket: &mut Pocket,
        key_id: &Arc<str>,
        cost: u64,
        now: Millis,
    ) -> Option<Filled> {
        pocket.touch(now);
        match pocket.standing(cost, now) {
            Standing::Unknown => None,
            Standing::Short => Some(Filled::Short),
            Standing::Unlimited => Some(Filled::Unlimited),
            Standing::Enough => {
                let (books, key_id) = (Arc::clone(self), Arc::clone(key_id));
                Some(Filled::Held(Held { books, key_id, cost, life: pocket.hold(cost) }))
            }
        }
    }

    /// Asks the bank and sets `cost` aside from its answer in one step, so that nobody else gets it first.
    pub(super) async fn lease(
        self: Arc<Self>,
        key_id: Arc<str>,
        cost: u64,
        now: Millis,
        _flight: Flight,
    ) -> Result<Option<Filled>, OriginError> {
        // The pocket is there before the bank is asked: if the answer gets lost, the grant is still given back.
        let (known, want) =
            self.in_pocket(&key_id, now, |pocket| (pocket.lease(), pocket.want(cost)));
        let answer = self.bank.lease(&key_id, self.boot, known, want, now).await;
        self.in_pocket(&key_id, now, |pocket| match answer {
            Ok(lease) => {
                pocket.learn(known.spent, lease, now);
                Ok(self.fill_from(pocket, &key_id, cost, now))
            }
            Err(error) => {
                pocket.fail(&error);
                Err(error)
            }
        })
    }

    /// Gives one key's credits back where `wanted` holds. False: there was nothing to do.
    pub(super) async fn give_back(
        self: Arc<Self>,
        key_id: Arc<str>,
        wanted: impl Fn(&Pocket) -> bool + Send,
        _flight: Flight,
    ) -> Result<bool, OriginError> {
        // Requests that are between warm and decided get a moment to spend what was set aside for them.
        for _ in 0..CLOSING_TURNS {
            let close = |pocket: &mut Pocket| !wanted(pocket) || pocket.close();
            if self.shard(&key_id).get_mut(&key_id).is_none_or(close) {
                break;
            }
            pause().await;
        }
        let life = self.next_life();
        let empty = |pocket: &mut Pocket| wanted(pocket).then(|| pocket.empty(life));
        let emptied = self.shard(&key_id).get_mut(&key_id).and_then(empty);
        let Some(spent) = emptied else { return Ok(false) };
        self.bank.give_back(&key_id, self.boot, spent).await?;
        // Only now: without it a call that failed would take the memory of what was spent with it.
        self.shard(&key_id).remove(&key_id);
        Ok(true)
    }

    pub(super) async fn report(
        self: Arc<Self>,
        key_id: Arc<str>,
        spent: u64,
        now: Millis,
    ) -> Result<(), OriginError> {
        self.bank.report(&key_id, self.boot, spent).await?;
        if let Some(pocket) = self.shard(&key_id).get_mut(&key_id) {
            pocket.told(spent, now);
        }
        Ok(())
    }

    /// Something of every pocket, where there is something.
    pub(super) fn each<T>(&self, of: impl Fn(&Arc<str>, &Pocket) -> Option<T>) -> Vec<T> {
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(locked(shard).iter().filter_map(|(key_id, pocket)| of(key_id, pocket)));
        }
        all
    }

    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| locked(shard).len()).sum()
    }

    pub(super) fn shard(&self, key_id: &str) -> MutexGuard<'_, Pockets> {
        locked(&self.shards[self.shard_of(key_id)])
    }

    fn in_pocket<T>(
        &self,
        key_id: &Arc<str>,
        now: Millis,
        change: impl FnOnce(&mut Pocket) -> T,
    ) -> T {
        let mut shard = self.shard(key_id);
        let entry = shard.entry(Arc::clone(key_id));
        change(entry.or_insert_with(|| Pocket::new(self.next_life(), now)))
    }

    fn next_life(&self) -> u64 {
        self.lives.fetch_add(1, Ordering::Relaxed)
    }

    fn shard_of(&self, key_id: &str) -> usize {
        usize::try_from(self.hasher.hash_one(key_id) % SHARDS as u64).unwrap_or(0)
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a decision that is under way takes microseconds, unless its thread is not running"
)]
async fn pause() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Also after a panic elsewhere: every step leaves a pocket whole.
fn locked(shard: &Mutex<Pockets>) -> MutexGuard<'_, Pockets> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Books {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Books").finish_non_exhaustive()
    }
}
