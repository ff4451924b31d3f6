//! Follows the changes of all nodes and forgets what they make stale. News come at once; behind them, every second,
//! a look into the outbox, so that a lost message costs a second and not a lifetime.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;
use tollkeeper_decide::Decider;
use tollkeeper_store::{Changed, OutboxEntry, Store};

/// How long no news are believed to mean that nothing changed.
const LOOK: Duration = Duration::from_secs(1);

/// How far this node has followed.
#[derive(Clone, Debug)]
pub struct Followed(watch::Receiver<u64>);

/// Runs until dropped. `from` is the revision that the caches are known to be as new as.
pub fn follow(
    decider: Arc<Decider>,
    store: Store,
    from: u64,
) -> (Followed, impl Future<Output = ()>) {
    let (told, followed) = watch::channel(from);
    (Followed(followed), run(decider, store, from, told))
}

async fn run(decider: Arc<Decider>, store: Store, from: u64, told: watch::Sender<u64>) {
    let mut last = from;
    let mut changes = store.changes(last);
    loop {
        match timeout(LOOK, changes.next()).await {
            Ok(Ok(entry)) => {
                apply(&decider, &entry);
                last = entry.revision;
                told.send_replace(last);
            }
            // Nothing was heard, or the database is away: look for ourselves, from where we are.
            Ok(Err(_)) => {
                pause().await;
                changes = store.changes(last);
            }
            Err(_) => changes = store.changes(last),
        }
    }
}

fn apply(decider: &Decider, entry: &OutboxEntry) {
    match &entry.changed {
        Changed::Key { hash, .. } => decider.forget_key(hash.hash),
        Changed::KeysOfTenant | Changed::Project { .. } => decider.forget_keys_of(&entry.tenant_id),
        Changed::RootKey { hash, .. } => decider.forget_root_key(*hash),
        Changed::Tenant => decider.forget_tenant(&entry.tenant_id),
        Changed::Namespace { id, name } => decider.forget_namespace(&entry.tenant_id, &[id, name]),
    }
}

#[allow(clippy::disallowed_methods, reason = "a database that is away comes back by itself")]
async fn pause() {
    tokio::time::sleep(LOOK / 4).await;
}

// === impl Followed ===

impl Followed {
    /// Waits until this node has forgotten what the change of `revision` made stale: whoever made it
    /// sees it from then on. Bounded, because the change itself is done.
    pub async fn reach(&self, revision: u64) {
        let mut followed = self.0.clone();
        let _ = timeout(LOOK, followed.wait_for(|reached| *reached >= revision)).await;
    }
}
