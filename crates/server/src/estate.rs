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
    /// Dead too, and what they had spent is not known for sure: all of it, then.
    lost: Mutex<Vec<BootId>>,
}

/// In a database that no other process can have open, whoever holds credits and is in no journal is dead, and what was left of
/// it is lost.
pub async fn write_off_strangers(estate: &Estate, own: BootId, store: &Store) {
    let known: Vec<_> = estate.unsettled_boots().into_iter().chain([own]).map(|b| b.0).collect();
    match store.void_leases_but(&known).await {
        Ok(0) => {}
        Ok(leases) => tracing::warn!(
            "{leases} leases of credits belong to processes of which no journal is left: they count as spent"
        ),
        Err(error) => tracing::warn!("lost leases of credits could not be written off: {error}"),
    }
}

/// Tries until everything is settled.
pub async fn settle_in_the_end(estate: Arc<Estate>, store: Store) {
    while !estate.is_settled() {
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
    /// then what they had leased counts as spent. One that may not be the last word says nothing of them at all.
    pub fn name(&self, recovered: &Recovered) {
        let mut dead = self.lock();
        if recovered.moved {
            // Whoever wrote the original may be alive and spend, and of a machine that fell the last words are missing.
            if !recovered.clean && !recovered.boots.is_empty() {
                tracing::warn!(
                    "the journal is a copy, or older than the last start of this machine: credits that were leased by \
                     then are not given back"
                );
            }
            dead.clear();
            return;
        }
        if !recovered.whole {
            tracing::warn!(
                "the journal has gaps: credits that were leased when they arose count as spent"
            );
            let named = dead.drain().map(|(boot, _)| boot).chain(recovered.boots.iter().copied());
            self.lost().extend(named);
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

    /// Of whom something is still to be given back.
    pub fn unsettled_boots(&self) -> Vec<BootId> {
        self.lock().keys().copied().collect()
    }

    /// Gives back what was leased and surely not spent, process by process, and writes the rest off; what fails stays for
    /// the next try.
    pub async fn settle(&self, store: &Store) {
        let lost = self.lost().clone();
        for boot in lost {
            match store.void_leases_of(boot.0).await {
                Ok(_) => self.lost().retain(|other| *other != boot),
                Err(error) => {
                    tracing::error!("credits of an ended process wait to be written off: {error}");
                }
            }
        }
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

    fn is_settled(&self) -> bool {
        self.lock().is_empty() && self.lost().is_empty()
    }

    fn lost(&self) -> MutexGuard<'_, Vec<BootId>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
mod tests {
    use super::*;

    const DEAD: BootId = BootId([7; 16]);

    /// Who has something to be given back, and whether anything is written off.
    fn left_after(recovered: Recovered) -> (Vec<BootId>, bool) {
        let estate = Estate::default();
        estate.add(CreditSpent { boot: DEAD, key_id: Arc::from("key"), total: 3 });
        estate.name(&Recovered { boots: vec![DEAD], ..recovered });
        (estate.unsettled_boots(), !estate.lost().is_empty())
    }

    #[test]
    fn credits_go_back_only_by_a_journal_that_is_the_last_word() {
        let whole = Recovered { whole: true, ..Recovered::default() };
        assert_eq!(left_after(whole), (vec![DEAD], false));
        // With a gap all that was leased is written off.
        assert_eq!(left_after(Recovered::default()), (vec![], true));
        // A copy, or a machine that fell: nothing is given back and nothing written off, for its writer may be alive.
        for whole in [true, false] {
            let moved = Recovered { whole, moved: true, ..Recovered::default() };
            assert_eq!(left_after(moved), (vec![], false));
        }
    }
}
