//! Keys as they are shown: one, a page of a project's, or the one with a given hash. Reading changes nothing.

use std::collections::HashMap;

use tollkeeper_core::{Cidr, Millis, SealedSecret};
use tollkeeper_decide::KeyHashes;

use crate::bind::{binds, moment, unsigned};
use crate::credits::{refill_of, shown_balance};
use crate::db::{Pools, Purpose};
use crate::each::{listed, places};
use crate::identities::{IdentityRow, with_limits};
use crate::key_card::ranges;
use crate::keys::row::{KeyRow, key_columns};
use crate::limits::limits_of;
use crate::outbox::{HashKind, StoredHash, hash_of};
use crate::silence::{by_clock, silent_before};
use crate::{Bind, Credits, Fault, Identity, LimitRow, Page, Store, StoreError, Thing};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyView {
    pub id: String,
    pub project_id: String,
    pub hash: StoredHash,
    pub pepper_id: i64,
    pub start: String,
    pub name: Option<String>,
    pub prefix: Option<String>,
    pub byte_length: Option<u32>,
    pub meta: Option<String>,
    pub enabled: bool,
    pub expires: Option<Millis>,
    pub revoked_at: Option<Millis>,
    pub revoked_reason: Option<String>,
    pub ip_allowlist: Vec<Cidr>,
    pub tier: Option<String>,
    pub recoverable: Option<Vec<u8>>,
    pub signing: Option<SealedSecret>,
    pub created_at: Millis,
    pub updated_at: Option<Millis>,
    pub last_used_at: Option<Millis>,
    /// With what processes hold and have not spent. `None`: unlimited.
    pub credits: Option<Credits>,
    pub identity: Option<Identity>,
    /// Slugs, its own and those of its roles, sorted, each once.
    pub permissions: Vec<String>,
    /// Names, sorted.
    pub roles: Vec<String>,
    /// By name.
    pub limits: Vec<LimitRow>,
}

// === impl Store ===

impl Store {
    pub async fn key_view(
        &self,
        tenant_id: &str,
        key_id: &str,
        now: Millis,
    ) -> Result<Option<KeyView>, StoreError> {
        const FIND: &str = concat!(
            "SELECT ",
            key_columns!(),
            " FROM keys WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL"
        );
        let from = self.db.read(Purpose::Admin);
        let row: Option<KeyRow> = from.optional(FIND, binds![tenant_id, key_id]).await?;
        Ok(views(from, row.into_iter().collect(), now).await?.pop())
    }

    /// The key with either hash, if it is this tenant's.
    pub async fn key_view_by_hash(
        &self,
        tenant_id: &str,
        hashes: KeyHashes,
        now: Millis,
    ) -> Result<Option<KeyView>, StoreError> {
        const FIND: &str = concat!(
            "SELECT ",
            key_columns!(),
            " FROM keys WHERE ((hash = $2 AND hash_kind = 'hmac')
                OR (hash = $3 AND hash_kind = 'tenant_sha256')) AND tenant_id = $1 AND deleted_at IS NULL
            ORDER BY hash_kind LIMIT 1"
        );
        let from = self.db.read(Purpose::Admin);
        let binds = binds![tenant_id, &hashes.ours, &hashes.imported];
        let row: Option<KeyRow> = from.optional(FIND, binds).await?;
        Ok(views(from, row.into_iter().collect(), now).await?.pop())
    }

    /// The keys of a project, or those of them that belong to one identity, in the order of their ids.
    pub async fn list_keys(
        &self,
        tenant_id: &str,
        project_id: &str,
        external_id: Option<&str>,
        cursor: Option<&str>,
        limit: u32,
        now: Millis,
    ) -> Result<Page<KeyView>, StoreError> {
        const LIVES: &str =
            "SELECT id FROM projects WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL";
        const LIST: &str = concat!(
            "SELECT ",
            key_columns!(),
            " FROM keys WHERE tenant_id = $1 AND project_id = $2 AND deleted_at IS NULL AND id >= $3
                AND (CAST($4 AS TEXT) IS NULL OR identity_id = (
                    SELECT i.id FROM identities i WHERE i.tenant_id = $1 AND i.external_id = $4))
            ORDER BY id LIMIT $5"
        );
        let from = self.lists().await;
        let lives: Option<(String,)> = from.optional(LIVES, binds![tenant_id, project_id]).await?;
        lives.ok_or_else(|| StoreError::no(Thing::Project, project_id))?;
        let cursor = cursor.unwrap_or_default();
        let binds = binds![tenant_id, project_id, cursor, external_id, i64::from(limit) + 1];
        let rows: Vec<KeyRow> = from.all(LIST, binds).await?;
        let mut page = Page::cut(rows, limit, |row| row.id.clone());
        let rows = std::mem::take(&mut page.rows);
        Ok(page.with(views(from, rows, now).await?))
    }
}

/// A page costs as many statements as one key does.
async fn views(
    from: Pools<'_>,
    rows: Vec<KeyRow>,
    now: Millis,
) -> Result<Vec<KeyView>, StoreError> {
    const PERMISSIONS: &str = "SELECT kp.key_id, p.slug FROM key_permissions kp
            JOIN permissions p ON p.id = kp.permission_id WHERE kp.key_id IN ({})
        UNION SELECT kr.key_id, p.slug FROM key_roles kr
            JOIN role_permissions rp ON rp.role_id = kr.role_id
            JOIN permissions p ON p.id = rp.permission_id WHERE kr.key_id IN ({})";
    const ROLES: &str = "SELECT kr.key_id, r.name FROM key_roles kr
        JOIN roles r ON r.id = kr.role_id WHERE kr.key_id IN ({})";
    const LEASED: [&str; 2] = by_clock!(
        concat!(
            "SELECT key_id, CAST(SUM(granted - spent) AS BIGINT) FROM credit_leases
            WHERE key_id IN ({}) AND NOT ",
            silent_before!()
        ),
        " GROUP BY key_id"
    );
    const IDENTITIES: &str = "SELECT id, external_id, meta, tier, created_at, updated_at
        FROM identities WHERE id IN ({})";
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<_> = rows.iter().map(|row| row.id.as_str()).collect();
    let binds: Vec<_> = ids.iter().map(|id| Bind::from(*id)).collect();
    let list = places(0, binds.len());
    let permissions: Vec<(String, String)> = from.all(listed(PERMISSIONS, &list), &binds).await?;
    let roles: Vec<(String, String)> = from.all(listed(ROLES, &list), &binds).await?;
    let leased: Vec<(String, i64)> = from.all(listed(from.which(LEASED), &list), &binds).await?;
    let leased: HashMap<String, i64> = leased.into_iter().collect();
    let limits = limits_of(from, &ids).await?;
    let owners: Vec<_> = rows.iter().filter_map(|row| row.identity_id.as_deref()).collect();
    let mut identities = Vec::new();
    if !owners.is_empty() {
        let binds: Vec<_> = owners.iter().map(|id| Bind::from(*id)).collect();
        let found: Vec<IdentityRow> =
            from.all(listed(IDENTITIES, &places(0, binds.len())), &binds).await?;
        identities = with_limits(from, found).await?;
    }
    let mut views = Vec::with_capacity(rows.len());
    for row in rows {
        let out = leased.get(&row.id).copied().unwrap_or(0);
        let owner = row.identity_id.clone();
        let mut view = row.into_view(out, now)?;
        view.identity =
            identities.iter().find(|identity| Some(&identity.id) == owner.as_ref()).cloned();
        views.push(view);
    }
    let places: HashMap<String, usize> =
        views.iter().enumerate().map(|(place, view)| (view.id.clone(), place)).collect();
    for (key_id, slug) in permissions {
        views[places[&key_id]].permissions.push(slug);
    }
    for (key_id, name) in roles {
        views[places[&key_id]].roles.push(name);
    }
    for (key_id, limit) in limits {
        views[places[&key_id]].limits.push(limit);
    }
    for view in &mut views {
        view.permissions.sort_unstable();
        view.roles.sort_unstable();
    }
    Ok(views)
}

// === impl KeyRow ===

impl KeyRow {
    fn into_view(self, out: i64, now: Millis) -> Result<KeyView, Fault> {
        let refill = refill_of(self.refill_every.as_deref(), self.refill_day, self.refill_amount);
        let credits = self.credits_remaining.map(|remaining| Credits {
            remaining: shown_balance(remaining, out, refill, self.refilled_at, now),
            refill,
        });
        let kind = HashKind::of(&self.hash_kind)?;
        Ok(KeyView {
            id: self.id,
            project_id: self.project_id,
            hash: StoredHash { hash: hash_of(&self.hash)?, kind },
            pepper_id: self.pepper_id,
            start: self.start,
            name: self.name,
            prefix: self.prefix,
            byte_length: self.byte_length.and_then(|length| u32::try_from(length).ok()),
            meta: self.meta,
            enabled: self.enabled,
            expires: moment(self.expires),
            revoked_at: moment(self.revoked_at),
            revoked_reason: self.revoked_reason,
            ip_allowlist: ranges(&self.ip_allowlist).ok_or(Fault::Unreadable("key"))?,
            tier: self.tier,
            recoverable: self.recoverable,
            signing: self.signing.map(SealedSecret::new),
            created_at: Millis(unsigned(self.created_at)),
            updated_at: moment(self.updated_at),
            last_used_at: moment(self.last_used_at),
            credits,
            identity: None,
            permissions: Vec::new(),
            roles: Vec::new(),
            limits: Vec::new(),
        })
    }
}
