//! Roles: permissions under one name. What a role may do, every key with it may do.

use serde_json::{Value, json};

use crate::announce::{KeysOf, announce_keys};
use crate::bind::binds;
use crate::change::{By, Change, Written};
use crate::db::{Pools, Purpose};
use crate::each::{listed, places};
use crate::page::anywhere;
use crate::permissions::ensure_permissions;
use crate::{Bind, Page, Patch, Permission, Store, StoreError, Thing, ids};

#[derive(Clone, Debug, Default)]
pub struct NewRole {
    pub name: String,
    pub description: Option<String>,
    /// Slugs; unknown ones are made.
    pub permissions: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    pub id: String,
    pub name: String,
    pub description: Option<String>,
    /// By slug.
    pub permissions: Vec<Permission>,
}

#[derive(Clone, Debug, Default)]
pub struct RolePatch {
    pub name: Option<String>,
    pub description: Patch<String>,
}

#[derive(sqlx::FromRow)]
pub(crate) struct RoleRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
}

#[derive(sqlx::FromRow)]
struct OfRole {
    role_id: String,
    #[sqlx(flatten)]
    permission: Permission,
}

/// By id or name; an id goes first.
const FIND: &str = "SELECT id, name, description FROM roles
    WHERE tenant_id = $1 AND (id = $2 OR name = $2)
    ORDER BY CASE WHEN id = $2 THEN 0 ELSE 1 END LIMIT 1";

// === impl Store ===

impl Store {
    pub async fn create_role(&self, by: By<'_>, new: NewRole) -> Result<Written<Role>, StoreError> {
        const MAKE: &str = "INSERT INTO roles (id, tenant_id, name, description, created_at)
            VALUES ($1, $2, $3, $4, $5)";
        let mut change = self.change(by.now).await?;
        let row =
            RoleRow { id: ids::fresh(ids::ROLE)?, name: new.name, description: new.description };
        let binds = binds![&row.id, by.tenant_id, &row.name, &row.description, by.now];
        change.sql().run(MAKE, binds).await.map_err(|error| error.taken(Thing::Role))?;
        let permissions = put_permissions(&mut change, by, &row.id, &new.permissions).await?;
        let role = row.with(permissions);
        change.audit(by, "roles.create", &role.id, None, Some(role.audited())).await?;
        change.commit(role).await
    }

    /// By id or name.
    pub async fn role(&self, tenant_id: &str, role: &str) -> Result<Option<Role>, StoreError> {
        let from = self.db.read(Purpose::Admin);
        let row: Option<RoleRow> = from.optional(FIND, binds![tenant_id, role]).await?;
        Ok(with_permissions(from, row.into_iter().collect()).await?.pop())
    }

    pub async fn list_roles(
        &self,
        tenant_id: &str,
        search: Option<&str>,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page<Role>, StoreError> {
        const LIST: &str = "SELECT id, name, description FROM roles
            WHERE tenant_id = $1 AND id >= $2
                AND (CAST($3 AS TEXT) IS NULL OR LOWER(name) LIKE $3 ESCAPE '!')
            ORDER BY id LIMIT $4";
        let from = self.lists().await;
        let search = anywhere(search);
        let binds = binds![tenant_id, cursor.unwrap_or_default(), &search, i64::from(limit) + 1];
        let rows: Vec<RoleRow> = from.all(LIST, binds).await?;
        let mut page = Page::cut(rows, limit, |row| row.id.clone());
        let rows = std::mem::take(&mut page.rows);
        Ok(page.with(with_permissions(from, rows).await?))
    }

    pub async fn update_role(
        &self,
        by: By<'_>,
        role: &str,
        patch: RolePatch,
    ) -> Result<Written<Role>, StoreError> {
        const SET: &str =
            "UPDATE roles SET name = $2, description = $3, updated_at = $4 WHERE id = $1";
        let mut change = self.change(by.now).await?;
        let row = find_role(&mut change, by.tenant_id, role).await?;
        let before = json!({ "name": row.name, "description": row.description });
        let name = patch.name.unwrap_or(row.name);
        let description = patch.description.over(row.description);
        let set = change.sql().run(SET, binds![&row.id, &name, &description, by.now]).await;
        set.map_err(|error| error.taken(Thing::Role))?;
        announce_keys(&mut change, KeysOf::Role, &row.id).await?;
        let after = json!({ "name": name, "description": description });
        change.audit(by, "roles.update", &row.id, Some(before), Some(after)).await?;
        let permissions = permissions_of(&mut change, &row.id).await?;
        let row = RoleRow { id: row.id, name, description };
        change.commit(row.with(permissions)).await
    }

    /// Keys that had it lose what it gave them.
    pub async fn delete_role(&self, by: By<'_>, role: &str) -> Result<Written<String>, StoreError> {
        const DELETE: &str = "DELETE FROM roles WHERE id = $1";
        let mut change = self.change(by.now).await?;
        let row = find_role(&mut change, by.tenant_id, role).await?;
        let permissions = permissions_of(&mut change, &row.id).await?;
        announce_keys(&mut change, KeysOf::Role, &row.id).await?;
        change.sql().run(DELETE, binds![&row.id]).await?;
        let role = row.with(permissions);
        change.audit(by, "roles.delete", &role.id, Some(role.audited()), None).await?;
        change.commit(role.id).await
    }

    /// These and no others; unknown ones are made. The whole resulting set comes back.
    pub async fn set_role_permissions(
        &self,
        by: By<'_>,
        role: &str,
        slugs: &[String],
    ) -> Result<Written<Vec<Permission>>, StoreError> {
        const CLEAR: &str = "DELETE FROM role_permissions WHERE role_id = $1";
        let mut change = self.change(by.now).await?;
        let row = find_role(&mut change, by.tenant_id, role).await?;
        let before = slugs_of(&permissions_of(&mut change, &row.id).await?);
        change.sql().run(CLEAR, binds![&row.id]).await?;
        let permissions = put_permissions(&mut change, by, &row.id, slugs).await?;
        announce_keys(&mut change, KeysOf::Role, &row.id).await?;
        let after = slugs_of(&permissions);
        change.audit(by, "roles.setPermissions", &row.id, Some(before), Some(after)).await?;
        change.commit(permissions).await
    }
}

pub(crate) async fn find_role(
    change: &mut Change<'_>,
    tenant_id: &str,
    role: &str,
) -> Result<RoleRow, StoreError> {
    let row = change.sql().optional(FIND, binds![tenant_id, role]).await?;
    row.ok_or_else(|| StoreError::no(Thing::Role, role))
}

async fn put_permissions(
    change: &mut Change<'_>,
    by: By<'_>,
    role_id: &str,
    slugs: &[String],
) -> Result<Vec<Permission>, StoreError> {
    const PUT: &str = "INSERT INTO role_permissions (role_id, permission_id) VALUES ($1, $2)
        ON CONFLICT DO NOTHING";
    let permissions = ensure_permissions(change, by, slugs).await?;
    for permission in &permissions {
        change.sql().run(PUT, binds![role_id, &permission.id]).await?;
    }
    permissions_of(change, role_id).await
}

async fn permissions_of(
    change: &mut Change<'_>,
    role_id: &str,
) -> Result<Vec<Permission>, StoreError> {
    const OF_ROLE: &str = "SELECT p.id, p.name, p.slug, p.description FROM role_permissions rp
        JOIN permissions p ON p.id = rp.permission_id WHERE rp.role_id = $1 ORDER BY p.slug";
    change.sql().all(OF_ROLE, binds![role_id]).await
}

pub(crate) async fn with_permissions(
    from: Pools<'_>,
    rows: Vec<RoleRow>,
) -> Result<Vec<Role>, StoreError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let binds: Vec<_> = rows.iter().map(|row| Bind::from(&row.id)).collect();
    let list = listed(
        "SELECT rp.role_id, p.id, p.name, p.slug, p.description FROM role_permissions rp
            JOIN permissions p ON p.id = rp.permission_id
            WHERE rp.role_id IN ({}) ORDER BY p.slug",
        &places(0, binds.len()),
    );
    let parts: Vec<OfRole> = from.all(list, &binds).await?;
    let mut roles: Vec<_> = rows.into_iter().map(|row| row.with(Vec::new())).collect();
    for OfRole { role_id, permission } in parts {
        if let Some(role) = roles.iter_mut().find(|role| role.id == role_id) {
            role.permissions.push(permission);
        }
    }
    Ok(roles)
}

pub(crate) fn slugs_of(permissions: &[Permission]) -> Value {
    permissions.iter().map(|permission| json!(permission.slug)).collect()
}

// === impl RoleRow ===

impl RoleRow {
    fn with(self, permissions: Vec<Permission>) -> Role {
        Role { id: self.id, name: self.name, description: self.description, permissions }
    }
}

// === impl Role ===

impl Role {
    fn audited(&self) -> Value {
        let permissions = slugs_of(&self.permissions);
        json!({ "name": self.name, "description": self.description, "permissions": permissions })
    }
}
