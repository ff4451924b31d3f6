//! The second level under the caches of keys and projects: what one node read from the database, others find in Redis.
//! It only ever saves a query. Without Redis, or with a doubt, the database is asked; nothing waits for what is kept.
//!
//! No entry is used that is older than a change which this node has followed: each says at which revision it was read,
//! and [`Floors`] say from which revision on a record may be used. That alone keeps a revoked key revoked. Notices in
//! Redis drop entries for nodes that are late, and stop a slow load from putting back what was dropped.

mod floors;
mod limit;
mod record;
mod seal;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};
use tollkeeper_core::{IdentityRecord, KeyRecord};
use tollkeeper_decide::{Directory, KeyHash, KeyHashes, Loading, NamespaceRecord, RootKey, Tenant};
use tollkeeper_redis::{ConfigCache, EntryKind, EntryName, Over};
use tollkeeper_store::{AsOf, Changed, OutboxEntry, Project, Store, StoreError};

use self::floors::{Floors, Touched};
use self::record::{CachedKey, CachedProject};
pub use self::seal::CacheKeys;
use self::seal::Sealed;
use crate::clock::Stamp;
use crate::keyring::Keyring;

/// What was found is kept so long.
const FOUND: Duration = Duration::from_mins(1);
/// What was not found, and that something changed.
const ABSENT: Duration = Duration::from_secs(10);
/// A load that took longer is not kept: the notice of a change since might be gone already.
const LOAD_NS_MAX: u64 = 5_000_000_000;
/// Calls under way to all servers: a sixteenth of what one connection takes, so that no limit is kept waiting by records.
const CALLS_MAX: usize = 256;
/// What is longer is not kept, for the same reason. A record of some hundred limits and permissions fits.
const ENTRY_BYTES_MAX: usize = 16 * 1024;
/// Notices that wait for Redis. What does not fit is not sent: floors do without.
const NOTICES_MAX: usize = 4096;

/// A clone is a second handle.
#[derive(Clone, Debug)]
pub struct SharedCache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    entries: ConfigCache,
    keyring: Arc<Keyring>,
    /// Which database this is: another one's records are not ours, though its keys and secret may be the same.
    lineage: String,
    floors: Mutex<Floors>,
    calls: Arc<Semaphore>,
    notices: mpsc::Sender<(EntryName, u64)>,
    keys: Counters,
    projects: Counters,
}

/// How reads of one kind ended.
#[derive(Debug, Default)]
struct Counters {
    hit: AtomicU64,
    /// Known not to be there.
    absent: AtomicU64,
    /// Not kept, or too old.
    miss: AtomicU64,
    /// Redis did not answer.
    failed: AtomicU64,
}

// === impl SharedCache ===

impl SharedCache {
    /// `None` where the database is one node's own. `revision` is the one that caches are known to be as new as.
    pub async fn start(
        store: &Store,
        entries: ConfigCache,
        keyring: &Arc<Keyring>,
        revision: u64,
        runtime: &Handle,
    ) -> Option<Self> {
        let lineage = match store.lineage().await {
            Ok(lineage) => lineage?,
            Err(error) => {
                tracing::warn!(
                    "keys are not kept in Redis, because the database does not say which one it is: {error}"
                );
                return None;
            }
        };
        let (notices, waiting) = mpsc::channel(NOTICES_MAX);
        runtime.spawn(post(entries.clone(), waiting));
        Some(Self(Arc::new(Inner {
            store: store.clone(),
            entries,
            keyring: Arc::clone(keyring),
            lineage,
            floors: Mutex::new(Floors::new(revision)),
            calls: Arc::new(Semaphore::new(CALLS_MAX)),
            notices,
            keys: Counters::default(),
            projects: Counters::default(),
        })))
    }

    /// Something changed. To be called before this node forgets what it has near, or a load under way could bring
    /// the old back from here.
    pub fn follow(&self, entry: &OutboxEntry) {
        let inner = &*self.0;
        let tenant = || Touched::Tenant(entry.tenant_id.as_str().into());
        let touched = match &entry.changed {
            Changed::Key { hash, .. } => Touched::Key(hash.hash),
            Changed::KeysOfTenant | Changed::Tenant | Changed::Project { .. } => tenant(),
            Changed::RootKey { .. }
            | Changed::Namespace { .. }
            | Changed::Identity { .. }
            | Changed::Modes
            | Changed::Rules => return,
        };
        inner.floors().raise(touched, entry.revision);
        match &entry.changed {
            Changed::Key { hash, .. } => inner.notice(inner.key_name(hash.hash), entry.revision),
            Changed::Project { id, slug } => {
                for (kind, called) in [
                    (EntryKind::ProjectById, id),
                    (EntryKind::ProjectBySlug, slug),
                    (EntryKind::ProjectByTeamSlug, slug),
                ] {
                    inner
                        .notice(inner.project_name(kind, &entry.tenant_id, called), entry.revision);
                }
            }
            _ => {}
        }
    }

    /// A project of a tenant by id, slug, or `tenant/slug`.
    pub async fn project(
        &self,
        tenant: &Tenant,
        called: &str,
    ) -> Result<Option<Project>, StoreError> {
        let inner = &self.0;
        let name = match called.split_once('/') {
            Some((team, slug)) if *team == *tenant.slug => {
                inner.project_name(EntryKind::ProjectByTeamSlug, &tenant.id, slug)
            }
            // Of another tenant, or of none: not worth remembering.
            Some(_) => return inner.store.project(&tenant.id, called).await,
            None if called.starts_with("api_") => {
                inner.project_name(EntryKind::ProjectById, &tenant.id, called)
            }
            None => inner.project_name(EntryKind::ProjectBySlug, &tenant.id, called),
        };
        let floor = |inner: &Inner, _: &Option<Project>| inner.floors().of_tenant(&tenant.id);
        if let Some(known) = inner.recall(&name, &inner.projects, CachedProject::read, floor).await
        {
            return Ok(known);
        }
        let begun = Stamp::now();
        let AsOf { revision, value } = inner.store.project_as_of(&tenant.id, called).await?;
        if revision >= floor(inner, &value) {
            inner.keep(name, revision, value.as_ref().map(CachedProject::from).as_ref(), begun);
        }
        Ok(value)
    }

    /// How reads ended, by cache and status, as metrics show them.
    pub fn reads(&self) -> impl Iterator<Item = ([&'static str; 2], u64)> {
        let of = |cache, counters: &Counters| {
            counters.read().map(|(status, count)| ([cache, status], count))
        };
        let (keys, projects) =
            (of("key_shared", &self.0.keys), of("project_shared", &self.0.projects));
        keys.into_iter().chain(projects)
    }
}

impl Directory for SharedCache {
    fn root_key(&self, hash: KeyHash) -> Loading<Option<RootKey>> {
        self.0.store.root_key(hash)
    }

    fn key(&self, hashes: KeyHashes) -> Loading<Option<KeyRecord>> {
        // Changes name one hash, so only what was asked for by one can be dropped by them.
        if hashes.ours != hashes.imported {
            return self.0.store.key(hashes);
        }
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let name = inner.key_name(hashes.ours);
            let floor = |inner: &Inner, key: &Option<KeyRecord>| match key {
                Some(key) => inner.floors().of_key(hashes.ours, &key.tenant_id),
                None => inner.floors().of_absent_key(hashes.ours),
            };
            if let Some(known) = inner.recall(&name, &inner.keys, CachedKey::read, floor).await {
                return Ok(known);
            }
            let begun = Stamp::now();
            let AsOf { revision, value } = inner.store.key_as_of(hashes).await?;
            if revision >= floor(&inner, &value) {
                inner.keep(name, revision, value.as_ref().map(CachedKey::from).as_ref(), begun);
            }
            Ok(value)
        })
    }

    fn namespace(&self, tenant_id: &str, name_or_id: &str) -> Loading<Option<NamespaceRecord>> {
        self.0.store.namespace(tenant_id, name_or_id)
    }

    fn identity(&self, tenant_id: &str, external_id: &str) -> Loading<Option<IdentityRecord>> {
        Directory::identity(&self.0.store, tenant_id, external_id)
    }

    fn create_namespace(&self, tenant_id: &str, name: &str) -> Loading<()> {
        self.0.store.create_namespace(tenant_id, name)
    }
}

/// Sends notices, one after the other.
async fn post(entries: ConfigCache, mut waiting: mpsc::Receiver<(EntryName, u64)>) {
    while let Some((name, revision)) = waiting.recv().await {
        let notice = Sealed::notice(revision);
        // An entry that was read at that revision has the change in it, and stays.
        let _ = entries.keep(&name, notice.kept(), Over::Older, ABSENT).await;
    }
}

// === impl Inner ===

impl Inner {
    /// What is kept there, if it may be used: `Some(None)` is known not to be there.
    async fn recall<C: DeserializeOwned, T>(
        &self,
        name: &EntryName,
        counters: &Counters,
        read: impl FnOnce(C) -> Option<T>,
        floor: impl FnOnce(&Self, &Option<T>) -> u64,
    ) -> Option<Option<T>> {
        let kept = match self.calls.try_acquire() {
            Ok(_permit) => self.entries.recall(name).await.ok(),
            Err(_) => None,
        };
        let Some(kept) = kept else {
            counters.failed.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let known = kept.and_then(|kept| {
            let text = self.keyring.cache_keys().open(name, &kept)?;
            let cached: Option<C> = serde_json::from_slice(&text).ok()?;
            let known = match cached {
                Some(cached) => Some(read(cached)?),
                None => None,
            };
            (kept.revision >= floor(self, &known)).then_some(known)
        });
        let counter = match &known {
            Some(Some(_)) => &counters.hit,
            Some(None) => &counters.absent,
            None => &counters.miss,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        known
    }

    /// Behind whoever asked.
    fn keep<C: Serialize>(
        self: &Arc<Self>,
        name: EntryName,
        revision: u64,
        cached: Option<&C>,
        begun: Stamp,
    ) {
        let life = if cached.is_some() { FOUND } else { ABSENT };
        let text = serde_json::to_vec(&cached).ok().filter(|text| text.len() <= ENTRY_BYTES_MAX);
        let Some(text) = text else { return };
        let Ok(permit) = Arc::clone(&self.calls).try_acquire_owned() else { return };
        let inner = Arc::clone(self);
        tokio::spawn(async move {
            let _permit = permit;
            let Some(sealed) = inner.keyring.cache_keys().seal(&name, revision, &text) else {
                return;
            };
            if Stamp::now().nanos_since(begun) <= LOAD_NS_MAX {
                let _ = inner.entries.keep(&name, sealed.kept(), Over::OlderOrSame, life).await;
            }
        });
    }

    fn notice(&self, name: EntryName, revision: u64) {
        let _ = self.notices.try_send((name, revision));
    }

    fn key_name(&self, hash: KeyHash) -> EntryName {
        self.keyring.cache_keys().name(EntryKind::Key, &[self.lineage.as_bytes(), &hash.0])
    }

    fn project_name(&self, kind: EntryKind, tenant_id: &str, called: &str) -> EntryName {
        let parts = [self.lineage.as_bytes(), tenant_id.as_bytes(), called.as_bytes()];
        self.keyring.cache_keys().name(kind, &parts)
    }

    fn floors(&self) -> MutexGuard<'_, Floors> {
        self.floors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Counters ===

impl Counters {
    fn read(&self) -> [(&'static str, u64); 4] {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("hit", of(&self.hit)),
            ("absent", of(&self.absent)),
            ("miss", of(&self.miss)),
            ("failed", of(&self.failed)),
        ]
    }
}
