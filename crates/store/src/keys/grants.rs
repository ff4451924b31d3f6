//! What a key may do: permissions of its own, and roles. Every change gives back the whole resulting set.

use serde_json::{Value, json};

use crate::announce::announce_key;
use crate::bind::binds;
use crate::change::{By, Change, Written};
use crate::db::Purpose;
use crate::keys::row::lock_key;
use crate::permissions::{ensure_permissions, permissions_of_slugs};
use crate::roles::{RoleRow, find_role, slugs_of, with_permissions};
use crate::{Permission, Role, Store, StoreError};

/// What to do with a list of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// On top of what is there.
    Add,
    Remove,
    /// These and no others.
    Set,
}

// === impl Store ===

impl Store {
    /// By slugs. Unknown ones are made, except to be removed.
    pub async fn change_key_permissions(
        &self,
        by: By<'_>,
        key_id: &str,
        grant: Grant,
        slugs: &[String],
    ) -> Result<Written<Vec<Permission>>, StoreError> {
        let mut change = self.change(by.now).await?;
        let key = lock_key(&mut change, by, key_id).await?;
        let before = slugs_of(&own_permissions(&mut change, &key.id).await?);
        put_permissions(&mut change, by, &key.id, grant, slugs).await?;
        let permissions = own_permissions(&mut change, &key.id).await?;
        announce_key(&mut change, &key.id).await?;
        let after = slugs_of(&permissions);
        change.audit(by, "keys.permissions", &key.id, Some(before), Some(after)).await?;
        change.commit(permissions).await
    }

    /// By names or ids; an unknown one is an error.
    pub async fn change_key_roles(
        &self,
        by: By<'_>,
        key_id: &str,
        grant: Grant,
        roles: &[String],
    ) -> Result<Written<Vec<Role>>, StoreError> {
        let mut change = self.change(by.now).await?;
        let key = lock_key(&mut change, by, key_id).await?;
        let before = names_of(&own_roles(&mut change, &key.id).await?);
        put_roles(&mut change, by, &key.id, grant, roles).await?;
        let rows = own_roles(&mut change, &key.id).await?;
        announce_key(&mut change, &key.id).await?;
        let after = names_of(&rows);
        change.audit(by, "keys.roles", &key.id, Some(before), Some(after)).await?;
        let written = change.commit(()).await?;
        let roles = with_permissions(self.db.read(Purpose::Admin), rows).await?;
        Ok(written.map(|()| roles))
    }
}

pub(crate) async fn put_permissions(
    change: &mut Change<'_>,
    by: By<'_>,
    key_id: &str,
    grant: Grant,
    slugs: &[String],
) -> Result<(), StoreError> {
    const CLEAR: &str = "DELETE FROM key_permissions WHERE key_id = $1";
    const TAKE: &str = "DELETE FROM key_permissions WHERE key_id = $1 AND permission_id = $2";
    if grant == Grant::Remove {
        for permission in permissions_of_slugs(change, by.tenant_id, slugs).await? {
            change.sql().run(TAKE, binds![key_id, &permission.id]).await?;
        }
        return Ok(());
    }
    if grant == Grant::Set {
        change.sql().run(CLEAR, binds![key_id]).await?;
    }
    let permissions = ensure_permissions(change, by, slugs).await?;
    let ids: Vec<_> = permissions.into_iter().map(|permission| permission.id).collect();
    give_permissions(change, key_id, &ids).await
}

pub(crate) async fn put_roles(
    change: &mut Change<'_>,
    by: By<'_>,
    key_id: &str,
    grant: Grant,
    roles: &[String],
) -> Result<(), StoreError> {
    const CLEAR: &str = "DELETE FROM key_roles WHERE key_id = $1";
    const TAKE: &str = "DELETE FROM key_roles WHERE key_id = $1 AND role_id = $2";
    let mut ids = Vec::with_capacity(roles.len());
    for role in roles {
        ids.push(find_role(change, by.tenant_id, role).await?.id);
    }
    match grant {
        Grant::Remove => {
            for id in &ids {
                change.sql().run(TAKE, binds![key_id, id]).await?;
            }
            return Ok(());
        }
        Grant::Set => {
            change.sql().run(CLEAR, binds![key_id]).await?;
        }
        Grant::Add => {}
    }
    give_roles(change, key_id, &ids).await
}

pub(crate) async fn give_permissions(
    change: &mut Change<'_>,
    key_id: &str,
    ids: &[String],
) -> Result<(), StoreError> {
    const GIVE: &str = "INSERT INTO key_permissions (key_id, permission_id) VALUES ($1, $2)
        ON CONFLICT DO NOTHING";
    for id in ids {
        change.sql().run(GIVE, binds![key_id, id]).await?;
    }
    Ok(())
}

pub(crate) async fn give_roles(
    change: &mut Change<'_>,
    key_id: &str,
    ids: &[String],
) -> Result<(), StoreError> {
    const GIVE: &str =
        "INSERT INTO key_roles (key_id, role_id) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    for id in ids {
        change.sql().run(GIVE, binds![key_id, id]).await?;
    }
    Ok(())
}

pub(crate) async fn own_permissions(
    change: &mut Change<'_>,
    key_id: &str,
) -> Result<Vec<Permission>, StoreError> {
    const OWN: &str = "SELECT p.id, p.name, p.slug, p.description FROM key_permissions kp
        JOIN permissions p ON p.id = kp.permission_id WHERE kp.key_id = $1 ORDER BY p.slug";
    change.sql().all(OWN, binds![key_id]).await
}

pub(crate) async fn own_roles(
    change: &mut Change<'_>,
    key_id: &str,
) -> Result<Vec<RoleRow>, StoreError> {
    const OWN: &str = "SELECT r.id, r.name, r.description FROM key_roles kr
        JOIN roles r ON r.id = kr.role_id WHERE kr.key_id = $1 ORDER BY r.name";
    change.sql().all(OWN, binds![key_id]).await
}

pub(crate) fn names_of(roles: &[RoleRow]) -> Value {
    roles.iter().map(|role| json!(role.name)).collect()
}
