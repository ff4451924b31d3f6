//! Tenants as the operator manages them. Everything else in this crate belongs to one of them.

use serde_json::json;
use tollkeeper_core::Millis;

use crate::bind::{binds, signed, unsigned};
use crate::change::{By, Change, Written};
use crate::outbox::Changed;
use crate::root_keys::{NewRootKey, insert_root_key};
use crate::slug::{slug_of, with_tail};
use crate::{Page, Patch, Store, StoreError, Thing, ids};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantView {
    pub id: String,
    pub slug: String,
    pub name: String,
    pub enabled: bool,
    pub requests_per_minute: Option<u64>,
    pub created_at: Millis,
}

#[derive(Clone, Debug, Default)]
pub struct TenantPatch {
    pub enabled: Option<bool>,
    pub requests_per_minute: Patch<u64>,
}

#[derive(sqlx::FromRow)]
struct TenantRow {
    id: String,
    slug: String,
    name: String,
    enabled: bool,
    requests_per_minute: Option<i64>,
    created_at: i64,
}

// === impl Store ===

impl Store {
    /// A tenant and its first root key, whose id is the second of the two. Noted in the operator's own tenant.
    pub async fn create_tenant(
        &self,
        by: By<'_>,
        name: &str,
        root_key: NewRootKey,
    ) -> Result<Written<(TenantView, String)>, StoreError> {
        const MAKE: &str = "INSERT INTO tenants (id, slug, name, enabled, created_at)
            VALUES ($1, $2, $3, TRUE, $4)";
        let mut change = self.change(by.now).await?;
        let id = ids::fresh(ids::TENANT)?;
        let slug = free_slug(&mut change, name).await?;
        let made = change.sql().run(MAKE, binds![&id, &slug, name, by.now]).await;
        made.map_err(|error| error.taken(Thing::Tenant))?;
        change.begin_chain(&id).await?;
        let root_key_id = insert_root_key(&mut change, &id, &root_key, by.now).await?;
        let after = json!({ "slug": slug, "name": name, "rootKeyId": root_key_id });
        change.audit(by, "tenants.create", &id, None, Some(after)).await?;
        let tenant = TenantView {
            id,
            slug,
            name: name.to_owned(),
            enabled: true,
            requests_per_minute: None,
            created_at: by.now,
        };
        change.commit((tenant, root_key_id)).await
    }

    pub async fn list_tenants(
        &self,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page<TenantView>, StoreError> {
        const LIST: &str = "SELECT id, slug, name, enabled, requests_per_minute, created_at
            FROM tenants WHERE id >= $1 ORDER BY id LIMIT $2";
        let binds = binds![cursor.unwrap_or_default(), i64::from(limit) + 1];
        let rows: Vec<TenantRow> = self.lists().await.all(LIST, binds).await?;
        let rows = rows.into_iter().map(TenantView::from).collect();
        Ok(Page::cut(rows, limit, |tenant: &TenantView| tenant.id.clone()))
    }

    pub async fn update_tenant(
        &self,
        by: By<'_>,
        tenant_id: &str,
        patch: TenantPatch,
    ) -> Result<Written<TenantView>, StoreError> {
        const LOCK: &str = "UPDATE tenants SET name = name WHERE id = $1
            RETURNING id, slug, name, enabled, requests_per_minute, created_at";
        const SET: &str = "UPDATE tenants SET enabled = $2, requests_per_minute = $3 WHERE id = $1";
        let mut change = self.change(by.now).await?;
        let row: Option<TenantRow> = change.sql().optional(LOCK, binds![tenant_id]).await?;
        let before = TenantView::from(row.ok_or_else(|| StoreError::no(Thing::Tenant, tenant_id))?);
        let mut after = before.clone();
        after.enabled = patch.enabled.unwrap_or(before.enabled);
        after.requests_per_minute = patch.requests_per_minute.over(before.requests_per_minute);
        let per_minute = after.requests_per_minute.map(signed);
        change.sql().run(SET, binds![tenant_id, after.enabled, per_minute]).await?;
        change.announce(tenant_id, Changed::Tenant);
        let (old, new) = (Some(before.audited()), Some(after.audited()));
        change.audit(by, "tenants.update", tenant_id, old, new).await?;
        change.commit(after).await
    }
}

async fn free_slug(change: &mut Change<'_>, name: &str) -> Result<String, StoreError> {
    const TAKEN: &str = "SELECT id FROM tenants WHERE slug = $1";
    let slug = slug_of(name);
    let taken: Option<(String,)> = change.sql().optional(TAKEN, binds![&slug]).await?;
    Ok(if taken.is_some() { with_tail(&slug)? } else { slug })
}

// === impl TenantView ===

impl TenantView {
    fn audited(&self) -> serde_json::Value {
        json!({ "enabled": self.enabled, "requestsPerMinute": self.requests_per_minute })
    }
}

impl From<TenantRow> for TenantView {
    fn from(row: TenantRow) -> Self {
        Self {
            id: row.id,
            slug: row.slug,
            name: row.name,
            enabled: row.enabled,
            requests_per_minute: row.requests_per_minute.map(unsigned),
            created_at: Millis(unsigned(row.created_at)),
        }
    }
}
