//! The first tenant and the operator's root key, which a fresh database cannot do without.
//! Only the key's HMAC comes in here; its text never does.

use sqlx::SqliteConnection;
use tollkeeper_core::{Millis, Permissions};
use tollkeeper_decide::KeyHash;

use crate::{Store, StoreError, ids};

/// Part of every cell name of this tenant, so it is the same on every node and never changes.
const TENANT_SLUG: &str = "default";
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
        let found: Option<String> =
            sqlx::query_scalar(FIND).bind(name).fetch_optional(&self.read).await?;
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
        let mut change = self.change().await?;
        let tenant_id = default_tenant(&mut change, now).await?;
        let key = what_becomes(&mut change, root_key_hash).await?;
        let root_key_id =
            install(&mut change, &tenant_id, (root_key_hash, pepper_id), origin, now).await?;
        change.commit().await?;
        Ok(Bootstrapped { tenant_id, root_key_id, key })
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

async fn default_tenant(change: &mut SqliteConnection, now: Millis) -> Result<String, StoreError> {
    const MAKE: &str = "INSERT INTO tenants (id, slug, name, enabled, created_at)
        VALUES ($1, $2, $3, TRUE, $4) ON CONFLICT (slug) DO NOTHING";
    const FIND: &str = "SELECT id FROM tenants WHERE slug = $1";
    sqlx::query(MAKE)
        .bind(ids::fresh(ids::TENANT)?)
        .bind(TENANT_SLUG)
        .bind(TENANT_NAME)
        .bind(now.0.cast_signed())
        .execute(&mut *change)
        .await?;
    Ok(sqlx::query_scalar(FIND).bind(TENANT_SLUG).fetch_one(change).await?)
}

async fn what_becomes(
    change: &mut SqliteConnection,
    hash: KeyHash,
) -> Result<BootstrapKey, StoreError> {
    const FIND: &str = "SELECT hash FROM root_keys WHERE operator";
    let stored: Option<Vec<u8>> = sqlx::query_scalar(FIND).fetch_optional(change).await?;
    Ok(match stored {
        None => BootstrapKey::Made,
        Some(same) if same == hash.0 => BootstrapKey::Kept,
        Some(_) => BootstrapKey::Replaced,
    })
}

/// The bootstrap key is valid while it is given, so installing it also enables it again.
async fn install(
    change: &mut SqliteConnection,
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
    let installed = sqlx::query_scalar(UPSERT)
        .bind(ids::fresh(ids::ROOT_KEY)?)
        .bind(tenant_id)
        .bind(hash.0.as_slice())
        .bind(pepper_id)
        .bind(origin.name())
        .bind(serde_json::json!(Permissions::everything().iter().collect::<Vec<_>>()).to_string())
        .bind(now.0.cast_signed())
        .fetch_one(change)
        .await;
    installed.map_err(|error| match error.as_database_error() {
        // The row of the operator is updated, so only another key's hash can be in the way.
        Some(from) if from.is_unique_violation() => StoreError::RootKeyTaken,
        _ => error.into(),
    })
}
