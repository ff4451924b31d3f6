//! Namespaces as the admin sees them: found by name or id within one tenant, and deleted for good.
//! A deleted one keeps its row, so that its name answers "gone" and is never handed out again.

use serde_json::json;
use sqlx::postgres::PgExecutor;
use sqlx::sqlite::SqliteExecutor;

use crate::bind::binds;
use crate::change::{By, Change};
use crate::outbox::Changed;
use crate::patience::Patient;
use crate::{Each, Store, StoreError};

/// Both names of a namespace that was changed: what caches have to forget it under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceRef {
    pub id: String,
    pub name: String,
}

// === impl Store ===

impl Store {
    /// Later use of it, by name or by id, is refused as gone.
    pub async fn delete_namespace(
        &self,
        by: By<'_>,
        namespace: &str,
    ) -> Result<NamespaceRef, StoreError> {
        const DELETE: &str =
            "UPDATE namespaces SET deleted_at = $1 WHERE tenant_id = $2 AND id = $3";
        const OVERRIDES: &str = "SELECT COUNT(*) FROM overrides WHERE namespace_id = $1";
        let mut change = self.change(by.now).await?;
        let found = lock(&mut change, by.tenant_id, namespace).await?;
        let (overrides,): (i64,) = change.sql().one(OVERRIDES, binds![&found.id]).await?;
        change.sql().run(DELETE, binds![by.now, by.tenant_id, &found.id]).await?;
        change.announce(by.tenant_id, found.changed());
        // Not each of its overrides: there may be ten thousand, and they stay where they are.
        let shown = |deleted_at: Option<u64>| {
            Some(json!({
                "namespace": found.name, "overrides": overrides, "deletedAt": deleted_at
            }))
        };
        let (before, after) = (shown(None), shown(Some(by.now.0)));
        change.audit(by, "ratelimit.deleteNamespace", &found.id, before, after).await?;
        Ok(change.commit(found).await?.value)
    }
}

// === impl NamespaceRef ===

impl NamespaceRef {
    pub(crate) fn changed(&self) -> Changed {
        Changed::Namespace { id: self.id.clone(), name: self.name.clone() }
    }
}

/// The namespace of this name or id, unless it was deleted. An id goes first: it was given out
/// by us, while anybody who may make namespaces may name one like somebody else's id.
pub(crate) async fn live<'c>(
    from: Each<impl SqliteExecutor<'c>, impl PgExecutor<'c> + Patient>,
    tenant_id: &str,
    name_or_id: &str,
) -> Result<NamespaceRef, StoreError> {
    const FIND: &str = "SELECT id, name, deleted_at FROM namespaces
        WHERE tenant_id = $1 AND (id = $2 OR name = $2)
        ORDER BY CASE WHEN id = $2 THEN 0 ELSE 1 END LIMIT 1";
    let found: Option<(String, String, Option<i64>)> =
        from.optional(FIND, binds![tenant_id, name_or_id]).await?;
    match found {
        Some((id, name, None)) => Ok(NamespaceRef { id, name }),
        Some(_) => Err(StoreError::NamespaceGone),
        None => Err(StoreError::NamespaceNotFound),
    }
}

/// The same, and nobody else changes it or its overrides until this change ends: what is written down as the state
/// before is what the change met.
pub(crate) async fn lock(
    change: &mut Change<'_>,
    tenant_id: &str,
    name_or_id: &str,
) -> Result<NamespaceRef, StoreError> {
    const LOCK: &str = "UPDATE namespaces SET name = name WHERE id = $1 AND deleted_at IS NULL";
    let found = live(change.sql(), tenant_id, name_or_id).await?;
    match change.sql().run(LOCK, binds![&found.id]).await? {
        0 => Err(StoreError::NamespaceGone),
        _ => Ok(found),
    }
}
