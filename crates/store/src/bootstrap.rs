//! The first tenant and the operator's root key, which a fresh database cannot do without.
//! Only the key's HMAC comes in here; its text never does.

use tollkeeper_core::{Millis, Permissions};
use tollkeeper_decide::KeyHash;

use crate::bind::binds;
use crate::change::Change;
use crate::db::Purpose;
use crate::outbox::{Changed, hash_of};
use crate::{Store, StoreError, ids};

/// Part of every cell name of this tenant, so it is the same on every node and never changes.
pub(crate) const TENANT_SLUG: &str = "default";
const TENANT_NAME: &str = "Default";

/// Where the operator's key came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrigin {
    /// From the settings: valid while it is given, and only then.
    Given,
    /// Made at a start without one, shown once: valid until another takes its place.
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
    /// Whether a start without a given key has one to go on with, so that none has to be generated.
    pub async fn has_generated_key(&self) -> Result<bool, StoreError> {
        const FIND: &str = "SELECT id FROM root_keys WHERE operator AND enabled AND name = $1";
        let name = KeyOrigin::Generated.name();
        let found: Option<(String,)> =
            self.db.read(Purpose::Admin).optional(FIND, binds![name]).await?;
        Ok(found.is_some())
    }

    /// Makes the default tenant unless it is there, and this key its operator's only root key.
    pub async fn bootstrap(
        &self,
        root_key_hash: KeyHash,
        pepper_id: i64,
        origin: KeyOrigin,
        now: Millis,
    ) -> Result<Bootstrapped, StoreError> {
        let mut change = self.change(now).await?;
        let tenant_id = default_tenant(&mut change, now).await?;
        let before = operator_hash(&mut change).await?;
        let root_key_id =
            install(&mut change, &tenant_id, (root_key_hash, pepper_id), origin, now).await?;
        let key = match before {
            None => BootstrapKey::Made,
            Some(same) if same == root_key_hash => BootstrapKey::Kept,
            Some(hash) => {
                change.announce(&tenant_id, Changed::RootKey { id: root_key_id.clone(), hash });
                BootstrapKey::Replaced
            }
        };
        if key != BootstrapKey::Kept {
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

async fn operator_hash(change: &mut Change<'_>) -> Result<Option<KeyHash>, StoreError> {
    const FIND: &str = "SELECT hash FROM root_keys WHERE operator";
    let stored: Option<(Vec<u8>,)> = change.sql().optional(FIND, &[]).await?;
    Ok(stored.map(|(hash,)| hash_of(&hash)).transpose()?)
}

/// The bootstrap key is valid while it is given, so installing it also enables it again.
async fn install(
    change: &mut Change<'_>,
    tenant_id: &str,
    (hash, pepper_id): (KeyHash, i64),
    origin: KeyOrigin,
    now: Millis,
) -> Result<String, StoreError> {
    const UPSERT: &str = "INSERT INTO root_keys
            (id, tenant_id, hash, pepper_id, name, permissions, operator, enabled, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, TRUE, TRUE, $7)
        ON CONFLICT (operator) WHERE operator DO UPDATE SET
            hash = excluded.hash, pepper_id = excluded.pepper_id, enabled = TRUE,
            permissions = excluded.permissions, name = excluded.name,
            created_at = CASE WHEN root_keys.hash = excluded.hash
                THEN root_keys.created_at ELSE excluded.created_at END
        RETURNING id";
    let id = ids::fresh(ids::ROOT_KEY)?;
    let everything =
        serde_json::json!(Permissions::everything().iter().collect::<Vec<_>>()).to_string();
    let installed = change
        .sql()
        .one(UPSERT, binds![&id, tenant_id, &hash, pepper_id, origin.name(), &everything, now])
        .await;
    // The row of the operator is updated, so only another key's hash can be in the way.
    let (id,): (String,) = installed.map_err(|error| error.taken_as(StoreError::RootKeyTaken))?;
    Ok(id)
}
