//! `keys.createKey`: the one moment at which a key's text is known.

use tollkeeper_decide::RootKey;
use tollkeeper_store::{NewKey, Store, Thing};
use tollkeeper_wire as wire;

use super::super::call::{Call, permit};
use super::super::desk::{self, Author};
use super::super::reply::Reply;
use super::mint::{Recipe, mint};
use super::terms;
use crate::status::Refusal;

pub async fn create(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::CreateKeyRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    may_create(&caller, &request)?;
    let id = Store::fresh_key_id().map_err(|error| Refusal::from(&error))?;
    let minted = mint(&call.app.keyring, &id, recipe(&request))?;
    let terms = terms::of_new(&call.app.keyring, &id, &request)?;
    let new = NewKey {
        id: Some(id),
        project_id: request.api_id.to_string(),
        secret: minted.secret,
        terms,
    };
    let author = Author::new(call, &caller);
    let made =
        desk::write(call, |store| async move { store.create_key(author.by(), new).await }).await?;
    Ok(desk::reply(call, wire::KeyReply { key_id: made.into(), key: minted.text }))
}

/// Whoever may not make keys here is not told whether there is a project of this id.
fn may_create(caller: &RootKey, request: &wire::CreateKeyRequest<'_>) -> Result<(), Refusal> {
    let project_id = &*request.api_id;
    if !caller.permissions.allow("api", project_id, "create_key") {
        return Err(Refusal::not_found(Thing::Project, project_id));
    }
    if request.recoverable {
        permit(caller, "api", project_id, "encrypt_key")?;
    }
    Ok(())
}

fn recipe<'a>(request: &'a wire::CreateKeyRequest<'_>) -> Recipe<'a> {
    Recipe {
        prefix: request.prefix.as_deref(),
        byte_length: request.byte_length.and_then(|bytes| u32::try_from(bytes).ok()),
        recoverable: request.recoverable,
    }
}
