//! The records that decisions rest on, read through the caches: near if possible, else loaded once for all who ask.

use std::sync::Arc;
use std::time::Duration;

use tollkeeper_core::{KeyRecord, Millis};

use super::{CacheName, Decider};
use crate::budget::{Budget, Loads};
use crate::loaded_key::{LoadedIdentity, LoadedKey};
use crate::namespace::{Namespace, NamespaceKey, NamespaceRef};
use crate::offstage::offstage;
use crate::ports::{KeyHash, KeyHashes, OriginError, RootKey, Tenant};
use crate::swr::{Freshness, Near, Swr};

// === impl Decider ===

impl Decider {
    /// The root key with this hash, if there is one.
    pub async fn root_key(
        &self,
        hash: KeyHash,
        now: Millis,
        see: &mut (dyn FnMut(CacheName, Freshness) + Send),
    ) -> Result<Option<Arc<RootKey>>, OriginError> {
        let directory = Arc::clone(&self.directory);
        let load = move || {
            let loading = directory.root_key(hash);
            Box::pin(async move { Ok(loading.await?.map(Arc::new)) }) as _
        };
        let (found, freshness) = self
            .read(&self.root_keys, &hash, || hash, now, Some(&self.root_key_loads), load)
            .await?;
        see(CacheName::RootKey, freshness);
        Ok(found)
    }

    /// The key with this hash, of whichever tenant.
    pub(crate) async fn key(
        &self,
        hash: KeyHash,
        now: Millis,
        see: &mut (dyn FnMut(CacheName, Freshness) + Send),
    ) -> Result<Option<Arc<LoadedKey>>, OriginError> {
        let load = || {
            let loading = self.directory.key(KeyHashes { ours: hash, imported: hash });
            let (hasher, counts) = (self.hasher.clone(), Arc::clone(&self.counts));
            Box::pin(async move {
                Ok(loading.await?.map(|record| Arc::new(LoadedKey::new(&hasher, &counts, record))))
            }) as _
        };
        let (found, freshness) =
            self.read(&self.keys, &hash, || hash, now, Some(&self.key_loads), load).await?;
        see(CacheName::Key, freshness);
        Ok(found)
    }

    /// A namespace by name or id. `None` when it does not exist.
    pub async fn namespace(
        &self,
        tenant: &Tenant,
        called: &str,
        now: Millis,
        see: &mut (dyn FnMut(CacheName, Freshness) + Send),
    ) -> Result<Option<Arc<Namespace>>, OriginError> {
        let key = NamespaceRef { tenant_id: &tenant.id, called };
        let load = || {
            let loading = self.directory.namespace(&tenant.id, called);
            let (hasher, counts) = (self.hasher.clone(), Arc::clone(&self.counts));
            let tenant = tenant.clone();
            Box::pin(async move {
                let loaded = |record| Arc::new(Namespace::new(&hasher, &counts, &tenant, record));
                Ok(loading.await?.map(loaded))
            }) as _
        };
        let (found, freshness) = self
            .read(&self.namespaces, &key, || NamespaceKey::new(tenant, called), now, None, load)
            .await?;
        see(CacheName::Namespace, freshness);
        Ok(found)
    }

    /// An identity by the name that its tenant's users know it by. `None` where nobody stored one.
    pub(crate) async fn identity(
        &self,
        tenant: &Tenant,
        external_id: &str,
        now: Millis,
        see: &mut (dyn FnMut(CacheName, Freshness) + Send),
    ) -> Result<Option<Arc<LoadedIdentity>>, OriginError> {
        let key = NamespaceRef { tenant_id: &tenant.id, called: external_id };
        let load = || {
            let loading = self.directory.identity(&tenant.id, external_id);
            let (hasher, counts) = (self.hasher.clone(), Arc::clone(&self.counts));
            let tenant = tenant.clone();
            Box::pin(async move {
                let loaded =
                    |record| Arc::new(LoadedIdentity::new(&hasher, &counts, &tenant, record));
                Ok(loading.await?.map(loaded))
            }) as _
        };
        let owned = || NamespaceKey::new(tenant, external_id);
        // No budget: names come from the API's own side, and most of them may well be nobody that is stored.
        let (found, freshness) = self.read(&self.identities, &key, owned, now, None, load).await?;
        see(CacheName::Identity, freshness);
        Ok(found)
    }

    /// A namespace or its overrides changed: forget what is cached of it under its name and its id.
    pub fn forget_namespace(&self, tenant_id: &str, names: &[&str]) {
        for called in names {
            self.namespaces.forget(&NamespaceRef { tenant_id, called });
        }
    }

    pub fn forget_root_key(&self, hash: KeyHash) {
        self.root_keys.forget(&hash);
    }

    /// A key changed in a way that can change its verdict.
    pub fn forget_key(&self, hash: KeyHash) {
        self.keys.forget(&hash);
    }

    /// An identity changed, or came to be; its keys are told apart.
    pub fn forget_identity(&self, tenant_id: &str, external_id: &str) {
        self.identities.forget(&NamespaceRef { tenant_id, called: external_id });
    }

    /// All keys of a tenant changed, or more of them than are worth naming.
    pub fn forget_keys_of(&self, tenant_id: &str) {
        self.keys.forget_where(|key| *key.record.tenant_id == *tenant_id);
        self.identities.forget_where(|identity| *identity.tenant_id == *tenant_id);
    }

    /// A tenant changed: its keys, root keys and all.
    pub fn forget_tenant(&self, tenant_id: &str) {
        self.forget_keys_of(tenant_id);
        self.root_keys.forget_where(|root_key| *root_key.tenant.id == *tenant_id);
    }

    /// Brings a key near before anybody asks for it.
    pub fn prewarm_key(&self, hash: KeyHash, record: KeyRecord, mark: u64, now: Millis) {
        self.keys.prewarm(
            &hash,
            Arc::new(LoadedKey::new(&self.hasher, &self.counts, record)),
            mark,
            now,
        );
    }

    /// To be asked before keys are read that are brought near: what changes after it makes them void.
    pub fn prewarm_mark(&self) -> u64 {
        self.keys.mark()
    }

    /// Keys held in memory.
    pub fn keys_cached(&self) -> usize {
        self.keys.len()
    }

    /// How often storage was asked for a key.
    pub fn key_loads(&self) -> Loads {
        self.key_loads.loads()
    }

    pub fn root_key_loads(&self) -> Loads {
        self.root_key_loads.loads()
    }

    /// A cache read: near if possible, else one shared load; a stale entry is renewed behind the reader.
    async fn read<K, V, Q>(
        &self,
        cache: &Arc<Swr<K, V>>,
        key: &Q,
        owned: impl FnOnce() -> K,
        now: Millis,
        budget: Option<&Budget>,
        load: impl FnOnce() -> crate::Loading<Option<V>>,
    ) -> Result<(Option<V>, Freshness), OriginError>
    where
        K: std::hash::Hash + Eq + Clone + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static,
        Q: std::hash::Hash + quick_cache::Equivalent<K>,
    {
        match cache.near(key, now) {
            Near::Known(known) => Ok((known, Freshness::Fresh)),
            Near::Due(value) => {
                self.renew(Arc::clone(cache), owned(), now, budget, load);
                Ok((Some(value), Freshness::Fresh))
            }
            Near::Stale { value, renew } => {
                if renew {
                    self.renew(Arc::clone(cache), owned(), now, budget, load);
                }
                Ok((Some(value), Freshness::Stale))
            }
            Near::Unknown => {
                let loading = || {
                    let loading = match budget {
                        Some(budget) => budget.charge(now, load),
                        None => load(),
                    };
                    Box::pin(in_time(offstage(&self.backstage, loading))) as _
                };
                Ok((Box::pin(cache.fetch(owned(), now, loading)).await?, Freshness::Miss))
            }
        }
    }

    /// Loads a stale record anew behind its reader, if there is room for one more.
    fn renew<K, V>(
        &self,
        cache: Arc<Swr<K, V>>,
        key: K,
        now: Millis,
        budget: Option<&Budget>,
        load: impl FnOnce() -> crate::Loading<Option<V>>,
    ) where
        K: std::hash::Hash + Eq + Clone + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static,
    {
        let Ok(room) = Arc::clone(&self.renewals).try_acquire_owned() else {
            return cache.postpone(&key);
        };
        budget.inspect(|budget| budget.note());
        let load = load();
        self.backstage.spawn(async move {
            cache.renew(key, now, load).await;
            drop(room);
        });
    }
}

/// A request waits this long for a record; then it is refused. The load itself goes on for whoever comes next.
const LOAD_DEADLINE: Duration = Duration::from_secs(1);

async fn in_time<T>(
    loading: impl Future<Output = Result<T, OriginError>>,
) -> Result<T, OriginError> {
    let late = |_| OriginError::new("it took too long");
    tokio::time::timeout(LOAD_DEADLINE, loading).await.map_err(late)?
}
