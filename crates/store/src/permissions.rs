//! Permissions that keys can carry: a slug each, which is what a query asks for. They mean nothing to us beyond that.

use serde_json::{Value, json};

use crate::announce::{KeysOf, announce_keys};
use crate::bind::binds;
use crate::change::{By, Change, Written};
use crate::db::Purpose;
use crate::each::{listed, places};
use crate::page::anywhere;
use crate::{Bind, Page, Patch, Store, StoreError, Thing, ids};

/// Slugs looked up in one statement.
const SLUGS_MAX: usize = 500;

#[derive(Clone, Debug, Default)]
pub struct NewPermission {
    pub name: String,
    pub slug: String,
    pub description: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Permission {
    pub id: String,
    pub name: String,
    pub slug: String,
    pub description: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct PermissionPatch {
    pub name: Option<String>,
    pub slug: Option<String>,
    pub description: Patch<String>,
}

/// By id or slug; an id goes first.
const FIND: &str = "SELECT id, name, slug, description FROM permissions
    WHERE tenant_id = $1 AND (id = $2 OR slug = $2)
    ORDER BY CASE WHEN id = $2 THEN 0 ELSE 1 END LIMIT 1";

// === impl Store ===

impl Store {
    pub async fn create_permission(
        &self,
        by: By<'_>,
        new: NewPermission,
    ) -> Result<Written<Permission>, StoreError> {
        const MAKE: &str = "INSERT INTO permissions
            (id, tenant_id, name, slug, description, created_at) VALUES ($1, $2, $3, $4, $5, $6)";
        let mut change = self.change(by.now).await?;
        let NewPermission { name, slug, description } = new;
        let made = Permission { id: ids::fresh(ids::PERMISSION)?, name, slug, description };
        let Permission { id, name, slug, description } = &made;
        let binds = binds![id, by.tenant_id, name, slug, description, by.now];
        change.sql().run(MAKE, binds).await.map_err(|error| error.taken(Thing::Permission))?;
        change.audit(by, "permissions.create", id, None, Some(made.audited())).await?;
        change.commit(made).await
    }

    pub async fn permission(
        &self,
        tenant_id: &str,
        permission: &str,
    ) -> Result<Option<Permission>, StoreError> {
        self.db.read(Purpose::Admin).optional(FIND, binds![tenant_id, permission]).await
    }

    /// `search` is looked for in names and slugs.
    pub async fn list_permissions(
        &self,
        tenant_id: &str,
        search: Option<&str>,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page<Permission>, StoreError> {
        const LIST: &str = "SELECT id, name, slug, description FROM permissions
            WHERE tenant_id = $1 AND id >= $2 AND (CAST($3 AS TEXT) IS NULL
                OR LOWER(name) LIKE $3 ESCAPE '!' OR LOWER(slug) LIKE $3 ESCAPE '!')
            ORDER BY id LIMIT $4";
        let search = anywhere(search);
        let binds = binds![tenant_id, cursor.unwrap_or_default(), &search, i64::from(limit) + 1];
        let rows: Vec<Permission> = self.lists().await.all(LIST, binds).await?;
        Ok(Page::cut(rows, limit, |row| row.id.clone()))
    }

    pub async fn update_permission(
        &self,
        by: By<'_>,
        permission: &str,
        patch: PermissionPatch,
    ) -> Result<Written<Permission>, StoreError> {
        const SET: &str = "UPDATE permissions SET name = $2, slug = $3, description = $4,
            updated_at = $5 WHERE id = $1";
        let mut change = self.change(by.now).await?;
        let before = find(&mut change, by.tenant_id, permission).await?;
        let after = Permission {
            id: before.id.clone(),
            name: patch.name.unwrap_or_else(|| before.name.clone()),
            slug: patch.slug.unwrap_or_else(|| before.slug.clone()),
            description: patch.description.over(before.description.clone()),
        };
        let Permission { id, name, slug, description } = &after;
        let set = change.sql().run(SET, binds![id, name, slug, description, by.now]).await;
        set.map_err(|error| error.taken(Thing::Permission))?;
        announce_keys(&mut change, KeysOf::Permission, id).await?;
        let (old, new) = (Some(before.audited()), Some(after.audited()));
        change.audit(by, "permissions.update", &after.id, old, new).await?;
        change.commit(after).await
    }

    /// Keys and roles that had it have it no longer.
    pub async fn delete_permission(
        &self,
        by: By<'_>,
        permission: &str,
    ) -> Result<Written<Permission>, StoreError> {
        const DELETE: &str = "DELETE FROM permissions WHERE id = $1";
        let mut change = self.change(by.now).await?;
        let before = find(&mut change, by.tenant_id, permission).await?;
        announce_keys(&mut change, KeysOf::Permission, &before.id).await?;
        change.sql().run(DELETE, binds![&before.id]).await?;
        change.audit(by, "permissions.delete", &before.id, Some(before.audited()), None).await?;
        change.commit(before).await
    }
}

async fn find(
    change: &mut Change<'_>,
    tenant_id: &str,
    permission: &str,
) -> Result<Permission, StoreError> {
    let found = change.sql().optional(FIND, binds![tenant_id, permission]).await?;
    found.ok_or_else(|| StoreError::no(Thing::Permission, permission))
}

/// Those of these slugs that the tenant has.
pub(crate) async fn permissions_of_slugs(
    change: &mut Change<'_>,
    tenant_id: &str,
    slugs: &[String],
) -> Result<Vec<Permission>, StoreError> {
    let mut found = Vec::new();
    for chunk in slugs.chunks(SLUGS_MAX) {
        let mut binds = vec![Bind::from(tenant_id)];
        binds.extend(chunk.iter().map(Bind::from));
        let list = listed(
            "SELECT id, name, slug, description FROM permissions
                WHERE tenant_id = $1 AND slug IN ({})",
            &places(1, chunk.len()),
        );
        found.extend(change.sql().all::<Permission>(list, &binds).await?);
    }
    Ok(found)
}

/// The permissions of these slugs, made where there are none: two callers at once make one.
pub(crate) async fn ensure_permissions(
    change: &mut Change<'_>,
    by: By<'_>,
    slugs: &[String],
) -> Result<Vec<Permission>, StoreError> {
    const MAKE: &str = "INSERT INTO permissions (id, tenant_id, name, slug, created_at)
        VALUES ($1, $2, $3, $3, $4) ON CONFLICT (tenant_id, slug) DO NOTHING";
    let there = permissions_of_slugs(change, by.tenant_id, slugs).await?;
    let missing = slugs.iter().filter(|slug| there.iter().all(|one| one.slug != **slug));
    let missing: Vec<&String> = missing.collect();
    for slug in &missing {
        let id = ids::fresh(ids::PERMISSION)?;
        if change.sql().run(MAKE, binds![&id, by.tenant_id, *slug, by.now]).await? > 0 {
            let after = Some(json!({ "name": slug, "slug": slug }));
            change.audit(by, "permissions.create", &id, None, after).await?;
        }
    }
    if missing.is_empty() {
        return Ok(there);
    }
    permissions_of_slugs(change, by.tenant_id, slugs).await
}

// === impl Permission ===

impl Permission {
    fn audited(&self) -> Value {
        json!({ "name": self.name, "slug": self.slug, "description": self.description })
    }
}
