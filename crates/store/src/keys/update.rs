//! Changing a key: what is given replaces, what is cleared goes, what is absent stays.

use tollkeeper_core::{Cidr, CreditRefill, Millis, SealedSecret};

use crate::announce::announce_key;
use crate::bind::{binds, signed};
use crate::change::{By, Change, Written};
use crate::credits::{open_purse, outstanding, refill_columns, set_balance};
use crate::identities::ensure_identity;
use crate::key_card::texts_to_json;
use crate::keys::audited::audited_key;
use crate::keys::grants::{Grant, put_permissions, put_roles};
use crate::keys::row::{KeyRow, lock_key};
use crate::limits::replace_limits;
use crate::silence::void_silent;
use crate::{LimitTerms, Patch, Store, StoreError};

#[derive(Clone, Debug, Default)]
pub struct KeyPatch {
    pub name: Patch<String>,
    pub external_id: Patch<String>,
    pub meta: Patch<String>,
    pub expires: Patch<Millis>,
    pub enabled: Option<bool>,
    pub tier: Patch<String>,
    pub ip_allowlist: Option<Vec<Cidr>>,
    /// Cleared: its requests need not be signed.
    pub signing: Patch<SealedSecret>,
    /// Cleared: unlimited.
    pub credits: Patch<CreditsPatch>,
    /// All of them anew; a name that stays keeps its id.
    pub limits: Patch<Vec<LimitTerms>>,
    pub permissions: Option<Vec<String>>,
    pub roles: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default)]
pub struct CreditsPatch {
    /// Cleared: unlimited, and never refilled.
    pub remaining: Patch<u64>,
    pub refill: Patch<CreditRefill>,
}

// === impl Store ===

impl Store {
    pub async fn update_key(
        &self,
        by: By<'_>,
        key_id: &str,
        patch: KeyPatch,
    ) -> Result<Written<()>, StoreError> {
        let mut change = self.change(by.now).await?;
        let mut row = lock_key(&mut change, by, key_id).await?;
        let before = audited_key(&mut change, key_id).await?;
        put_row(&mut change, by, &mut row, &patch).await?;
        put_credits(&mut change, by, key_id, &patch.credits).await?;
        match &patch.limits {
            Patch::Keep => {}
            Patch::Clear => replace_limits(&mut change, by.tenant_id, key_id, &[]).await?,
            Patch::Set(limits) => {
                replace_limits(&mut change, by.tenant_id, key_id, limits).await?;
            }
        }
        if let Some(slugs) = &patch.permissions {
            put_permissions(&mut change, by, key_id, Grant::Set, slugs).await?;
        }
        if let Some(roles) = &patch.roles {
            put_roles(&mut change, by, key_id, Grant::Set, roles).await?;
        }
        announce_key(&mut change, key_id).await?;
        let after = audited_key(&mut change, key_id).await?;
        change.audit(by, "keys.update", key_id, Some(before), Some(after)).await?;
        change.commit(()).await
    }
}

async fn put_row(
    change: &mut Change<'_>,
    by: By<'_>,
    row: &mut KeyRow,
    patch: &KeyPatch,
) -> Result<(), StoreError> {
    const SET: &str = "UPDATE keys SET name = $2, meta = $3, expires = $4, enabled = $5, tier = $6,
        ip_allowlist = $7, identity_id = $8, signing = $9 WHERE id = $1";
    let identity_id = match &patch.external_id {
        Patch::Keep => row.identity_id.take(),
        Patch::Clear => None,
        Patch::Set(external_id) => Some(ensure_identity(change, by, external_id).await?),
    };
    row.identity_id = identity_id;
    row.name = patch.name.clone().over(row.name.take());
    row.meta = patch.meta.clone().over(row.meta.take());
    row.tier = patch.tier.clone().over(row.tier.take());
    row.enabled = patch.enabled.unwrap_or(row.enabled);
    row.expires = match &patch.expires {
        Patch::Keep => row.expires,
        Patch::Clear => None,
        Patch::Set(at) => Some(signed(at.0)),
    };
    if let Some(ranges) = &patch.ip_allowlist {
        row.ip_allowlist = texts_to_json(ranges);
    }
    match &patch.signing {
        Patch::Keep => {}
        Patch::Clear => row.signing = None,
        Patch::Set(secret) => row.signing = Some(secret.bytes().to_vec()),
    }
    let binds = binds![
        &row.id,
        &row.name,
        &row.meta,
        row.expires,
        row.enabled,
        &row.tier,
        &row.ip_allowlist,
        &row.identity_id,
        row.signing.as_deref(),
    ];
    change.sql().run(SET, binds).await?;
    Ok(())
}

async fn put_credits(
    change: &mut Change<'_>,
    by: By<'_>,
    key_id: &str,
    patch: &Patch<CreditsPatch>,
) -> Result<(), StoreError> {
    let unlimited = CreditsPatch { remaining: Patch::Clear, refill: Patch::Clear };
    let patch = match patch {
        Patch::Keep => return Ok(()),
        Patch::Clear => &unlimited,
        Patch::Set(patch) => patch,
    };
    let purse = open_purse(change.sql(), key_id, by.now).await?;
    let out = outstanding(change.sql(), key_id).await?;
    match patch.remaining {
        Patch::Keep if purse.is_none() && !patch.refill.is_keep() => {
            return Err(StoreError::CreditsUnlimited);
        }
        Patch::Keep => {}
        Patch::Clear => return set_balance(change.sql(), key_id, None, out, by.now).await,
        Patch::Set(balance) => {
            void_silent(change.sql(), key_id).await?;
            set_balance(change.sql(), key_id, Some(balance), out, by.now).await?;
        }
    }
    match patch.refill {
        Patch::Keep => Ok(()),
        Patch::Clear => put_refill(change, key_id, None, by.now).await,
        Patch::Set(refill) => put_refill(change, key_id, Some(refill), by.now).await,
    }
}

/// New terms count from now on: nothing is due for the time before them.
async fn put_refill(
    change: &mut Change<'_>,
    key_id: &str,
    refill: Option<CreditRefill>,
    now: Millis,
) -> Result<(), StoreError> {
    const SET: &str = "UPDATE keys SET refill_every = $2, refill_day = $3, refill_amount = $4,
        refilled_at = $5 WHERE id = $1";
    let (every, day, amount) = refill_columns(refill);
    change.sql().run(SET, binds![key_id, every, day, amount, now]).await?;
    Ok(())
}
