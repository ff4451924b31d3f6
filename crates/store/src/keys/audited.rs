//! A key as the audit tells of it: its row and everything that hangs on it. Never its text, its hash or a ciphertext.

use serde_json::{Value, json};

use crate::StoreError;
use crate::bind::{binds, unsigned};
use crate::change::{Change, as_json};
use crate::credits::outstanding;
use crate::keys::grants::{names_of, own_permissions, own_roles};
use crate::keys::row::{KeyRow, key_columns};
use crate::limits::{list_to_json, own_limits};
use crate::roles::slugs_of;

/// As it stands at this point of the change, read back: what is told is what is stored. Also of a key that was deleted.
pub(crate) async fn audited_key(
    change: &mut Change<'_>,
    key_id: &str,
) -> Result<Value, StoreError> {
    const ROW: &str = concat!("SELECT ", key_columns!(), " FROM keys WHERE id = $1");
    const OWNER: &str = "SELECT external_id FROM identities WHERE id = $1";
    let row: KeyRow = change.sql().one(ROW, binds![key_id]).await?;
    let owner: Option<(String,)> = match &row.identity_id {
        Some(identity_id) => change.sql().optional(OWNER, binds![identity_id]).await?,
        None => None,
    };
    let out = outstanding(change.sql(), key_id).await?;
    let limits = own_limits(change, key_id).await?;
    let permissions = slugs_of(&own_permissions(change, key_id).await?);
    let roles = names_of(&own_roles(change, key_id).await?);
    Ok(json!({
        "projectId": row.project_id, "start": row.start, "name": row.name,
        "meta": row.meta.as_deref().map(as_json), "enabled": row.enabled, "expires": row.expires,
        "revokedAt": row.revoked_at, "revokedReason": row.revoked_reason,
        "ipAllowlist": as_json(&row.ip_allowlist), "tier": row.tier,
        "identityId": row.identity_id, "externalId": owner.map(|(external_id,)| external_id),
        // With what processes hold of it, as everybody else is shown the balance.
        "credits": row.credits_remaining.map(|remaining| unsigned(remaining + out)),
        "refillEvery": row.refill_every, "refillDay": row.refill_day,
        "refillAmount": row.refill_amount, "recoverable": row.recoverable.is_some(),
        "signing": row.signing.is_some(),
        "ratelimits": list_to_json(&limits), "permissions": permissions, "roles": roles,
    }))
}
