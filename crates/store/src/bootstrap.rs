//! The first tenant and the operator's root key, which a fresh database cannot do without.
//! Only the key's HMAC comes in here; its text never does.

use tollkeeper_core::{Millis, Permissions};
use tollkeeper_decide::KeyHash;

use crate::bind::binds;
use crate::change::Change;
use crate::db::Db;
use crate::outbox::{Changed, hash_of};
use crate::{Each, Fault, Store, StoreError, ids};

/// Part of every cell name of this tenant, so it is the same on every node and never changes.
pub(crate) const TENANT_SLUG: &str = "default";
const TENANT_NAME: &str = "Default";

/// Where the operator's key came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrigin {
    /// From the settings: valid while it is given, and only then.
    Given,
    /// Made at a start without one where there was none, shown once: valid until a given one takes its place.
    Generated,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bootstrapped {
    pub tenant_id: String,
    pub root_key_id: String,
    pub key: BootstrapKey,
}

/// What became of the bootstrap key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootstrapKey {
    Made,
    Kept,
    /// The one before it is refused from now on.
    Replaced,
}

// === impl Store ===

impl Store {
    /// Makes the default tenant unless it is there, and sees to it that its operator has a root key, in one transaction: of
    /// several first starts at once one makes the key, and to the others it is kept.
    ///
    /// A given key takes the place of the one before it. A generated one only where there is none, or in a file the one that
    /// is there was given and is not given any more: other nodes of a server may well have been given it.
    pub async fn bootstrap(
        &self,
        root_key_hash: KeyHash,
        pepper_id: i64,
        origin: KeyOrigin,
        now: Millis,
    ) -> Result<Bootstrapped, StoreError> {
        let is_shared = matches!(self.db, Db::Pg(_));
        let mut change = self.change(now).await?;
        let tenant_id = default_tenant(&mut change, now).await?;
        let before = operator(&mut change).await?;
        let stays = before
            .as_ref()
            .is_some_and(|before| is_shared || before.is_generated || before.hash == root_key_hash);
        let installed = if origin == KeyOrigin::Generated && stays {
            None
        } else {
            install(&mut change, &tenant_id, (root_key_hash, pepper_id), origin, now).await?
        };
        let Some(root_key_id) = installed else {
            let kept = operator(&mut change).await?.ok_or(Fault::Unreadable("root key"))?;
            let kept = Bootstrapped { tenant_id, root_key_id: kept.id, key: BootstrapKey::Kept };
            return Ok(change.commit(kept).await?.value);
        };
        let key = match &before {
            None => BootstrapKey::Made,
            Some(before) if before.hash == root_key_hash => BootstrapKey::Kept,
            Some(_) => BootstrapKey::Replaced,
        };
        if key != BootstrapKey::Kept {
            // The new one as well: whoever asked for it too early was told that there is none, and nodes remember that.
            let hashes = before.map(|before| before.hash).into_iter().chain([root_key_hash]);
            for hash in hashes {
                change.announce(&tenant_id, Changed::RootKey { id: root_key_id.clone(), hash });
            }
            change.audit_of(&tenant_id, None, "bootstrap", &root_key_id, None, None).await?;
        }
        let made = Bootstrapped { tenant_id, root_key_id, key };
        Ok(change.commit(made).await?.value)
    }
}

// === impl KeyOrigin ===

impl KeyOrigin {
    fn name(self) -> &'static str {
        match self {
            Self::Given => "bootstrap (given)",
            Self::Generated => "bootstrap",
        }
    }
}

async fn default_tenant(change: &mut Change<'_>, now: Millis) -> Result<String, StoreError> {
    const MAKE: &str = "INSERT INTO tenants (id, slug, name, enabled, created_at)
        VALUES ($1, $2, $3, TRUE, $4) ON CONFLICT (slug) DO NOTHING";
    const FIND: &str = "SELECT id FROM tenants WHERE slug = $1";
    let id = ids::fresh(ids::TENANT)?;
    if change.sql().run(MAKE, binds![&id, TENANT_SLUG, TENANT_NAME, now]).await? > 0 {
        change.begin_chain(&id).await?;
    }
    let (id,): (String,) = change.sql().one(FIND, binds![TENANT_SLUG]).await?;
    Ok(id)
}

/// The operator's key as it is stored.
struct Operator {
    id: String,
    hash: KeyHash,
    is_generated: bool,
}

async fn operator(change: &mut Change<'_>) -> Result<Option<Operator>, StoreError> {
    const FIND: &str = "SELECT id, hash, name = $1 AND enabled FROM root_keys WHERE operator";
    let generated = KeyOrigin::Generated.name();
    let stored: Option<(String, Vec<u8>, bool)> =
        change.sql().optional(FIND, binds![generated]).await?;
    let Some((id, hash, is_generated)) = stored else { return Ok(None) };
    Ok(Some(Operator { id, hash: hash_of(&hash)?, is_generated }))
}

/// The bootstrap key is valid while it is given, so installing it also enables it again. A generated one that is given back,
/// from the environment of whoever wrote it down, stays the generated one: it must not end with the next start without it.
///
/// `None`: another start was faster, and on a server its key stays, unless ours was given.
async fn install(
    change: &mut Change<'_>,
    tenant_id: &str,
    (hash, pepper_id): (KeyHash, i64),
    origin: KeyOrigin,
    now: Millis,
) -> Result<Option<String>, StoreError> {
    const UPSERT: &str = "INSERT INTO root_keys
            (id, tenant_id, hash, pepper_id, name, permissions, operator, enabled, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, TRUE, TRUE, $7)
        ON CONFLICT (operator) WHERE operator DO UPDATE SET
            hash = excluded.hash, pepper_id = excluded.pepper_id, enabled = TRUE,
            permissions = excluded.permissions,
            name = CASE WHEN root_keys.hash = excluded.hash AND root_keys.name = $8
                THEN root_keys.name ELSE excluded.name END,
            created_at = CASE WHEN root_keys.hash = excluded.hash
                THEN root_keys.created_at ELSE excluded.created_at END
            WHERE $9
        RETURNING id";
    let id = ids::fresh(ids::ROOT_KEY)?;
    let everything =
        serde_json::json!(Permissions::everything().iter().collect::<Vec<_>>()).to_string();
    let (name, generated) = (origin.name(), KeyOrigin::Generated.name());
    let may_replace = origin == KeyOrigin::Given || matches!(change.sql(), Each::Lite(_));
    let binds =
        binds![&id, tenant_id, &hash, pepper_id, name, &everything, now, generated, may_replace,];
    let installed = change.sql().optional(UPSERT, binds).await;
    // The row of the operator is updated, so only another key's hash can be in the way.
    let installed: Option<(String,)> =
        installed.map_err(|error| error.taken_as(StoreError::RootKeyTaken))?;
    Ok(installed.map(|(id,)| id))
}
