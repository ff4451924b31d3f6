//! Follows the changes of all nodes and forgets what they make stale. News come at once; behind them, every second,
//! a look into the outbox, so that a lost message costs a second and not a lifetime.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tollkeeper_core::Millis;
use tollkeeper_decide::Decider;
use tollkeeper_store::{Changed, OutboxEntry, Store, StoreError};

use crate::clock::Clock;
use crate::rule_books::RuleKeeper;
use crate::shared_cache::SharedCache;
use crate::status::chain;

/// How long no news are believed to mean that nothing changed.
const LOOK: Duration = Duration::from_secs(1);

/// Longer than a statement may take: it is not given up before the database does.
const READ: Duration = Duration::from_secs(3);

/// How far this node has followed, and when the database last answered it.
#[derive(Clone, Debug)]
pub struct Followed {
    reached: watch::Receiver<u64>,
    heard: Heard,
}

/// When the outbox was last read, which is tried every second.
#[derive(Clone, Debug)]
struct Heard {
    at: Arc<AtomicU64>,
    clock: Clock,
}

/// Runs until dropped. `from` is the revision that the caches are known to be as new as.
pub fn follow(
    decider: Arc<Decider>,
    store: Store,
    rules: RuleKeeper,
    cache: Option<SharedCache>,
    from: u64,
    hint: Arc<Notify>,
    clock: Clock,
) -> (Followed, impl Future<Output = ()>) {
    let (told, reached) = watch::channel(from);
    let heard = Heard { at: Arc::new(AtomicU64::new(clock.now().0)), clock };
    let followed = Followed { reached, heard: heard.clone() };
    (followed, run(decider, store, rules, cache, from, told, hint, heard))
}

#[allow(clippy::too_many_arguments, reason = "called once, right above")]
async fn run(
    decider: Arc<Decider>,
    store: Store,
    rules: RuleKeeper,
    cache: Option<SharedCache>,
    from: u64,
    told: watch::Sender<u64>,
    hint: Arc<Notify>,
    heard: Heard,
) {
    let mut last = from;
    let mut changes = store.changes(last);
    loop {
        let news = if changes.is_behind() {
            // Not begun anew for every hint: many changes would keep it from ever ending.
            match timeout(READ, changes.read()).await {
                Ok(Ok(None)) => {
                    heard.note();
                    continue;
                }
                Ok(read) => Ok(read.transpose()),
                Err(late) => Err(late),
            }
        } else {
            // Another node may say over Redis that there is something, before or instead of the database.
            let news = async {
                tokio::select! {
                    entry = changes.next() => Some(entry),
                    () = hint.notified() => None,
                }
            };
            timeout(LOOK, news).await
        };
        match news {
            Ok(Some(Ok(entry))) => {
                heard.note();
                // First, or a load under way could take from there what is forgotten here.
                if let Some(cache) = &cache {
                    cache.follow(&entry);
                }
                match apply(&decider, &store, &rules, &entry).await {
                    Err(error) if error.is_transient() => {
                        // Not followed yet: it comes again.
                        pause().await;
                        changes = store.changes(last);
                        continue;
                    }
                    // Whatever it is, it must not keep this node from hearing of revoked keys.
                    Err(error) => tracing::error!("a change cannot be followed: {}", chain(&error)),
                    Ok(()) => {}
                }
                last = entry.revision;
                told.send_replace(last);
            }
            // Nothing was heard, or the database is away: look for ourselves, from where we are.
            Ok(Some(Err(_))) => {
                pause().await;
                changes = store.changes(last);
            }
            Ok(None) | Err(_) => changes.look(),
        }
    }
}

async fn apply(
    decider: &Decider,
    store: &Store,
    rules: &RuleKeeper,
    entry: &OutboxEntry,
) -> Result<(), StoreError> {
    match &entry.changed {
        Changed::Key { hash, .. } => decider.forget_key(hash.hash),
        Changed::KeysOfTenant | Changed::Project { .. } => decider.forget_keys_of(&entry.tenant_id),
        Changed::RootKey { hash, .. } => decider.forget_root_key(*hash),
        Changed::Tenant => decider.forget_tenant(&entry.tenant_id),
        Changed::Namespace { id, name } => decider.forget_namespace(&entry.tenant_id, &[id, name]),
        Changed::Identity { external_id, .. } => {
            decider.forget_identity(&entry.tenant_id, external_id);
        }
        Changed::Modes => take_modes(decider, store).await?,
        // Loaded behind, so that a large set does not keep this node from hearing of revoked keys.
        Changed::Rules => rules.look(&entry.tenant_id),
    }
    Ok(())
}

/// The modes as they are by now, whichever change made them so.
async fn take_modes(decider: &Decider, store: &Store) -> Result<(), StoreError> {
    let Some(fleet) = decider.fleet() else { return Ok(()) };
    let before = fleet.modes.of_fleet();
    let stored = store.modes().await?;
    let mode = stored.fleet.unwrap_or(before);
    fleet.modes.change(mode, stored.tenants, fleet.now());
    if mode != before {
        tracing::info!("limits are counted in mode {}, in {} before", mode.word(), before.word());
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "a database that is away comes back by itself")]
async fn pause() {
    tokio::time::sleep(LOOK / 4).await;
}

// === impl Followed ===

impl Followed {
    /// The newest change that this node has followed.
    pub fn reached(&self) -> u64 {
        *self.reached.borrow()
    }

    /// How long the database has not answered; about a second while all is well.
    pub fn silence_ms(&self, now: Millis) -> u64 {
        now.since(Millis(self.heard.at.load(Ordering::Relaxed)))
    }

    /// Waits until this node has forgotten what the change of `revision` made stale: whoever made it
    /// sees it from then on. Bounded, because the change itself is done.
    pub async fn reach(&self, revision: u64) {
        let mut followed = self.reached.clone();
        let _ = timeout(LOOK, followed.wait_for(|reached| *reached >= revision)).await;
    }
}

// === impl Heard ===

impl Heard {
    fn note(&self) {
        self.at.store(self.clock.now().0, Ordering::Relaxed);
    }
}
