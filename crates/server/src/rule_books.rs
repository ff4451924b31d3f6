//! Keeps the engine's rules what the database says: all of them at start, a tenant's when its rules change, and whatever
//! was missed every half minute. A set that cannot be read never takes the place of one that could.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tollkeeper_core::RuleSet;
use tollkeeper_decide::{Decider, RuleBook};
use tollkeeper_store::{Store, StoreError};

use crate::aside::Aside;
use crate::rules::read_stored;
use crate::status::chain;

/// Behind the news, so that a lost message costs half a minute and not a lifetime.
const POLL: Duration = Duration::from_secs(30);
/// Between two tries while the database is away.
const RETRY: Duration = Duration::from_secs(1);
/// Whoever changed ten thousand rules waits so long for them; the change itself is done.
const PATIENCE: Duration = Duration::from_secs(5);

/// Between two looks whether the former rules are still in use, and how many: no request lives for a minute.
const LOOK: Duration = Duration::from_millis(20);
const LOOKS_MAX: usize = 3_000;

/// A clone is a second handle on the same books.
#[derive(Clone, Debug)]
pub struct RuleKeeper(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    decider: Arc<Decider>,
    store: Store,
    /// Tenants whose rules changed since they were loaded; at most as many as there are tenants.
    due: Mutex<BTreeSet<String>>,
    called: Notify,
    /// The version in force by tenant, also of a set that could not be read and will not be tried again.
    seen: Mutex<HashMap<String, u64>>,
    turned: watch::Sender<u64>,
    failures: AtomicU64,
    /// Where sets are compiled. Apart from changes, which may wait for the database for seconds.
    loading: Aside,
    changing: Aside,
}

// === impl RuleKeeper ===

impl RuleKeeper {
    pub fn new(decider: Arc<Decider>, store: Store) -> Self {
        Self(Arc::new(Inner {
            decider,
            store,
            due: Mutex::default(),
            called: Notify::new(),
            seen: Mutex::default(),
            turned: watch::channel(0).0,
            failures: AtomicU64::new(0),
            loading: Aside::new("rule-loads"),
            changing: Aside::new("rule-changes"),
        }))
    }

    /// Before the first request: a node without its rules would let everything through.
    pub async fn load_all(&self) -> Result<(), StoreError> {
        self.0.compare().await?;
        self.0.load_due().await
    }

    /// This tenant's rules are not what they were. Returns at once; loading goes on behind.
    pub fn look(&self, tenant_id: &str) {
        lock(&self.0.due).insert(tenant_id.to_owned());
        self.0.called.notify_one();
    }

    /// Waits until the rules of this version, or newer ones, are in force on this node.
    pub async fn reach(&self, tenant_id: &str, version: u64) {
        let mut turned = self.0.turned.subscribe();
        let there =
            |seen: &HashMap<String, u64>| seen.get(tenant_id).is_some_and(|at| *at >= version);
        let arrival = turned.wait_for(|_| version == 0 || there(&lock(&self.0.seen)));
        let _ = timeout(PATIENCE, arrival).await;
    }

    /// Where sets are checked and compared, so that ten thousand rules hold up nobody who asks for a verdict.
    pub fn changing(&self) -> &Aside {
        &self.0.changing
    }

    /// Sets that could not be read, and loads that failed.
    pub fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Relaxed)
    }

    /// Runs until dropped.
    pub async fn keep(self) {
        let mut polls = interval(POLL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failing = false;
        loop {
            tokio::select! {
                () = self.0.called.notified() => {}
                _ = polls.tick() => {
                    let compared = self.0.compare().await;
                    self.0.told("rules could not be compared with the database", compared);
                }
                () = pause(RETRY), if failing => {}
            }
            let loaded = self.0.load_due().await;
            failing = loaded.is_err();
            self.0.told("rules could not be loaded; the old ones stay in force", loaded);
        }
    }
}

// === impl Inner ===

impl Inner {
    /// Whose version is not the one in force is due; who is gone is forgotten.
    async fn compare(&self) -> Result<(), StoreError> {
        let stored: HashMap<String, u64> = self.store.rule_versions().await?.into_iter().collect();
        let mut seen = lock(&self.seen);
        seen.retain(|tenant_id, _| {
            let stays = stored.contains_key(tenant_id);
            if !stays {
                self.decider.rules().remove(tenant_id);
            }
            stays
        });
        let mut due = lock(&self.due);
        let other =
            stored.into_iter().filter(|(tenant, version)| seen.get(tenant) != Some(version));
        due.extend(other.map(|(tenant_id, _)| tenant_id));
        Ok(())
    }

    /// One tenant after the other. What fails stays due.
    async fn load_due(&self) -> Result<(), StoreError> {
        loop {
            let Some(tenant_id) = lock(&self.due).pop_first() else { return Ok(()) };
            if let Err(error) = self.load(&tenant_id).await {
                lock(&self.due).insert(tenant_id);
                return Err(error);
            }
        }
    }

    async fn load(&self, tenant_id: &str) -> Result<(), StoreError> {
        let Some(stored) = self.store.rules_of(tenant_id).await? else { return Ok(()) };
        let (tenant, version, text) = (stored.tenant, stored.version, stored.text);
        let decider = Arc::clone(&self.decider);
        let load = move || {
            let set = RuleSet::compile(read_stored(&text)?);
            Ok::<_, String>(decider.rules().swap(&tenant, set, version))
        };
        match self.loading.run(load).await.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(Some(former)) => retire(former, self.loading.clone()),
            Ok(None) => {}
            Err(error) => self.failed(tenant_id, version, &error),
        }
        lock(&self.seen).insert(tenant_id.to_owned(), version);
        self.turned.send_modify(|turns| *turns += 1);
        Ok(())
    }

    fn failed(&self, tenant_id: &str, version: u64, error: &str) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        tracing::error!(
            tenant_id,
            version,
            "a set of rules cannot be used, and the one before stays in force: {error}"
        );
    }

    fn told(&self, what: &str, outcome: Result<(), StoreError>) {
        if let Err(error) = outcome {
            self.failures.fetch_add(1, Ordering::Relaxed);
            tracing::error!("{what}: {}", chain(&error));
        }
    }
}

/// Requests that began under the former rules still look at them. Whoever lets go last has to free them, and that must be
/// none of the threads that answer.
fn retire(former: Arc<RuleBook>, aside: Aside) {
    tokio::spawn(async move {
        for _ in 0..LOOKS_MAX {
            if Arc::strong_count(&former) == 1 {
                break;
            }
            pause(LOOK).await;
        }
        // Where there is no thread to be had, this one frees it.
        let _ = aside.run(move || drop(former)).await;
    });
}

#[allow(
    clippy::disallowed_methods,
    reason = "what is waited for comes by itself: a database, requests that end"
)]
async fn pause(how_long: Duration) {
    tokio::time::sleep(how_long).await;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
