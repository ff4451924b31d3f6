//! A key's row as it is read, and the lock that a change of one key begins with.

use crate::bind::binds;
use crate::change::{By, Change};
use crate::{StoreError, Thing};

#[derive(Clone, sqlx::FromRow)]
pub(crate) struct KeyRow {
    pub(crate) id: String,
    pub(crate) project_id: String,
    pub(crate) hash: Vec<u8>,
    pub(crate) hash_kind: String,
    pub(crate) pepper_id: i64,
    pub(crate) start: String,
    pub(crate) name: Option<String>,
    pub(crate) prefix: Option<String>,
    pub(crate) byte_length: Option<i64>,
    pub(crate) meta: Option<String>,
    pub(crate) enabled: bool,
    pub(crate) expires: Option<i64>,
    pub(crate) revoked_at: Option<i64>,
    pub(crate) revoked_reason: Option<String>,
    pub(crate) ip_allowlist: String,
    pub(crate) tier: Option<String>,
    pub(crate) identity_id: Option<String>,
    pub(crate) credits_remaining: Option<i64>,
    pub(crate) refill_every: Option<String>,
    pub(crate) refill_day: Option<i64>,
    pub(crate) refill_amount: Option<i64>,
    pub(crate) refilled_at: Option<i64>,
    pub(crate) recoverable: Option<Vec<u8>>,
    pub(crate) signing: Option<Vec<u8>>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: Option<i64>,
    pub(crate) last_used_at: Option<i64>,
}

macro_rules! key_columns {
    () => {
        "id, project_id, hash, hash_kind, pepper_id, start, name, prefix, byte_length, meta, enabled,
        expires, revoked_at, revoked_reason, ip_allowlist, tier, identity_id, credits_remaining,
        refill_every, refill_day, refill_amount, refilled_at, recoverable, signing, created_at,
        updated_at, last_used_at"
    };
}

pub(crate) use key_columns;

/// The key as it was, locked until the change ends.
pub(crate) async fn lock_key(
    change: &mut Change<'_>,
    by: By<'_>,
    key_id: &str,
) -> Result<KeyRow, StoreError> {
    const LOCK: &str = concat!(
        "UPDATE keys SET updated_at = $3 WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL
        RETURNING ",
        key_columns!()
    );
    let row = change.sql().optional(LOCK, binds![by.tenant_id, key_id, by.now]).await?;
    row.ok_or_else(|| StoreError::no(Thing::Key, key_id))
}
