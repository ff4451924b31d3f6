//! Keys that come from elsewhere, as plain SHA-256 hashes. One that cannot be taken does not hold up the rest.

use serde_json::json;
use tollkeeper_decide::KeyHash;

use crate::announce::announce_key;
use crate::bind::binds;
use crate::change::{By, Written};
use crate::keys::create::{Parts, find_project, insert};
use crate::keys::terms::{KeySecret, KeyTerms};
use crate::outbox::{Changed, HashKind, StoredHash};
use crate::{Store, StoreError, Thing, ids};

#[derive(Clone, Debug)]
pub struct ImportedKey {
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
    /// There is a key with this hash already, here or elsewhere, or twice in the list.
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
        for ImportedKey { hash, terms } in keys {
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
            let id = ids::fresh(ids::KEY)?;
            let stored = StoredHash { hash, kind: HashKind::Sha256 };
            let place = (id.as_str(), project_id);
            let secret = KeySecret::unknown(hash);
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
        let after = json!({ "migrationId": migration_id, "migrated": migrated, "failed": failed });
        change.audit(by, "keys.migrate", project_id, None, Some(after)).await?;
        change.commit(imported).await
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
