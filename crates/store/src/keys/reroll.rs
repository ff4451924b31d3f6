//! A new text for an old key: everything else goes over to the new one, and the old one ends after a while.

use std::sync::Arc;

use serde_json::json;
use tollkeeper_core::{Millis, SealedSecret};

use crate::announce::announce_key;
use crate::bind::{binds, moment, signed, unsigned};
use crate::change::{By, Change, Written};
use crate::credits::{open_purse, outstanding};
use crate::keys::audited::audited_key;
use crate::keys::row::lock_key;
use crate::keys::terms::KeySecret;
use crate::{Fault, Store, StoreError, Thing, ids};

#[derive(Clone, Debug)]
pub struct Reroll {
    /// From [`Store::fresh_key_id`], where a ciphertext had to be bound to it beforehand.
    pub id: Option<String>,
    pub secret: KeySecret,
    /// Until when the old key is good; as before where it is not given, and never longer than before.
    pub old_expires: Option<Millis>,
    /// Binds the signing secret, if there is one, to the new key. Done under the lock of the change: whoever gives the old
    /// key another secret meanwhile does so before or after it.
    pub reseal: Reseal,
}

/// Opens a signing secret of the old key, and seals it for the new one; `None` where it cannot be opened.
#[derive(Clone)]
pub struct Reseal(Arc<Resealing>);

type Resealing = dyn Fn(&SealedSecret) -> Option<SealedSecret> + Send + Sync;

// === impl Store ===

impl Store {
    /// Returns the id of the new key.
    pub async fn reroll_key(
        &self,
        by: By<'_>,
        key_id: &str,
        reroll: Reroll,
    ) -> Result<Written<String>, StoreError> {
        const EXPIRE: &str = "UPDATE keys SET expires = $2 WHERE id = $1";
        let mut change = self.change(by.now).await?;
        let old = lock_key(&mut change, by, key_id).await?;
        if old.revoked_at.is_some() {
            return Err(StoreError::Revoked);
        }
        let before = audited_key(&mut change, key_id).await?;
        let id = match reroll.id {
            Some(id) => id,
            None => ids::fresh(ids::KEY)?,
        };
        let signing = reroll.reseal.apply(old.signing)?;
        copy_row(&mut change, by, (key_id, &id), &reroll.secret, signing.as_ref()).await?;
        copy_parts(&mut change, key_id, &id).await?;
        let expires = match (moment(old.expires), reroll.old_expires) {
            (Some(own), Some(given)) => Some(own.min(given)),
            (own, given) => own.or(given),
        };
        change.sql().run(EXPIRE, binds![key_id, expires]).await?;
        announce_key(&mut change, key_id).await?;
        announce_key(&mut change, &id).await?;
        let after = json!({ "keyId": id, "oldExpires": expires.map(|at| at.0) });
        change.audit(by, "keys.reroll", key_id, Some(before), Some(after)).await?;
        change.commit(id).await
    }
}

// === impl Reseal ===

impl Reseal {
    pub fn new(
        reseal: impl Fn(&SealedSecret) -> Option<SealedSecret> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(reseal))
    }

    /// A secret that cannot be opened stops the change: the new key would not want signed requests any more.
    fn apply(&self, old: Option<Vec<u8>>) -> Result<Option<SealedSecret>, StoreError> {
        let Some(old) = old.map(SealedSecret::new) else { return Ok(None) };
        let new = (self.0)(&old).ok_or(Fault::Unreadable("signing secret"))?;
        Ok(Some(new))
    }
}

impl std::fmt::Debug for Reseal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reseal")
    }
}

/// The new key starts with the old one's whole balance, what processes hold of it included.
async fn copy_row(
    change: &mut Change<'_>,
    by: By<'_>,
    (from, to): (&str, &str),
    secret: &KeySecret,
    signing: Option<&SealedSecret>,
) -> Result<(), StoreError> {
    const COPY: &str = "INSERT INTO keys (id, tenant_id, project_id, hash, hash_kind, pepper_id,
            start, name, prefix, byte_length, meta, enabled, expires, ip_allowlist, tier,
            identity_id, credits_remaining, refill_every, refill_day, refill_amount, refilled_at,
            recoverable, created_at, signing)
        SELECT $2, tenant_id, project_id, $3, 'hmac', $4, $5, name, $6, $7, meta, enabled, expires,
            ip_allowlist, tier, identity_id, $8, refill_every, refill_day, refill_amount,
            refilled_at, $9, $10, $11
        FROM keys WHERE id = $1 ON CONFLICT DO NOTHING";
    let purse = open_purse(change.sql(), from, by.now).await?;
    let out = outstanding(change.sql(), from).await?;
    let balance = purse.map(|purse| signed(unsigned(purse.remaining + out)));
    let binds = binds![
        from,
        to,
        &secret.hash,
        secret.pepper_id,
        &secret.start,
        &secret.prefix,
        secret.byte_length.map(i64::from),
        balance,
        secret.recoverable.as_deref(),
        by.now,
        signing.map(SealedSecret::bytes),
    ];
    let copied = change.sql().run(COPY, binds).await?;
    if copied == 0 { Err(StoreError::Taken { what: Thing::Key }) } else { Ok(()) }
}

async fn copy_parts(change: &mut Change<'_>, from: &str, to: &str) -> Result<(), StoreError> {
    const PERMISSIONS: &str = "INSERT INTO key_permissions (key_id, permission_id)
        SELECT $2, permission_id FROM key_permissions WHERE key_id = $1";
    const ROLES: &str = "INSERT INTO key_roles (key_id, role_id)
        SELECT $2, role_id FROM key_roles WHERE key_id = $1";
    const LIMITS: &str = "SELECT id FROM limits WHERE owner_id = $1";
    const LIMIT: &str = "INSERT INTO limits (id, tenant_id, owner_id, name, quota, duration_ms,
            auto_apply, algorithm, burst, consistency, on_outage)
        SELECT $3, tenant_id, $2, name, quota, duration_ms, auto_apply, algorithm, burst,
            consistency, on_outage FROM limits WHERE id = $1";
    change.sql().run(PERMISSIONS, binds![from, to]).await?;
    change.sql().run(ROLES, binds![from, to]).await?;
    let limits: Vec<(String,)> = change.sql().all(LIMITS, binds![from]).await?;
    for (limit,) in limits {
        let id = ids::fresh(ids::LIMIT)?;
        change.sql().run(LIMIT, binds![&limit, to, &id]).await?;
    }
    Ok(())
}
