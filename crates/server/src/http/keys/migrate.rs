//! `keys.migrateKeys`: keys from elsewhere by their hashes. One that cannot be taken does not hold up the others.

use tollkeeper_decide::KeyHash;
use tollkeeper_store::ImportedKey;
use tollkeeper_wire as wire;

use super::super::call::{Call, permit};
use super::super::desk::{self, Author};
use super::super::reply::Reply;
use super::{digest, terms};
use crate::status::Refusal;

pub async fn migrate(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::MigrateKeysRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "api", &request.api_id, "create_key")?;
    let mut given = Given::read(&request);
    let keys = given.keys()?;
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
    Ok(desk::reply(call, wire::MigrateKeysReply { migrated, failed: given.rest() }))
}

/// The keys of a request with their hashes as they were spelled, which is how they are answered.
struct Given<'a> {
    readable: Vec<(KeyHash, &'a wire::MigratingKey<'a>)>,
    failed: Vec<&'a str>,
}

// === impl Given ===

impl<'a> Given<'a> {
    fn read(request: &'a wire::MigrateKeysRequest<'a>) -> Self {
        let (mut readable, mut failed) = (Vec::new(), Vec::new());
        for key in &request.keys {
            match digest::read(&key.hash) {
                Some(hash) => readable.push((hash, key)),
                None => failed.push(&*key.hash),
            }
        }
        Self { readable, failed }
    }

    fn keys(&self) -> Result<Vec<ImportedKey>, Refusal> {
        let foreign = |(hash, key): &(KeyHash, &wire::MigratingKey<'_>)| {
            Ok(ImportedKey { hash: *hash, terms: terms::of_foreign(key)? })
        };
        self.readable.iter().map(foreign).collect()
    }

    /// How this hash was spelled, once: of two that are equal the first was taken.
    fn spelling(&mut self, hash: KeyHash) -> &'a str {
        let at = self.readable.iter().position(|(given, _)| *given == hash);
        at.map_or("", |at| &*self.readable.remove(at).1.hash)
    }

    /// What nobody asked the spelling of was not taken.
    fn rest(self) -> Vec<std::borrow::Cow<'a, str>> {
        let untaken = self.readable.into_iter().map(|(_, key)| &*key.hash);
        untaken.chain(self.failed).map(Into::into).collect()
    }
}
