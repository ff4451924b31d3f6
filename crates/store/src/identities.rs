//! Identities: owners of keys, known by the tenant's own name for them, with limits that all their keys share.

use serde_json::{Value, json};
use tollkeeper_core::Millis;

use crate::announce::announce_identity;
use crate::bind::{binds, moment, unsigned};
use crate::change::{By, Change, Written, as_json};
use crate::db::{Pools, Purpose};
use crate::limits::{drop_limits, limits_of, list_to_json, own_limits, replace_limits};
use crate::page::anywhere;
use crate::{LimitRow, LimitTerms, Page, Patch, Store, StoreError, Thing, ids};

#[derive(Clone, Debug, Default)]
pub struct NewIdentity {
    pub external_id: String,
    /// A JSON object as it was given.
    pub meta: Option<String>,
    pub tier: Option<String>,
    pub limits: Vec<LimitTerms>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub id: String,
    pub external_id: String,
    pub meta: Option<String>,
    pub tier: Option<String>,
    pub created_at: Millis,
    pub updated_at: Option<Millis>,
    /// By name.
    pub limits: Vec<LimitRow>,
}

#[derive(Clone, Debug, Default)]
pub struct IdentityPatch {
    pub meta: Patch<String>,
    pub tier: Patch<String>,
    /// All of them anew; what is not given stays.
    pub limits: Option<Vec<LimitTerms>>,
}

#[derive(sqlx::FromRow)]
pub(crate) struct IdentityRow {
    pub(crate) id: String,
    pub(crate) external_id: String,
    pub(crate) meta: Option<String>,
    pub(crate) tier: Option<String>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: Option<i64>,
}

const FIND: &str = "SELECT id, external_id, meta, tier, created_at, updated_at FROM identities
    WHERE tenant_id = $1 AND (id = $2 OR external_id = $2)
    ORDER BY CASE WHEN id = $2 THEN 0 ELSE 1 END LIMIT 1";

// === impl Store ===

impl Store {
    pub async fn create_identity(
        &self,
        by: By<'_>,
        new: NewIdentity,
    ) -> Result<Written<Identity>, StoreError> {
        const MAKE: &str = "INSERT INTO identities
            (id, tenant_id, external_id, meta, tier, created_at) VALUES ($1, $2, $3, $4, $5, $6)";
        let mut change = self.change(by.now).await?;
        let id = ids::fresh(ids::IDENTITY)?;
        let binds = binds![&id, by.tenant_id, &new.external_id, &new.meta, &new.tier, by.now];
        change.sql().run(MAKE, binds).await.map_err(|error| error.taken(Thing::Identity))?;
        replace_limits(&mut change, by.tenant_id, &id, &new.limits).await?;
        // Somebody may have asked for it before, and know it to be absent.
        announce_identity(&mut change, by.tenant_id, &id, &new.external_id).await?;
        let after =
            audited(&new.external_id, new.meta.as_deref(), new.tier.as_deref(), &new.limits);
        change.audit(by, "identities.create", &id, None, Some(after)).await?;
        let written = change.commit(()).await?;
        let made = self.identity(by.tenant_id, &id).await?;
        let made = made.ok_or_else(|| StoreError::no(Thing::Identity, &id))?;
        Ok(written.map(|()| made))
    }

    /// By id or by the tenant's own name for it.
    pub async fn identity(
        &self,
        tenant_id: &str,
        identity: &str,
    ) -> Result<Option<Identity>, StoreError> {
        let from = self.db.read(Purpose::Admin);
        let row: Option<IdentityRow> = from.optional(FIND, binds![tenant_id, identity]).await?;
        let mut found = with_limits(from, row.into_iter().collect()).await?;
        Ok(found.pop())
    }

    pub async fn list_identities(
        &self,
        tenant_id: &str,
        search: Option<&str>,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page<Identity>, StoreError> {
        const LIST: &str = "SELECT id, external_id, meta, tier, created_at, updated_at
            FROM identities WHERE tenant_id = $1 AND id >= $2
                AND (CAST($3 AS TEXT) IS NULL OR LOWER(external_id) LIKE $3 ESCAPE '!')
            ORDER BY id LIMIT $4";
        let from = self.lists().await;
        let (cursor, search) = (cursor.unwrap_or_default(), anywhere(search));
        let binds = binds![tenant_id, cursor, &search, i64::from(limit) + 1];
        let rows: Vec<IdentityRow> = from.all(LIST, binds).await?;
        let mut page = Page::cut(rows, limit, |row| row.id.clone());
        let rows = std::mem::take(&mut page.rows);
        Ok(page.with(with_limits(from, rows).await?))
    }

    pub async fn update_identity(
        &self,
        by: By<'_>,
        identity: &str,
        patch: IdentityPatch,
    ) -> Result<Written<Identity>, StoreError> {
        const SET: &str =
            "UPDATE identities SET meta = $2, tier = $3, updated_at = $4 WHERE id = $1";
        let mut change = self.change(by.now).await?;
        let row = find(&mut change, by.tenant_id, identity).await?;
        let limits = own_limits(&mut change, &row.id).await?;
        let before = audited(&row.external_id, row.meta.as_deref(), row.tier.as_deref(), &limits);
        let (meta, tier) = (patch.meta.over(row.meta), patch.tier.over(row.tier));
        change.sql().run(SET, binds![&row.id, &meta, &tier, by.now]).await?;
        if let Some(limits) = &patch.limits {
            replace_limits(&mut change, by.tenant_id, &row.id, limits).await?;
        }
        announce_identity(&mut change, by.tenant_id, &row.id, &row.external_id).await?;
        let limits = own_limits(&mut change, &row.id).await?;
        let after = audited(&row.external_id, meta.as_deref(), tier.as_deref(), &limits);
        change.audit(by, "identities.update", &row.id, Some(before), Some(after)).await?;
        let written = change.commit(()).await?;
        let made = self.identity(by.tenant_id, &row.id).await?;
        let made = made.ok_or_else(|| StoreError::no(Thing::Identity, identity))?;
        Ok(written.map(|()| made))
    }

    /// Its keys stay, and belong to nobody.
    pub async fn delete_identity(
        &self,
        by: By<'_>,
        identity: &str,
    ) -> Result<Written<String>, StoreError> {
        const FREE: &str = "UPDATE keys SET identity_id = NULL WHERE identity_id = $1";
        const DELETE: &str = "DELETE FROM identities WHERE id = $1";
        let mut change = self.change(by.now).await?;
        let row = find(&mut change, by.tenant_id, identity).await?;
        announce_identity(&mut change, by.tenant_id, &row.id, &row.external_id).await?;
        change.sql().run(FREE, binds![&row.id]).await?;
        let limits = own_limits(&mut change, &row.id).await?;
        drop_limits(&mut change, &row.id).await?;
        change.sql().run(DELETE, binds![&row.id]).await?;
        let before = audited(&row.external_id, row.meta.as_deref(), row.tier.as_deref(), &limits);
        change.audit(by, "identities.delete", &row.id, Some(before), None).await?;
        change.commit(row.id).await
    }
}

/// The identity of this name, made where there is none: two callers at once make one.
pub(crate) async fn ensure_identity(
    change: &mut Change<'_>,
    by: By<'_>,
    external_id: &str,
) -> Result<String, StoreError> {
    const MAKE: &str = "INSERT INTO identities (id, tenant_id, external_id, created_at)
        VALUES ($1, $2, $3, $4) ON CONFLICT (tenant_id, external_id) DO NOTHING";
    const FIND: &str = "SELECT id FROM identities WHERE tenant_id = $1 AND external_id = $2";
    let id = ids::fresh(ids::IDENTITY)?;
    let made = change.sql().run(MAKE, binds![&id, by.tenant_id, external_id, by.now]).await?;
    if made > 0 {
        announce_identity(change, by.tenant_id, &id, external_id).await?;
        let after = audited(external_id, None, None, &[]);
        change.audit(by, "identities.create", &id, None, Some(after)).await?;
        return Ok(id);
    }
    let (id,): (String,) = change.sql().one(FIND, binds![by.tenant_id, external_id]).await?;
    Ok(id)
}

async fn find(
    change: &mut Change<'_>,
    tenant_id: &str,
    identity: &str,
) -> Result<IdentityRow, StoreError> {
    let row: Option<IdentityRow> = change.sql().optional(FIND, binds![tenant_id, identity]).await?;
    row.ok_or_else(|| StoreError::no(Thing::Identity, identity))
}

pub(crate) async fn with_limits(
    from: Pools<'_>,
    rows: Vec<IdentityRow>,
) -> Result<Vec<Identity>, StoreError> {
    let owners: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let limits = limits_of(from, &owners).await?;
    let mut found: Vec<_> = rows.into_iter().map(Identity::from).collect();
    for (owner, limit) in limits {
        if let Some(identity) = found.iter_mut().find(|identity| identity.id == owner) {
            identity.limits.push(limit);
        }
    }
    Ok(found)
}

fn audited(
    external_id: &str,
    meta: Option<&str>,
    tier: Option<&str>,
    limits: &[LimitTerms],
) -> Value {
    json!({
        "externalId": external_id, "meta": meta.map(as_json), "tier": tier,
        "ratelimits": list_to_json(limits),
    })
}

// === impl Identity ===

impl From<IdentityRow> for Identity {
    fn from(row: IdentityRow) -> Self {
        Self {
            id: row.id,
            external_id: row.external_id,
            meta: row.meta,
            tier: row.tier,
            created_at: Millis(unsigned(row.created_at)),
            updated_at: moment(row.updated_at),
            limits: Vec::new(),
        }
    }
}
