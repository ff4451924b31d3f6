//! Making a key: its row, its owner, its limits, permissions and roles, all or none.

use tollkeeper_core::{Millis, SealedSecret};

use crate::announce::announce_key;
use crate::bind::{binds, signed};
use crate::change::{By, Change, Written};
use crate::credits::refill_columns;
use crate::identities::ensure_identity;
use crate::key_card::texts_to_json;
use crate::keys::audited::audited_key;
use crate::keys::grants::{give_permissions, give_roles};
use crate::keys::terms::{KeySecret, KeyTerms, NewKey};
use crate::limits::replace_limits;
use crate::outbox::{HashKind, StoredHash};
use crate::permissions::ensure_permissions;
use crate::roles::find_role;
use crate::{Store, StoreError, Thing, ids};

// === impl Store ===

impl Store {
    /// Returns the id of the new key.
    pub async fn create_key(&self, by: By<'_>, new: NewKey) -> Result<Written<String>, StoreError> {
        let mut change = self.change(by.now).await?;
        find_project(&mut change, by.tenant_id, &new.project_id).await?;
        let id = match new.id {
            Some(id) => id,
            None => ids::fresh(ids::KEY)?,
        };
        let hash = StoredHash { hash: new.secret.hash, kind: HashKind::Hmac };
        let parts = Parts::prepare(&mut change, by, &new.terms).await?;
        let made =
            insert(&mut change, by, (&id, &new.project_id), hash, &new.secret, &new.terms, parts);
        if !made.await? {
            return Err(StoreError::Taken { what: Thing::Key });
        }
        announce_key(&mut change, &id).await?;
        let after = audited_key(&mut change, &id).await?;
        change.audit(by, "keys.create", &id, None, Some(after)).await?;
        change.commit(id).await
    }
}

/// The ids of what a key refers to by name, found or made before the key itself.
pub(crate) struct Parts {
    identity_id: Option<String>,
    permissions: Vec<String>,
    roles: Vec<String>,
}

// === impl Parts ===

impl Parts {
    pub(crate) async fn prepare(
        change: &mut Change<'_>,
        by: By<'_>,
        terms: &KeyTerms,
    ) -> Result<Self, StoreError> {
        let mut roles = Vec::with_capacity(terms.roles.len());
        for role in &terms.roles {
            roles.push(find_role(change, by.tenant_id, role).await?.id);
        }
        let identity_id = match &terms.external_id {
            Some(external_id) => Some(ensure_identity(change, by, external_id).await?),
            None => None,
        };
        let permissions = ensure_permissions(change, by, &terms.permissions).await?;
        let permissions = permissions.into_iter().map(|permission| permission.id).collect();
        Ok(Self { identity_id, permissions, roles })
    }
}

pub(crate) async fn find_project(
    change: &mut Change<'_>,
    tenant_id: &str,
    project_id: &str,
) -> Result<(), StoreError> {
    const FIND: &str =
        "SELECT id FROM projects WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL";
    let found: Option<(String,)> =
        change.sql().optional(FIND, binds![tenant_id, project_id]).await?;
    found.map(drop).ok_or_else(|| StoreError::no(Thing::Project, project_id))
}

/// Whether it was made: not when there is a key with this id or this hash already.
pub(crate) async fn insert(
    change: &mut Change<'_>,
    by: By<'_>,
    (id, project_id): (&str, &str),
    hash: StoredHash,
    secret: &KeySecret,
    terms: &KeyTerms,
    parts: Parts,
) -> Result<bool, StoreError> {
    const MAKE: &str = "INSERT INTO keys (id, tenant_id, project_id, hash, hash_kind, pepper_id,
            start, name, prefix, byte_length, meta, enabled, expires, ip_allowlist, tier,
            identity_id, credits_remaining, refill_every, refill_day, refill_amount, refilled_at,
            recoverable, created_at, signing)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
            $19, $20, $21, $22, $23, $24) ON CONFLICT DO NOTHING";
    let (every, day, amount) = refill_columns(terms.credits.and_then(|credits| credits.refill));
    let ranges = texts_to_json(&terms.ip_allowlist);
    // What is due is counted from now on: a new key has its credits already.
    let refilled_at: Option<Millis> = terms.credits.map(|_| by.now);
    let binds = binds![
        id,
        by.tenant_id,
        project_id,
        &hash.hash,
        hash.kind.text(),
        secret.pepper_id,
        &secret.start,
        &terms.name,
        &secret.prefix,
        secret.byte_length.map(i64::from),
        &terms.meta,
        terms.enabled,
        terms.expires,
        &ranges,
        &terms.tier,
        &parts.identity_id,
        terms.credits.map(|credits| signed(credits.remaining)),
        every,
        day,
        amount,
        refilled_at,
        secret.recoverable.as_deref(),
        by.now,
        terms.signing.as_ref().map(SealedSecret::bytes),
    ];
    if change.sql().run(MAKE, binds).await? == 0 {
        return Ok(false);
    }
    replace_limits(change, by.tenant_id, id, &terms.limits).await?;
    give_permissions(change, id, &parts.permissions).await?;
    give_roles(change, id, &parts.roles).await?;
    Ok(true)
}
