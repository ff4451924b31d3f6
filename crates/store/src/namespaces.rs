//! Namespaces as the admin sees them: found by name or id within one tenant, and deleted for good.
//! A deleted one keeps its row, so that its name answers "gone" and is never handed out again.

use sqlx::SqliteExecutor;
use tollkeeper_core::Millis;

use crate::{Store, StoreError};

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
        let mut change = self.change().await?;
        let found = live(&mut *change, tenant_id, namespace).await?;
        sqlx::query(DELETE)
            .bind(now.0.cast_signed())
            .bind(tenant_id)
            .bind(&found.id)
            .execute(&mut *change)
            .await?;
        change.commit().await?;
        Ok(found)
    }
}

/// The namespace of this name or id, unless it was deleted. An id goes first: it was given out
/// by us, while anybody who may make namespaces may name one like somebody else's id.
pub(crate) async fn live(
    from: impl SqliteExecutor<'_>,
    tenant_id: &str,
    name_or_id: &str,
) -> Result<NamespaceRef, StoreError> {
    const FIND: &str = "SELECT id, name, deleted_at FROM namespaces
        WHERE tenant_id = $1 AND (id = $2 OR name = $2)
        ORDER BY CASE WHEN id = $2 THEN 0 ELSE 1 END LIMIT 1";
    let found: Option<(String, String, Option<i64>)> =
        sqlx::query_as(FIND).bind(tenant_id).bind(name_or_id).fetch_optional(from).await?;
    match found {
        Some((id, name, None)) => Ok(NamespaceRef { id, name }),
        Some(_) => Err(StoreError::NamespaceGone),
        None => Err(StoreError::NamespaceNotFound),
    }
}
