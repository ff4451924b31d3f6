//! Overrides as the admin writes and lists them. Which one applies to a request is not decided here:
//! the engine reads them with their namespace and matches them itself.

use std::sync::Arc;

use tollkeeper_core::{Millis, Override, Quota, Width};

use crate::bind::{binds, signed};
use crate::db::Purpose;
use crate::{Fault, NamespaceRef, Page, Store, StoreError, ids, namespaces};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideSet {
    pub override_id: String,
    pub namespace: NamespaceRef,
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
        let mut change = self.change(now).await?;
        let namespace = namespaces::live(change.sql(), tenant_id, namespace).await?;
        let id = ids::fresh(ids::OVERRIDE)?;
        let (quota, width) = (signed(quota.get()), signed(width.millis()));
        let (override_id,): (String,) = change
            .sql()
            .one(UPSERT, binds![&id, tenant_id, &namespace.id, identifier, quota, width, now])
            .await?;
        change.announce(tenant_id, namespace.changed());
        let after = serde_json::json!({
            "namespace": namespace.name, "identifier": identifier, "limit": quota, "duration": width
        });
        change
            .audit_of(tenant_id, None, "ratelimit.setOverride", &override_id, None, Some(after))
            .await?;
        Ok(change.commit(OverrideSet { override_id, namespace }).await?.value)
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
        let from = self.db.read(Purpose::Admin);
        let namespace = namespaces::live(from, tenant_id, namespace).await?;
        let rows: Vec<OverrideRow> = from
            .all(
                LIST,
                binds![tenant_id, &namespace.id, cursor.unwrap_or_default(), i64::from(limit) + 1],
            )
            .await?;
        let page = Page::cut(rows, limit, |row| row.id.clone());
        Ok(page.try_map(Override::try_from)?)
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
        let mut change = self.change_now().await?;
        let namespace = namespaces::live(change.sql(), tenant_id, namespace).await?;
        let deleted =
            change.sql().run(DELETE, binds![tenant_id, &namespace.id, identifier]).await?;
        if deleted == 0 {
            return Err(StoreError::OverrideNotFound);
        }
        change.announce(tenant_id, namespace.changed());
        let before = serde_json::json!({ "namespace": namespace.name, "identifier": identifier });
        change
            .audit_of(
                tenant_id,
                None,
                "ratelimit.deleteOverride",
                &namespace.id,
                Some(before),
                None,
            )
            .await?;
        Ok(change.commit(namespace).await?.value)
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
