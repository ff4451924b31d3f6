//! `permissions.*Permission`: what keys may be permitted. A change reaches every key that has it before it is answered.

use tollkeeper_store::{NewPermission, Permission, PermissionPatch, Thing};
use tollkeeper_wire as wire;

use super::call::{Call, permit};
use super::desk::{self, Author, reply};
use super::reply::Reply;
use super::route::PermissionCall;
use super::stored::{owned, page_reply, page_rows, patch};
use crate::status::Refusal;

pub async fn handle(which: PermissionCall, call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match which {
        PermissionCall::Create => create(call).await,
        PermissionCall::Get => get(call).await,
        PermissionCall::List => list(call).await,
        PermissionCall::Update => update(call).await,
        PermissionCall::Delete => delete(call).await,
    }
}

async fn create(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::CreatePermissionRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rbac", "*", "create_permission")?;
    let author = Author::new(call, &caller);
    let new = NewPermission {
        name: request.name.to_string(),
        slug: request.slug.to_string(),
        description: owned(request.description.as_ref()),
    };
    let made =
        desk::write(call, |store| async move { store.create_permission(author.by(), new).await })
            .await?;
    Ok(reply(call, wire::CreatePermissionReply { permission_id: made.id.into() }))
}

async fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::GetPermissionRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rbac", "*", "read_permission")?;
    let (tenant, named) = (caller.tenant.id.clone(), request.permission.to_string());
    let found =
        desk::read(call, |store| async move { store.permission(&tenant, &named).await }).await?;
    let missing = || Refusal::not_found(Thing::Permission, &request.permission);
    Ok(reply(call, shown(&found.ok_or_else(missing)?)))
}

async fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::ListPermissionsRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rbac", "*", "read_permission")?;
    let (tenant, rows) = (caller.tenant.id.clone(), page_rows(request.limit));
    let (search, cursor) = (owned(request.search.as_ref()), owned(request.cursor.as_ref()));
    let page = desk::read(call, |store| async move {
        store.list_permissions(&tenant, search.as_deref(), cursor.as_deref(), rows).await
    })
    .await?;
    Ok(page_reply(call, &page, shown))
}

async fn update(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::UpdatePermissionRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rbac", "*", "update_permission")?;
    let (author, named) = (Author::new(call, &caller), request.permission.to_string());
    let patch = PermissionPatch {
        name: owned(request.name.as_ref()),
        slug: owned(request.slug.as_ref()),
        description: patch(request.description, |text| text.to_string()),
    };
    let updated = desk::write(call, |store| async move {
        store.update_permission(author.by(), &named, patch).await
    })
    .await?;
    Ok(reply(call, shown(&updated)))
}

async fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::DeletePermissionRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rbac", "*", "delete_permission")?;
    let (author, named) = (Author::new(call, &caller), request.permission.to_string());
    desk::write(call, |store| async move { store.delete_permission(author.by(), &named).await })
        .await?;
    Ok(reply(call, wire::Empty {}))
}

pub fn shown(permission: &Permission) -> wire::Permission<'_> {
    wire::Permission {
        id: permission.id.as_str().into(),
        name: permission.name.as_str().into(),
        slug: permission.slug.as_str().into(),
        description: permission.description.as_deref().map(Into::into),
    }
}
