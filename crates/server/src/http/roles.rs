//! `permissions.*Role`: permissions under one name. A change reaches every key that has the role before it is answered.

use tollkeeper_store::{NewRole, Role, RolePatch, Thing};
use tollkeeper_wire as wire;

use super::call::{Call, permit};
use super::desk::{self, Author, reply};
use super::keys::may_make;
use super::permissions;
use super::reply::Reply;
use super::route::RoleCall;
use super::stored::{owned, page_reply, page_rows, patch, texts};
use crate::status::Refusal;

pub async fn handle(which: RoleCall, call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match which {
        RoleCall::Create => create(call).await,
        RoleCall::Get => get(call).await,
        RoleCall::List => list(call).await,
        RoleCall::Update => update(call).await,
        RoleCall::Delete => delete(call).await,
        RoleCall::SetPermissions => set_permissions(call).await,
    }
}

async fn create(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::CreateRoleRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rbac", "*", "create_role")?;
    let permissions = texts(request.permissions.as_deref().unwrap_or_default());
    if !permissions.is_empty() {
        permit(&caller, "rbac", "*", "add_permission_to_role")?;
        may_make(call, &caller, permissions.clone()).await?;
    }
    let (author, name) = (Author::new(call, &caller), request.name.to_string());
    let new = NewRole { name, description: owned(request.description.as_ref()), permissions };
    let made = desk::write(call, |store| async move { store.create_role(author.by(), new).await });
    Ok(reply(call, wire::CreateRoleReply { role_id: made.await?.id.into() }))
}

async fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::GetRoleRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rbac", "*", "read_role")?;
    let (tenant, named) = (caller.tenant.id.clone(), request.role.to_string());
    let found = desk::read(call, |store| async move { store.role(&tenant, &named).await }).await?;
    let missing = || Refusal::not_found(Thing::Role, &request.role);
    Ok(reply(call, shown(&found.ok_or_else(missing)?)))
}

async fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::ListRolesRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rbac", "*", "read_role")?;
    let (tenant, rows) = (caller.tenant.id.clone(), page_rows(request.limit));
    let (search, cursor) = (owned(request.search.as_ref()), owned(request.cursor.as_ref()));
    let page = desk::read(call, |store| async move {
        store.list_roles(&tenant, search.as_deref(), cursor.as_deref(), rows).await
    })
    .await?;
    Ok(page_reply(call, &page, shown))
}

async fn update(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::UpdateRoleRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rbac", "*", "update_role")?;
    let (author, named) = (Author::new(call, &caller), request.role.to_string());
    let description = patch(request.description, |text| text.to_string());
    let patch = RolePatch { name: owned(request.name.as_ref()), description };
    let updated =
        desk::write(
            call,
            |store| async move { store.update_role(author.by(), &named, patch).await },
        )
        .await?;
    Ok(reply(call, shown(&updated)))
}

async fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::DeleteRoleRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rbac", "*", "delete_role")?;
    let (author, named) = (Author::new(call, &caller), request.role.to_string());
    desk::write(call, |store| async move { store.delete_role(author.by(), &named).await }).await?;
    Ok(reply(call, wire::Empty {}))
}

async fn set_permissions(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::SetRolePermissionsRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rbac", "*", "add_permission_to_role")?;
    permit(&caller, "rbac", "*", "remove_permission_from_role")?;
    let (author, named) = (Author::new(call, &caller), request.role().to_owned());
    let slugs = texts(&request.permissions);
    may_make(call, &caller, slugs.clone()).await?;
    let set = desk::write(call, |store| async move {
        store.set_role_permissions(author.by(), &named, &slugs).await
    })
    .await?;
    Ok(reply(call, set.iter().map(permissions::shown).collect::<Vec<_>>()))
}

pub fn shown(role: &Role) -> wire::Role<'_> {
    wire::Role {
        id: role.id.as_str().into(),
        name: role.name.as_str().into(),
        description: role.description.as_deref().map(Into::into),
        permissions: role.permissions.iter().map(permissions::shown).collect(),
    }
}
