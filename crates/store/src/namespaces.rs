//! Namespaces as the admin sees them: found by name or id within one tenant, and deleted for good.
//! A deleted one keeps its row, so that its name answers "gone" and is never handed out again.

use sqlx::postgres::PgExecutor;
use sqlx::sqlite::SqliteExecutor;
use tollkeeper_core::Millis;

use crate::bind::binds;
use crate::outbox::Changed;
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
        tenant_id: &str,
        namespace: &str,
        now: Millis,
    ) -> Result<NamespaceRef, StoreError> {
        const DELETE: &str =
            "UPDATE namespaces SET deleted_at = $1 WHERE tenant_id = $2 AND id = $3";
        let mut change = self.change(now).await?;
        let found = live(change.sql(), tenant_id, namespace).await?;
        change.sql().run(DELETE, binds![now, tenant_id, &found.id]).await?;
        change.announce(tenant_id, found.changed());
        change
            .audit_of(tenant_id, None, "ratelimit.deleteNamespace", &found.id, None, None)
            .await?;
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
    from: Each<impl SqliteExecutor<'c>, impl PgExecutor<'c>>,
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
