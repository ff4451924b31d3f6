//! Overrides as the admin writes and lists them. Which one applies to a request is not decided here:
//! the engine reads them with their namespace and matches them itself.

use std::sync::Arc;

use tollkeeper_core::{Millis, Override, Quota, Width};

use crate::{Fault, NamespaceRef, Store, StoreError, ids, namespaces};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideSet {
    pub override_id: String,
    pub namespace: NamespaceRef,
}

/// A part of a list, and where the next part starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// The id of the first row of the next page; `None` on the last.
    pub next_cursor: Option<String>,
}

/// An override as it is stored; its numbers are checked when it is turned into one.
#[derive(sqlx::FromRow)]
pub(crate) struct OverrideRow {
    pub(crate) id: String,
    pub(crate) identifier: String,
    pub(crate) quota: i64,
    pub(crate) duration_ms: i64,
    pub(crate) created_at: i64,
}

// === impl Store ===

impl Store {
    /// One override per identifier text: setting it again changes it and keeps its id and age.
    pub async fn set_override(
        &self,
        tenant_id: &str,
        namespace: &str,
        identifier: &str,
        quota: Quota,
        width: Width,
        now: Millis,
    ) -> Result<OverrideSet, StoreError> {
        const UPSERT: &str = "INSERT INTO overrides
                (id, tenant_id, namespace_id, identifier, quota, duration_ms, created_at, updated_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
            ON CONFLICT (namespace_id, identifier) DO UPDATE SET
                quota = excluded.quota, duration_ms = excluded.duration_ms,
                updated_at = excluded.updated_at
            RETURNING id";
        let mut change = self.change().await?;
        let namespace = namespaces::live(&mut *change, tenant_id, namespace).await?;
        let override_id = sqlx::query_scalar(UPSERT)
            .bind(ids::fresh(ids::OVERRIDE)?)
            .bind(tenant_id)
            .bind(&namespace.id)
            .bind(identifier)
            .bind(quota.get().cast_signed())
            .bind(width.millis().cast_signed())
            .bind(now.0.cast_signed())
            .fetch_one(&mut *change)
            .await?;
        change.commit().await?;
        Ok(OverrideSet { override_id, namespace })
    }

    /// At most `limit` overrides in the order of their ids, from `cursor` on. One row more than
    /// asked for is read: it says whether there is a next page, and where it starts.
    pub async fn list_overrides(
        &self,
        tenant_id: &str,
        namespace: &str,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page<Override>, StoreError> {
        const LIST: &str = "SELECT id, identifier, quota, duration_ms, created_at FROM overrides
            WHERE tenant_id = $1 AND namespace_id = $2 AND id >= $3 ORDER BY id LIMIT $4";
        let namespace = namespaces::live(&self.read, tenant_id, namespace).await?;
        let mut rows: Vec<OverrideRow> = sqlx::query_as(LIST)
            .bind(tenant_id)
            .bind(&namespace.id)
            .bind(cursor.unwrap_or_default())
            .bind(i64::from(limit) + 1)
            .fetch_all(&self.read)
            .await?;
        let full = usize::try_from(limit).is_ok_and(|limit| rows.len() > limit);
        let next_cursor = if full { rows.pop().map(|next| next.id) } else { None };
        let rows = rows.into_iter().map(Override::try_from).collect::<Result<_, _>>()?;
        Ok(Page { rows, next_cursor })
    }

    /// By the exact text it was set with: a pattern deletes itself, not what it matches.
    pub async fn delete_override(
        &self,
        tenant_id: &str,
        namespace: &str,
        identifier: &str,
    ) -> Result<NamespaceRef, StoreError> {
        const DELETE: &str = "DELETE FROM overrides
            WHERE tenant_id = $1 AND namespace_id = $2 AND identifier = $3";
        let mut change = self.change().await?;
        let namespace = namespaces::live(&mut *change, tenant_id, namespace).await?;
        let deleted = sqlx::query(DELETE)
            .bind(tenant_id)
            .bind(&namespace.id)
            .bind(identifier)
            .execute(&mut *change)
            .await?;
        change.commit().await?;
        if deleted.rows_affected() == 0 { Err(StoreError::OverrideNotFound) } else { Ok(namespace) }
    }
}

// === impl OverrideRow ===

impl TryFrom<OverrideRow> for Override {
    type Error = Fault;

    fn try_from(row: OverrideRow) -> Result<Self, Fault> {
        let positive = |number: i64| u64::try_from(number).ok();
        let checked = || {
            let quota = positive(row.quota).and_then(Quota::new)?;
            let width = positive(row.duration_ms).and_then(Width::from_millis)?;
            Some((quota, width, Millis(positive(row.created_at)?)))
        };
        let (quota, width, created_at) = checked().ok_or(Fault::Unreadable("override"))?;
        Ok(Self { id: Arc::from(row.id), identifier: row.identifier, quota, width, created_at })
    }
}
