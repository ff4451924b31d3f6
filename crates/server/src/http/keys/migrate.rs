//! `keys.migrateKeys`: keys from elsewhere by their hashes. One that cannot be taken does not hold up the others.

use std::borrow::Cow;

use tollkeeper_decide::KeyHash;
use tollkeeper_store::{ImportFailure, ImportedKey, Store};
use tollkeeper_wire as wire;

use super::super::call::{Call, permit};
use super::super::desk::{self, Author};
use super::super::reply::Reply;
use super::{digest, terms};
use crate::keyring::Keyring;
use crate::status::{Refusal, shown};

pub async fn migrate(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::MigrateKeysRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "api", &request.api_id, "create_key")?;
    let mut given = Given::read(&request);
    let keys = given.keys(&call.app.keyring)?;
    let (project_id, migration_id) = (request.api_id.to_string(), request.migration_id.to_string());
    let author = Author::new(call, &caller);
    let imported = desk::write(call, |store| async move {
        store.import_keys(author.by(), &project_id, &migration_id, keys).await
    })
    .await?;
    let migrated = imported.migrated.into_iter().map(|(hash, key_id)| wire::MigratedKey {
        hash: given.spelling(hash).into(),
        key_id: key_id.into(),
    });
    let migrated = migrated.collect();
    let mut reasons = Vec::with_capacity(imported.failed.len());
    for (hash, why) in imported.failed {
        reasons.push(unmigrated(given.spelling(hash), said(&why)));
    }
    reasons.extend(given.unreadable.iter().map(|hash| unmigrated(hash, NO_HASH.into())));
    let failed = reasons.iter().map(|one| one.hash.clone()).collect();
    let reasons = Some(reasons).filter(|reasons| !reasons.is_empty());
    Ok(desk::reply(call, wire::MigrateKeysReply { migrated, failed, reasons }))
}

const NO_HASH: &str = "This is no SHA-256 in hexadecimal or base64.";

fn unmigrated<'a>(hash: &'a str, reason: Cow<'a, str>) -> wire::UnmigratedKey<'a> {
    wire::UnmigratedKey { hash: hash.into(), reason }
}

fn said(why: &ImportFailure) -> Cow<'static, str> {
    match why {
        ImportFailure::Known => wire::keys::KNOWN_ALREADY.into(),
        ImportFailure::NoSuchRole(role) => {
            format!("There is no role `{}`. Create it first, or leave it out.", shown(role)).into()
        }
        ImportFailure::LimitTwice => "Two of its limits have one name.".into(),
    }
}

/// The keys of a request with their hashes as they were spelled, which is how they are answered.
struct Given<'a> {
    readable: Vec<(KeyHash, &'a wire::MigratingKey<'a>)>,
    unreadable: Vec<&'a str>,
}

// === impl Given ===

impl<'a> Given<'a> {
    fn read(request: &'a wire::MigrateKeysRequest<'a>) -> Self {
        let (mut readable, mut unreadable) = (Vec::new(), Vec::new());
        for key in &request.keys {
            match digest::read(&key.hash) {
                Some(hash) => readable.push((hash, key)),
                None => unreadable.push(&*key.hash),
            }
        }
        Self { readable, unreadable }
    }

    fn keys(&self, keyring: &Keyring) -> Result<Vec<ImportedKey>, Refusal> {
        let foreign = |(hash, key): &(KeyHash, &wire::MigratingKey<'_>)| {
            let id = Store::fresh_key_id().map_err(|error| Refusal::from(&error))?;
            let terms = terms::of_foreign(keyring, &id, key)?;
            Ok(ImportedKey { id: Some(id), hash: *hash, terms })
        };
        self.readable.iter().map(foreign).collect()
    }

    /// How this hash was spelled, once: of two that are equal the first was taken.
    fn spelling(&mut self, hash: KeyHash) -> &'a str {
        let at = self.readable.iter().position(|(given, _)| *given == hash);
        at.map_or("", |at| &*self.readable.remove(at).1.hash)
    }
}
