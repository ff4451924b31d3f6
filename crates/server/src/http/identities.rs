//! `identities.*`: owners of keys. What their keys share is in force before a change is answered.

use tollkeeper_store::{Identity, IdentityPatch, NewIdentity, Patch, Thing};
use tollkeeper_wire as wire;

use super::call::{Call, permit};
use super::desk::{self, Author, reply};
use super::limit_terms::{limit_terms, shown_limits};
use super::reply::Reply;
use super::route::IdentityCall;
use super::sheet::Sheet;
use super::stored::{owned, page_reply, page_rows};
use crate::status::Refusal;

pub async fn handle(which: IdentityCall, call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match which {
        IdentityCall::Create => create(call).await,
        IdentityCall::Get => get(call).await,
        IdentityCall::List => list(call).await,
        IdentityCall::Update => update(call).await,
        IdentityCall::Delete => delete(call).await,
    }
}

async fn create(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::CreateIdentityRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "identity", "*", "create_identity")?;
    let (author, new) = (Author::new(call, &caller), new_identity(&request)?);
    let made =
        desk::write(call, |store| async move { store.create_identity(author.by(), new).await })
            .await?;
    Ok(reply(call, wire::CreateIdentityReply { identity_id: made.id.into() }))
}

async fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::GetIdentityRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "identity", "*", "read_identity")?;
    let (tenant, named) = (caller.tenant.id.clone(), request.identity.to_string());
    let found =
        desk::read(call, |store| async move { store.identity(&tenant, &named).await }).await?;
    let missing = || Refusal::not_found(Thing::Identity, &request.identity);
    Ok(reply(call, shown(&found.ok_or_else(missing)?)))
}

async fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::ListIdentitiesRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "identity", "*", "read_identity")?;
    let (tenant, rows) = (caller.tenant.id.clone(), page_rows(request.limit));
    let (search, cursor) = (owned(request.search.as_ref()), owned(request.cursor.as_ref()));
    let page = desk::read(call, |store| async move {
        store.list_identities(&tenant, search.as_deref(), cursor.as_deref(), rows).await
    })
    .await?;
    Ok(page_reply(call, &page, shown))
}

async fn update(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::UpdateIdentityRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "identity", "*", "update_identity")?;
    let (author, patch) = (Author::new(call, &caller), patch_of(&request)?);
    let named = request.identity.to_string();
    let identity = desk::write(call, |store| async move {
        store.update_identity(author.by(), &named, patch).await
    })
    .await?;
    Ok(reply(call, shown(&identity)))
}

async fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::DeleteIdentityRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "identity", "*", "delete_identity")?;
    let (author, named) = (Author::new(call, &caller), request.identity.to_string());
    desk::write(call, |store| async move { store.delete_identity(author.by(), &named).await })
        .await?;
    let mut sheet = Sheet::new();
    sheet.timing(&call.timing);
    Ok(sheet.done(call.id))
}

fn new_identity(request: &wire::CreateIdentityRequest<'_>) -> Result<NewIdentity, Refusal> {
    Ok(NewIdentity {
        external_id: request.external_id.to_string(),
        meta: request.meta.as_ref().map(|meta| meta.as_str().to_owned()),
        tier: None,
        limits: limit_terms(request.ratelimits.as_deref().unwrap_or_default())?,
    })
}

fn patch_of(request: &wire::UpdateIdentityRequest<'_>) -> Result<IdentityPatch, Refusal> {
    let meta = request.meta.as_ref();
    Ok(IdentityPatch {
        meta: meta.map_or(Patch::Keep, |meta| Patch::Set(meta.as_str().to_owned())),
        tier: Patch::Keep,
        limits: request.ratelimits.as_deref().map(limit_terms).transpose()?,
    })
}

pub fn shown(identity: &Identity) -> wire::Identity<'_> {
    wire::Identity {
        id: identity.id.as_str().into(),
        external_id: identity.external_id.as_str().into(),
        meta: identity.meta.as_deref().and_then(wire::Metadata::stored),
        ratelimits: shown_limits(&identity.limits).into(),
    }
}
