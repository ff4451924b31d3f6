//! Root keys of a tenant: what each may do, and until when. The operator's own key is not managed here but by the settings.

use serde_json::{Value, json};
use tollkeeper_core::Millis;
use tollkeeper_decide::KeyHash;

use crate::bind::{binds, moment, unsigned};
use crate::change::{By, Change, Written};
use crate::db::Purpose;
use crate::outbox::{Changed, hash_of};
use crate::{Fault, Page, Patch, Store, StoreError, Thing, ids};

#[derive(Clone, Debug)]
pub struct NewRootKey {
    pub hash: KeyHash,
    pub pepper_id: i64,
    pub name: Option<String>,
    /// `resource.<id|*>.action` each, or `*`.
    pub permissions: Vec<String>,
    pub expires: Option<Millis>,
    /// What may be shown of its text, so that a person can tell it from others.
    pub start: Option<String>,
    pub end: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootKeyView {
    pub id: String,
    pub name: Option<String>,
    pub start: Option<String>,
    pub end: Option<String>,
    pub permissions: Vec<String>,
    pub enabled: bool,
    pub operator: bool,
    pub expires: Option<Millis>,
    pub created_at: Millis,
    pub last_used_at: Option<Millis>,
}

#[derive(Clone, Debug, Default)]
pub struct RootKeyPatch {
    pub name: Patch<String>,
    pub permissions: Option<Vec<String>>,
    pub enabled: Option<bool>,
    pub expires: Patch<Millis>,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    hash: Vec<u8>,
    name: String,
    shown_start: Option<String>,
    shown_end: Option<String>,
    permissions: String,
    enabled: bool,
    operator: bool,
    expires: Option<i64>,
    created_at: i64,
    last_used_at: Option<i64>,
}

// === impl Store ===

impl Store {
    pub async fn create_root_key(
        &self,
        by: By<'_>,
        new: NewRootKey,
    ) -> Result<Written<String>, StoreError> {
        let mut change = self.change(by.now).await?;
        let id = insert_root_key(&mut change, by.tenant_id, &new, by.now).await?;
        let after = json!({
            "name": new.name, "permissions": new.permissions, "enabled": true,
            "expires": new.expires.map(|at| at.0),
        });
        change.audit(by, "rootKeys.create", &id, None, Some(after)).await?;
        change.commit(id).await
    }

    pub async fn root_key_view(
        &self,
        tenant_id: &str,
        root_key_id: &str,
    ) -> Result<Option<RootKeyView>, StoreError> {
        const FIND: &str = "SELECT id, hash, name, shown_start, shown_end, permissions, enabled,
                operator, expires, created_at, last_used_at
            FROM root_keys WHERE tenant_id = $1 AND id = $2";
        let from = self.db.read(Purpose::Admin);
        let row: Option<Row> = from.optional(FIND, binds![tenant_id, root_key_id]).await?;
        Ok(row.map(RootKeyView::try_from).transpose()?)
    }

    pub async fn list_root_keys(
        &self,
        tenant_id: &str,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page<RootKeyView>, StoreError> {
        const LIST: &str = "SELECT id, hash, name, shown_start, shown_end, permissions, enabled,
                operator, expires, created_at, last_used_at
            FROM root_keys WHERE tenant_id = $1 AND id >= $2 ORDER BY id LIMIT $3";
        let binds = binds![tenant_id, cursor.unwrap_or_default(), i64::from(limit) + 1];
        let rows: Vec<Row> = self.lists().await.all(LIST, binds).await?;
        let page = Page::cut(rows, limit, |row| row.id.clone());
        Ok(page.try_map(RootKeyView::try_from)?)
    }

    pub async fn update_root_key(
        &self,
        by: By<'_>,
        root_key_id: &str,
        patch: RootKeyPatch,
    ) -> Result<Written<RootKeyView>, StoreError> {
        const SET: &str = "UPDATE root_keys SET name = $2, permissions = $3, enabled = $4,
            expires = $5 WHERE id = $1";
        let mut change = self.change(by.now).await?;
        let (hash, before) = lock(&mut change, by.tenant_id, root_key_id).await?;
        let mut after = before.clone();
        after.name = patch.name.over(after.name);
        after.permissions = patch.permissions.unwrap_or(after.permissions);
        after.enabled = patch.enabled.unwrap_or(after.enabled);
        after.expires = patch.expires.over(after.expires);
        let name = after.name.as_deref().unwrap_or_default();
        let permissions = json!(after.permissions).to_string();
        let binds = binds![root_key_id, name, &permissions, after.enabled, after.expires];
        change.sql().run(SET, binds).await?;
        change.announce(by.tenant_id, Changed::RootKey { id: root_key_id.to_owned(), hash });
        let (old, new) = (Some(before.audited()), Some(after.audited()));
        change.audit(by, "rootKeys.update", root_key_id, old, new).await?;
        change.commit(after).await
    }

    /// Refused from then on, on every node.
    pub async fn delete_root_key(
        &self,
        by: By<'_>,
        root_key_id: &str,
    ) -> Result<Written<RootKeyView>, StoreError> {
        const DELETE: &str = "DELETE FROM root_keys WHERE id = $1";
        let mut change = self.change(by.now).await?;
        let (hash, before) = lock(&mut change, by.tenant_id, root_key_id).await?;
        change.sql().run(DELETE, binds![root_key_id]).await?;
        change.announce(by.tenant_id, Changed::RootKey { id: root_key_id.to_owned(), hash });
        change.audit(by, "rootKeys.delete", root_key_id, Some(before.audited()), None).await?;
        change.commit(before).await
    }

    /// A new key with the name, permissions and state of the old one; only text and hash of `new` count, and its
    /// expiry. The old one is good until `old_expires`, or as before where that is not given. Returns the new id.
    pub async fn reroll_root_key(
        &self,
        by: By<'_>,
        root_key_id: &str,
        new: NewRootKey,
        old_expires: Option<Millis>,
    ) -> Result<Written<String>, StoreError> {
        const EXPIRE: &str = "UPDATE root_keys SET expires = $2 WHERE id = $1";
        const DISABLE: &str = "UPDATE root_keys SET enabled = FALSE WHERE id = $1";
        let mut change = self.change(by.now).await?;
        let (hash, old) = lock(&mut change, by.tenant_id, root_key_id).await?;
        let permissions = old.permissions.clone();
        let made = NewRootKey { name: old.name.clone(), permissions, ..new };
        let id = insert_root_key(&mut change, by.tenant_id, &made, by.now).await?;
        if !old.enabled {
            change.sql().run(DISABLE, binds![&id]).await?;
        }
        if let Some(given) = old_expires {
            let sooner = old.expires.map_or(given, |own| own.min(given));
            change.sql().run(EXPIRE, binds![root_key_id, sooner]).await?;
        }
        change.announce(by.tenant_id, Changed::RootKey { id: root_key_id.to_owned(), hash });
        let after = json!({ "rootKeyId": id, "oldExpires": old_expires.map(|at| at.0) });
        change.audit(by, "rootKeys.reroll", root_key_id, Some(old.audited()), Some(after)).await?;
        change.commit(id).await
    }
}

/// Announced too: somebody may remember that there was no such key.
pub(crate) async fn insert_root_key(
    change: &mut Change<'_>,
    tenant_id: &str,
    new: &NewRootKey,
    now: Millis,
) -> Result<String, StoreError> {
    const MAKE: &str = "INSERT INTO root_keys (id, tenant_id, hash, pepper_id, name, permissions,
            operator, enabled, created_at, expires, shown_start, shown_end)
        VALUES ($1, $2, $3, $4, $5, $6, FALSE, TRUE, $7, $8, $9, $10)";
    let id = ids::fresh(ids::ROOT_KEY)?;
    let permissions = json!(new.permissions).to_string();
    let binds = binds![
        &id,
        tenant_id,
        &new.hash,
        new.pepper_id,
        new.name.as_deref().unwrap_or_default(),
        &permissions,
        now,
        new.expires,
        &new.start,
        &new.end,
    ];
    change.sql().run(MAKE, binds).await.map_err(|error| error.taken(Thing::RootKey))?;
    change.announce(tenant_id, Changed::RootKey { id: id.clone(), hash: new.hash });
    Ok(id)
}

async fn lock(
    change: &mut Change<'_>,
    tenant_id: &str,
    id: &str,
) -> Result<(KeyHash, RootKeyView), StoreError> {
    const LOCK: &str = "UPDATE root_keys SET name = name WHERE tenant_id = $1 AND id = $2
        RETURNING id, hash, name, shown_start, shown_end, permissions, enabled, operator, expires,
            created_at, last_used_at";
    let row: Option<Row> = change.sql().optional(LOCK, binds![tenant_id, id]).await?;
    let row = row.ok_or_else(|| StoreError::no(Thing::RootKey, id))?;
    if row.operator {
        return Err(StoreError::OperatorKey);
    }
    Ok((hash_of(&row.hash)?, row.try_into()?))
}

// === impl RootKeyView ===

impl RootKeyView {
    fn audited(&self) -> Value {
        json!({
            "name": self.name, "permissions": self.permissions, "enabled": self.enabled,
            "expires": self.expires.map(|at| at.0),
        })
    }
}

impl TryFrom<Row> for RootKeyView {
    type Error = Fault;

    fn try_from(row: Row) -> Result<Self, Fault> {
        let permissions = serde_json::from_str(&row.permissions);
        Ok(Self {
            id: row.id,
            name: Some(row.name).filter(|name| !name.is_empty()),
            start: row.shown_start,
            end: row.shown_end,
            permissions: permissions.map_err(|_| Fault::Unreadable("root key"))?,
            enabled: row.enabled,
            operator: row.operator,
            expires: moment(row.expires),
            created_at: Millis(unsigned(row.created_at)),
            last_used_at: moment(row.last_used_at),
        })
    }
}
