//! Which keys a change touches: each is announced by name, or all of a tenant's when they are too many to name.

use crate::bind::binds;
use crate::change::Change;
use crate::outbox::{Changed, HashKind, StoredHash, hash_of};
use crate::{Bind, StoreError};

/// More keys than this are not named one by one: forgetting all keys of a tenant costs each node less than reading
/// so many rows, and the change stays short.
const NAMED_MAX: usize = 1000;

/// What the keys in question have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeysOf {
    Project,
    Identity,
    Role,
    /// Directly or through a role.
    Permission,
}

pub(crate) async fn announce_key(change: &mut Change<'_>, key_id: &str) -> Result<(), StoreError> {
    const ONE: &str = "SELECT tenant_id, id, hash, hash_kind FROM keys WHERE id = $1";
    say(change, ONE, binds![key_id]).await
}

/// The identity, for who looks it up by name, and all keys that carry it.
pub(crate) async fn announce_identity(
    change: &mut Change<'_>,
    tenant_id: &str,
    id: &str,
    external_id: &str,
) -> Result<(), StoreError> {
    let (id, external_id) = (id.to_owned(), external_id.to_owned());
    announce_keys(change, KeysOf::Identity, &id).await?;
    change.announce(tenant_id, Changed::Identity { id, external_id });
    Ok(())
}

/// Called while the bond is still there: before a role is deleted, not after.
pub(crate) async fn announce_keys(
    change: &mut Change<'_>,
    of: KeysOf,
    id: &str,
) -> Result<(), StoreError> {
    const OF_PROJECT: &str = "SELECT tenant_id, id, hash, hash_kind FROM keys
        WHERE project_id = $1 AND deleted_at IS NULL LIMIT $2";
    const OF_IDENTITY: &str = "SELECT tenant_id, id, hash, hash_kind FROM keys
        WHERE identity_id = $1 AND deleted_at IS NULL LIMIT $2";
    const OF_ROLE: &str = "SELECT k.tenant_id, k.id, k.hash, k.hash_kind FROM keys k
        JOIN key_roles kr ON kr.key_id = k.id
        WHERE kr.role_id = $1 AND k.deleted_at IS NULL LIMIT $2";
    const OF_PERMISSION: &str = "SELECT k.tenant_id, k.id, k.hash, k.hash_kind FROM keys k
        WHERE k.deleted_at IS NULL AND k.id IN (
            SELECT key_id FROM key_permissions WHERE permission_id = $1
            UNION SELECT kr.key_id FROM key_roles kr
                JOIN role_permissions rp ON rp.role_id = kr.role_id WHERE rp.permission_id = $1)
        LIMIT $2";
    let statement = match of {
        KeysOf::Project => OF_PROJECT,
        KeysOf::Identity => OF_IDENTITY,
        KeysOf::Role => OF_ROLE,
        KeysOf::Permission => OF_PERMISSION,
    };
    let most = i64::try_from(NAMED_MAX).unwrap_or(i64::MAX).saturating_add(1);
    say(change, statement, binds![id, most]).await
}

async fn say(
    change: &mut Change<'_>,
    statement: &'static str,
    binds: &[Bind<'_>],
) -> Result<(), StoreError> {
    let keys: Vec<(String, String, Vec<u8>, String)> = change.sql().all(statement, binds).await?;
    if let Some((tenant_id, ..)) = keys.first().filter(|_| keys.len() > NAMED_MAX) {
        change.announce(tenant_id, Changed::KeysOfTenant);
        return Ok(());
    }
    for (tenant_id, id, hash, kind) in keys {
        let hash = StoredHash { hash: hash_of(&hash)?, kind: HashKind::of(&kind)? };
        change.announce(&tenant_id, Changed::Key { id, hash });
    }
    Ok(())
}
