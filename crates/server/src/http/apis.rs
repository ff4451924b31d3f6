//! `apis.*`: the contract's view of a project, and the list of its keys.

use tollkeeper_decide::RootKey;
use tollkeeper_store::{KeyView, NewProject, Page, Project, Thing};
use tollkeeper_wire as wire;

use super::call::{Call, permit};
use super::desk::{self, Author};
use super::keys::{plaintext, shown};
use super::reply::Reply;
use super::route::ApiCall;
use super::stored::{owned, page_reply, page_rows};
use crate::status::Refusal;

pub async fn handle(which: ApiCall, call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match which {
        ApiCall::Create => create(call).await,
        ApiCall::Get => get(call).await,
        ApiCall::Delete => delete(call).await,
        ApiCall::ListKeys => list_keys(call).await,
    }
}

async fn create(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::CreateApiRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "api", "*", "create_api")?;
    // Without default limits: whoever speaks this contract does not expect any.
    let new = NewProject { name: request.name.to_string(), ..NewProject::default() };
    let author = Author::new(call, &caller);
    let made =
        desk::write(call, |store| async move { store.create_project(author.by(), new).await });
    Ok(desk::reply(call, wire::CreateApiReply { api_id: made.await?.id.into() }))
}

async fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::GetApiRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "api", &request.api_id, "read_api")?;
    let project = existing(call, &caller, &request.api_id).await?;
    Ok(desk::reply(call, wire::Api { id: project.id.into(), name: project.name.into() }))
}

async fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::DeleteApiRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "api", &request.api_id, "delete_api")?;
    let project = existing(call, &caller, &request.api_id).await?;
    let author = Author::new(call, &caller);
    desk::write(call, |store| async move { store.delete_project(author.by(), &project.id).await })
        .await?;
    Ok(desk::reply(call, wire::Empty {}))
}

async fn list_keys(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::ListKeysRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    may_list(&caller, &request)?;
    let page = listed(call, &caller, &request).await?;
    let keyring = &call.app.keyring;
    let texts = page.rows.iter().filter(|_| request.decrypt).map(|key| plaintext(keyring, key));
    let texts: Vec<_> = texts.collect::<Result<_, _>>()?;
    let texts = texts.into_iter().chain(std::iter::repeat(None));
    let rows: Vec<_> = page.rows.iter().zip(texts).collect();
    let shown_page = Page { rows, next_cursor: page.next_cursor.clone() };
    Ok(page_reply(call, &shown_page, |(key, text)| shown::key(key, text.clone())))
}

/// Whoever may not read keys here is not told whether there is a project of this id.
fn may_list(caller: &RootKey, request: &wire::ListKeysRequest<'_>) -> Result<(), Refusal> {
    let project_id = &*request.api_id;
    let may = |action| caller.permissions.allow("api", project_id, action);
    if !may("read_key") || !may("read_api") {
        return Err(Refusal::not_found(Thing::Project, project_id));
    }
    if request.decrypt { permit(caller, "api", project_id, "decrypt_key") } else { Ok(()) }
}

async fn listed(
    call: &Call<'_>,
    caller: &RootKey,
    request: &wire::ListKeysRequest<'_>,
) -> Result<Page<KeyView>, Refusal> {
    let (tenant_id, project_id) = (caller.tenant.id.to_string(), request.api_id.to_string());
    let external_id = owned(request.external_id.as_ref());
    let cursor = owned(request.cursor.as_ref());
    let limit = page_rows(request.limit);
    let now = call.now;
    desk::read(call, |store| async move {
        let (external_id, cursor) = (external_id.as_deref(), cursor.as_deref());
        store.list_keys(&tenant_id, &project_id, external_id, cursor, limit, now).await
    })
    .await
}

/// By its id alone: a slug is not an api id, though the store would find it.
async fn existing(call: &Call<'_>, caller: &RootKey, project_id: &str) -> Result<Project, Refusal> {
    let (tenant_id, id) = (caller.tenant.id.to_string(), project_id.to_owned());
    let found = desk::read(call, |store| async move { store.project(&tenant_id, &id).await });
    let found = found.await?.filter(|project| project.id == project_id);
    found.ok_or_else(|| Refusal::not_found(Thing::Project, project_id))
}
