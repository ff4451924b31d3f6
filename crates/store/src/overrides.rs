//! Overrides as the admin writes and lists them. Which one applies to a request is not decided here:
//! the engine reads them with their namespace and matches them itself.

use std::sync::Arc;

use serde_json::{Value, json};
use tollkeeper_core::{Millis, Override, Quota, Width};

use crate::bind::{binds, signed};
use crate::change::By;
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
        by: By<'_>,
        namespace: &str,
        identifier: &str,
        quota: Quota,
        width: Width,
    ) -> Result<OverrideSet, StoreError> {
        const FIND: &str = "SELECT id, identifier, quota, duration_ms, created_at FROM overrides
            WHERE tenant_id = $1 AND namespace_id = $2 AND identifier = $3";
        const UPSERT: &str = "INSERT INTO overrides
                (id, tenant_id, namespace_id, identifier, quota, duration_ms, created_at, updated_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
            ON CONFLICT (namespace_id, identifier) DO UPDATE SET
                quota = excluded.quota, duration_ms = excluded.duration_ms,
                updated_at = excluded.updated_at
            RETURNING id, identifier, quota, duration_ms, created_at";
        let mut change = self.change(by.now).await?;
        let namespace = namespaces::lock(&mut change, by.tenant_id, namespace).await?;
        let binds = binds![by.tenant_id, &namespace.id, identifier];
        let old: Option<OverrideRow> = change.sql().optional(FIND, binds).await?;
        let id = ids::fresh(ids::OVERRIDE)?;
        let (quota, width) = (signed(quota.get()), signed(width.millis()));
        let binds = binds![&id, by.tenant_id, &namespace.id, identifier, quota, width, by.now];
        let new: OverrideRow = change.sql().one(UPSERT, binds).await?;
        change.announce(by.tenant_id, namespace.changed());
        let before = old.map(|old| old.audited(&namespace));
        let after = Some(new.audited(&namespace));
        change.audit(by, "ratelimit.setOverride", &new.id, before, after).await?;
        Ok(change.commit(OverrideSet { override_id: new.id, namespace }).await?.value)
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
        by: By<'_>,
        namespace: &str,
        identifier: &str,
    ) -> Result<NamespaceRef, StoreError> {
        const DELETE: &str = "DELETE FROM overrides
            WHERE tenant_id = $1 AND namespace_id = $2 AND identifier = $3
            RETURNING id, identifier, quota, duration_ms, created_at";
        let mut change = self.change(by.now).await?;
        let namespace = namespaces::lock(&mut change, by.tenant_id, namespace).await?;
        let binds = binds![by.tenant_id, &namespace.id, identifier];
        let old: Option<OverrideRow> = change.sql().optional(DELETE, binds).await?;
        let old = old.ok_or(StoreError::OverrideNotFound)?;
        change.announce(by.tenant_id, namespace.changed());
        let before = Some(old.audited(&namespace));
        change.audit(by, "ratelimit.deleteOverride", &old.id, before, None).await?;
        Ok(change.commit(namespace).await?.value)
    }
}

// === impl OverrideRow ===

impl OverrideRow {
    fn audited(&self, namespace: &NamespaceRef) -> Value {
        json!({
            "namespace": namespace.name, "identifier": self.identifier, "limit": self.quota,
            "duration": self.duration_ms,
        })
    }
}

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
