//! Keys that come from elsewhere, as plain SHA-256 hashes. One that cannot be taken does not hold up the rest.

use serde_json::json;
use sha2::{Digest, Sha256};
use tollkeeper_decide::KeyHash;

use crate::announce::announce_key;
use crate::bind::binds;
use crate::change::{By, Written};
use crate::db::Purpose;
use crate::keys::create::{Parts, find_project, insert};
use crate::keys::terms::{KeySecret, KeyTerms};
use crate::outbox::{Changed, HashKind, StoredHash, hash_of};
use crate::{Store, StoreError, Thing, ids};

#[derive(Clone, Debug)]
pub struct ImportedKey {
    /// From [`Store::fresh_key_id`], where a ciphertext had to be bound to it beforehand.
    pub id: Option<String>,
    /// SHA-256 of the key's whole text.
    pub hash: KeyHash,
    pub terms: KeyTerms,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Hash and new id, in the order given.
    pub migrated: Vec<(KeyHash, String)>,
    pub failed: Vec<(KeyHash, ImportFailure)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportFailure {
    /// This tenant has a key with this hash already, or it stands in the list twice.
    Known,
    NoSuchRole(String),
    /// Two limits of one name.
    LimitTwice,
}

// === impl Store ===

impl Store {
    /// From then on keys of this tenant need not carry our checksum.
    pub async fn import_keys(
        &self,
        by: By<'_>,
        project_id: &str,
        migration_id: &str,
        keys: Vec<ImportedKey>,
    ) -> Result<Written<Imported>, StoreError> {
        const HAS_IMPORTS: &str =
            "UPDATE tenants SET has_imports = TRUE WHERE id = $1 AND NOT has_imports";
        let mut change = self.change(by.now).await?;
        find_project(&mut change, by.tenant_id, project_id).await?;
        let mut imported = Imported::default();
        for ImportedKey { id, hash, terms } in keys {
            if twice_named(&terms) {
                imported.failed.push((hash, ImportFailure::LimitTwice));
                continue;
            }
            let parts = match Parts::prepare(&mut change, by, &terms).await {
                Ok(parts) => parts,
                Err(StoreError::NotFound { what: Thing::Role, named }) => {
                    imported.failed.push((hash, ImportFailure::NoSuchRole(named)));
                    continue;
                }
                Err(error) => return Err(error),
            };
            let id = match id {
                Some(id) => id,
                None => ids::fresh(ids::KEY)?,
            };
            let bound = imported_hash(by.tenant_id, hash);
            let stored = StoredHash { hash: bound, kind: HashKind::Sha256 };
            let place = (id.as_str(), project_id);
            let secret = KeySecret::unknown(bound);
            if insert(&mut change, by, place, stored, &secret, &terms, parts).await? {
                announce_key(&mut change, &id).await?;
                imported.migrated.push((hash, id));
            } else {
                imported.failed.push((hash, ImportFailure::Known));
            }
        }
        if !imported.migrated.is_empty()
            && change.sql().run(HAS_IMPORTS, binds![by.tenant_id]).await? > 0
        {
            change.announce(by.tenant_id, Changed::Tenant);
        }
        let (migrated, failed) = (imported.migrated.len(), imported.failed.len());
        let key_ids: Vec<&str> = imported.migrated.iter().map(|(_, id)| id.as_str()).collect();
        let after = json!({
            "migrationId": migration_id, "migrated": migrated, "failed": failed, "keyIds": key_ids
        });
        change.audit(by, "keys.migrate", project_id, None, Some(after)).await?;
        change.commit(imported).await
    }
}

/// What an imported key is kept and found by: the SHA-256 of its text, bound to the tenant that brought it in. Two
/// tenants that bring in the same key have two keys, and neither learns of the other.
pub fn imported_hash(tenant_id: &str, sha256: KeyHash) -> KeyHash {
    // The text is of one length, and so is the hash: nothing that a tenant is called can pass for another's.
    let hash = Sha256::new().chain_update(b"tollkeeper import 1").chain_update(sha256.0);
    KeyHash(hash.chain_update(tenant_id).finalize().into())
}

impl Store {
    /// Binds imported keys from before to their tenants; done when a database is opened, and nothing where there are
    /// none. A configuration that comes from an older backup may bring some again.
    pub(crate) async fn bind_imports(&self) -> Result<(), StoreError> {
        const UNBOUND: &str = "SELECT id, tenant_id, hash FROM keys
            WHERE hash_kind = 'sha256' AND id > $1 ORDER BY id LIMIT 500";
        // Whoever brought it in again meanwhile, through a node that binds, has it already.
        const BIND: &str = "UPDATE keys SET hash = $2, hash_kind = $3
            WHERE id = $1 AND hash_kind = 'sha256'
                AND NOT EXISTS (SELECT 1 FROM keys k WHERE k.hash = $2 AND k.hash_kind = $3)";
        let mut after = String::new();
        loop {
            let from = self.db.read(Purpose::Background);
            let page: Vec<(String, String, Vec<u8>)> = from.all(UNBOUND, binds![&after]).await?;
            let Some((last, ..)) = page.last() else { return Ok(()) };
            after.clone_from(last);
            let mut begun = self.db.begin(Purpose::Background).await?;
            for (id, tenant_id, hash) in &page {
                let bound = imported_hash(tenant_id, hash_of(hash)?);
                begun.conn().run(BIND, binds![id, &bound, HashKind::Sha256.text()]).await?;
            }
            begun.commit().await?;
        }
    }
}

fn twice_named(terms: &KeyTerms) -> bool {
    let names = terms.limits.iter().map(|limit| &limit.name);
    names.clone().enumerate().any(|(at, name)| names.clone().take(at).any(|before| before == name))
}

// === impl KeySecret ===

impl KeySecret {
    /// Of a text that we never saw.
    fn unknown(hash: KeyHash) -> Self {
        Self {
            hash,
            pepper_id: 0,
            start: String::new(),
            prefix: None,
            byte_length: None,
            recoverable: None,
        }
    }
}
