//! Root keys and namespaces as the engine asks for them, and the namespaces it makes on the way.
//! Reads go to the readers, so a long write never holds up a key or a namespace.

use std::future::Future;
use std::sync::Arc;

use tollkeeper_core::{IdentityRecord, KeyRecord, Override, Permissions};
use tollkeeper_decide::{
    Directory, Due, KeyHash, KeyHashes, Loading, NamespaceRecord, OriginError, RootKey, Tenant,
};

use crate::bind::{binds, moment, unsigned};
use crate::db::Purpose;
use crate::overrides::OverrideRow;
use crate::postgres::MISS_CONNECTIONS;
use crate::{AsOf, Fault, Store, StoreError, ids};

/// A root key with the tenant it acts for: one answer, so that the two always fit together.
#[allow(clippy::struct_excessive_bools, reason = "columns, not states")]
#[derive(sqlx::FromRow)]
struct RootKeyRow {
    id: String,
    permissions: String,
    enabled: bool,
    expires: Option<i64>,
    operator: bool,
    tenant_id: String,
    tenant_slug: String,
    tenant_enabled: bool,
    has_imports: bool,
    requests_per_minute: Option<i64>,
}

/// A namespace next to one of its overrides, or next to none.
#[derive(sqlx::FromRow)]
struct NamespaceRow {
    namespace_id: String,
    namespace_name: String,
    deleted_at: Option<i64>,
    id: Option<String>,
    identifier: Option<String>,
    quota: Option<i64>,
    duration_ms: Option<i64>,
    created_at: Option<i64>,
}

// === impl Directory ===

impl Directory for Store {
    fn root_key(&self, hash: KeyHash) -> Loading<Option<RootKey>> {
        let store = self.clone();
        loading(async move { to_a_living_one(|| store.find_root_key(hash)).await })
    }

    fn key(&self, hashes: KeyHashes) -> Loading<Option<KeyRecord>> {
        let found = self.key_as_of(hashes);
        Box::pin(async move { Ok(found.await?.value) })
    }

    fn namespace(&self, tenant_id: &str, name_or_id: &str) -> Loading<Option<NamespaceRecord>> {
        let (store, tenant_id, name_or_id) =
            (self.clone(), tenant_id.to_owned(), name_or_id.to_owned());
        loading(
            async move { to_a_living_one(|| store.find_namespace(&tenant_id, &name_or_id)).await },
        )
    }

    fn identity(&self, tenant_id: &str, external_id: &str) -> Loading<Option<IdentityRecord>> {
        let (store, tenant_id, external_id) =
            (self.clone(), tenant_id.to_owned(), external_id.to_owned());
        loading(
            async move { to_a_living_one(|| store.find_identity(&tenant_id, &external_id)).await },
        )
    }

    fn create_namespace(&self, tenant_id: &str, name: &str) -> Loading<()> {
        let (store, tenant_id, name) = (self.clone(), tenant_id.to_owned(), name.to_owned());
        loading(async move {
            let made = store.make_namespace(&tenant_id, &name).await;
            made.inspect_err(|error| {
                store.note_failure(error);
            })
        })
    }
}

/// An answer for the engine. What the database said goes with the error, for the log of whoever meets it: a line from here
/// for every request would fill the disk while the database is away.
pub(crate) fn loading<T>(
    work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Loading<T> {
    Box::pin(async move {
        work.await.map_err(|error| {
            tracing::debug!(%error, "the store did not answer the engine");
            OriginError::from(error)
        })
    })
}

/// Connections may have died unnoticed since they were last used, all of them if the server was started anew; each is
/// found out by asking it, and the next one is asked before that is told.
pub(crate) async fn to_a_living_one<T, A>(ask: impl Fn() -> A) -> Result<T, StoreError>
where
    A: Future<Output = Result<T, StoreError>>,
{
    for _ in 0..MISS_CONNECTIONS {
        match ask().await {
            Err(StoreError::Fault(Fault::Away(_))) => {}
            answered => return answered,
        }
    }
    ask().await
}

// === impl Store ===

impl Store {
    /// The key with either hash, and how new that is.
    pub fn key_as_of(&self, hashes: KeyHashes) -> Loading<AsOf<Option<KeyRecord>>> {
        let store = self.clone();
        loading(async move { to_a_living_one(|| store.find_key(hashes)).await })
    }

    async fn find_root_key(&self, hash: KeyHash) -> Result<Option<RootKey>, StoreError> {
        const FIND: &str = "SELECT k.id, k.permissions, k.enabled, k.expires, k.operator,
                t.id AS tenant_id, t.slug AS tenant_slug, t.enabled AS tenant_enabled, t.has_imports,
                t.requests_per_minute
            FROM root_keys k JOIN tenants t ON t.id = k.tenant_id WHERE k.hash = $1";
        let found: Option<RootKeyRow> =
            self.db.read(Purpose::Miss).optional(FIND, binds![&hash]).await?;
        Ok(found.map(RootKey::try_from).transpose()?)
    }

    /// One statement, so that the overrides are those of the same moment as the namespace.
    async fn find_namespace(
        &self,
        tenant_id: &str,
        name_or_id: &str,
    ) -> Result<Option<NamespaceRecord>, StoreError> {
        const FIND: &str = "WITH found AS (
                SELECT id, name, deleted_at FROM namespaces
                WHERE tenant_id = $1 AND (id = $2 OR name = $2)
                ORDER BY CASE WHEN id = $2 THEN 0 ELSE 1 END LIMIT 1)
            SELECT f.id AS namespace_id, f.name AS namespace_name, f.deleted_at,
                o.id, o.identifier, o.quota, o.duration_ms, o.created_at
            FROM found f LEFT JOIN overrides o
                ON o.tenant_id = $1 AND o.namespace_id = f.id AND f.deleted_at IS NULL";
        let rows: Vec<NamespaceRow> =
            self.db.read(Purpose::Miss).all(FIND, binds![tenant_id, name_or_id]).await?;
        Ok(gather(rows)?)
    }

    /// A name that is taken stays with whoever has it, also when that namespace was deleted.
    async fn make_namespace(&self, tenant_id: &str, name: &str) -> Result<(), StoreError> {
        const MAKE: &str = "INSERT INTO namespaces (id, tenant_id, name) VALUES ($1, $2, $3)
            ON CONFLICT (tenant_id, name) DO NOTHING";
        let id = ids::fresh(ids::NAMESPACE)?;
        self.db.write(Purpose::Miss).run(MAKE, binds![&id, tenant_id, name]).await?;
        Ok(())
    }
}

fn gather(rows: Vec<NamespaceRow>) -> Result<Option<NamespaceRecord>, Fault> {
    let Some(first) = rows.first() else { return Ok(None) };
    let (id, name) =
        (Arc::from(first.namespace_id.as_str()), Arc::from(first.namespace_name.as_str()));
    let deleted = first.deleted_at.is_some();
    let overrides = rows.into_iter().filter_map(NamespaceRow::into_override);
    let overrides = overrides.map(Override::try_from).collect::<Result<_, _>>()?;
    Ok(Some(NamespaceRecord { id, name, deleted, overrides }))
}

// === impl NamespaceRow ===

impl NamespaceRow {
    fn into_override(self) -> Option<OverrideRow> {
        Some(OverrideRow {
            id: self.id?,
            identifier: self.identifier?,
            quota: self.quota?,
            duration_ms: self.duration_ms?,
            created_at: self.created_at?,
        })
    }
}

// === impl RootKeyRow ===

impl TryFrom<RootKeyRow> for RootKey {
    type Error = Fault;

    fn try_from(row: RootKeyRow) -> Result<Self, Fault> {
        let grants: Vec<String> =
            serde_json::from_str(&row.permissions).map_err(|_| Fault::Unreadable("root key"))?;
        let permissions: Permissions = grants.iter().map(String::as_str).collect();
        let (id, slug) = (Arc::from(row.tenant_id), Arc::from(row.tenant_slug));
        let (enabled, has_imports) = (row.tenant_enabled, row.has_imports);
        let requests_per_minute = row.requests_per_minute.map(unsigned);
        Ok(Self {
            id: Arc::from(row.id),
            tenant: Tenant { id, slug, enabled, has_imports, requests_per_minute },
            permissions,
            enabled: row.enabled,
            expires: moment(row.expires),
            operator: row.operator,
            noted: Due::default(),
        })
    }
}
