//! Taking a key out of use: revoked, it is known as revoked; deleted, it is not known at all.

use serde_json::json;

use crate::announce::announce_key;
use crate::bind::binds;
use crate::change::{By, Written};
use crate::keys::audited::audited_key;
use crate::keys::row::lock_key;
use crate::limits::drop_limits;
use crate::{Store, StoreError, Thing};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// The row stays, for the record.
    Soft,
    /// Nothing stays but the audit. Also for a key that was deleted softly before.
    Permanent,
}

// === impl Store ===

impl Store {
    pub async fn delete_key(
        &self,
        by: By<'_>,
        key_id: &str,
        deletion: Deletion,
    ) -> Result<Written<()>, StoreError> {
        const FIND: &str = "UPDATE keys SET deleted_at = COALESCE(deleted_at, $3)
            WHERE tenant_id = $1 AND id = $2 AND (deleted_at IS NULL OR $4) RETURNING id";
        const DELETE: &str = "DELETE FROM keys WHERE id = $1";
        let mut change = self.change(by.now).await?;
        let permanent = deletion == Deletion::Permanent;
        let binds = binds![by.tenant_id, key_id, by.now, permanent];
        let found: Option<(String,)> = change.sql().optional(FIND, binds).await?;
        found.ok_or_else(|| StoreError::no(Thing::Key, key_id))?;
        let mut before = audited_key(&mut change, key_id).await?;
        before["permanent"] = permanent.into();
        announce_key(&mut change, key_id).await?;
        if permanent {
            drop_limits(&mut change, key_id).await?;
            change.sql().run(DELETE, binds![key_id]).await?;
        }
        change.audit(by, "keys.delete", key_id, Some(before), None).await?;
        change.commit(()).await
    }

    /// For good: the first revocation counts, with its moment and reason.
    pub async fn revoke_key(
        &self,
        by: By<'_>,
        key_id: &str,
        reason: Option<&str>,
    ) -> Result<Written<()>, StoreError> {
        const REVOKE: &str = "UPDATE keys SET revoked_at = $2, revoked_reason = $3
            WHERE id = $1 AND revoked_at IS NULL";
        let mut change = self.change(by.now).await?;
        let row = lock_key(&mut change, by, key_id).await?;
        change.sql().run(REVOKE, binds![key_id, by.now, reason]).await?;
        announce_key(&mut change, key_id).await?;
        let before = json!({ "revokedAt": row.revoked_at });
        let after = json!({ "revokedAt": row.revoked_at.or(Some(by.now.0.cast_signed())),
            "reason": row.revoked_reason.as_deref().or(reason) });
        change.audit(by, "keys.revoke", key_id, Some(before), Some(after)).await?;
        change.commit(()).await
    }
}
