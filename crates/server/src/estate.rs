//! What dead processes of this data directory left behind: credits they had leased and, as the journal knows, how much
//! of them they had spent. The rest goes back to the keys, once, as soon as storage lets it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tollkeeper_account::{BootId, CreditSpent, Recovered};
use tollkeeper_decide::{Bank, OriginError};
use tollkeeper_store::Store;

/// Between two tries while storage is away. Nobody waits for it but the keys' balances.
const RETRY: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub struct Estate {
    /// What each dead process had spent, key by key.
    dead: Mutex<HashMap<BootId, HashMap<Arc<str>, u64>>>,
}

/// Tries until everything is settled.
pub async fn settle_in_the_end(estate: Arc<Estate>, store: Store) {
    while !estate.lock().is_empty() {
        pause().await;
        estate.settle(&store).await;
    }
}

// === impl Estate ===

impl Estate {
    pub fn add(&self, spent: CreditSpent) {
        let mut dead = self.lock();
        let known = dead.entry(spent.boot).or_default().entry(spent.key_id).or_insert(0);
        *known = spent.total.max(*known);
    }

    /// All whose files were found, also those that had spent nothing. A journal with a gap is sure of nothing:
    /// then what they had leased counts as spent.
    pub fn name(&self, recovered: &Recovered) {
        let mut dead = self.lock();
        if !recovered.whole {
            tracing::warn!(
                "the journal has gaps: credits that were leased when they arose count as spent"
            );
            dead.clear();
            return;
        }
        for boot in &recovered.boots {
            dead.entry(*boot).or_default();
        }
    }

    /// What the journal must go on keeping.
    pub fn unsettled(&self) -> Vec<CreditSpent> {
        let dead = self.lock();
        // A process that spent nothing is named by an empty key, so that it is not forgotten.
        let of = |(boot, spent): (&BootId, &HashMap<Arc<str>, u64>)| {
            let named = CreditSpent { boot: *boot, key_id: Arc::from(""), total: 0 };
            let each = spent.iter().map(|(key_id, total)| CreditSpent {
                boot: *boot,
                key_id: Arc::clone(key_id),
                total: *total,
            });
            each.chain([named]).collect::<Vec<_>>()
        };
        dead.iter().flat_map(of).collect()
    }

    /// Gives back what was leased and surely not spent, process by process; what fails stays for the next try.
    pub async fn settle(&self, store: &Store) {
        let dead: Vec<_> = self.lock().iter().map(|(boot, spent)| (*boot, spent.clone())).collect();
        for (boot, spent) in dead {
            match give_back(store, boot, &spent).await {
                Ok(()) => drop(self.lock().remove(&boot)),
                Err(error) => {
                    tracing::error!("credits of an ended process wait to be given back: {error}");
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<BootId, HashMap<Arc<str>, u64>>> {
        self.dead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn give_back(
    store: &Store,
    boot: BootId,
    spent: &HashMap<Arc<str>, u64>,
) -> Result<(), OriginError> {
    for key_id in store.leases_of(boot.0).await? {
        let total = spent.get(key_id.as_str()).copied().unwrap_or(0);
        store.give_back(&key_id, boot.0, total).await?;
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "storage that is away comes back by itself")]
async fn pause() {
    tokio::time::sleep(RETRY).await;
}
