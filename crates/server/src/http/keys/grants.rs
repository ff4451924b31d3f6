//! `keys.{add,remove,set}{Permissions,Roles}`: what a key may do. Every answer is the whole resulting set.

use tollkeeper_decide::RootKey;
use tollkeeper_store::Grant;
use tollkeeper_wire as wire;

use super::super::call::{Call, permit};
use super::super::desk::{self, Author};
use super::super::reply::Reply;
use super::super::stored::texts;
use super::super::{permissions as permission, roles as role};
use super::access::permitted;
use crate::status::Refusal;

pub async fn add_permissions(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::AddPermissionsRequest<'_> = call.request()?;
    permissions(call, Grant::Add, &request.key_id, texts(&request.permissions)).await
}

pub async fn remove_permissions(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::RemovePermissionsRequest<'_> = call.request()?;
    permissions(call, Grant::Remove, &request.key_id, texts(&request.permissions)).await
}

pub async fn set_permissions(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::SetPermissionsRequest<'_> = call.request()?;
    permissions(call, Grant::Set, &request.key_id, texts(&request.permissions)).await
}

pub async fn add_roles(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::AddRolesRequest<'_> = call.request()?;
    roles(call, Grant::Add, &request.key_id, texts(&request.roles)).await
}

pub async fn remove_roles(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::RemoveRolesRequest<'_> = call.request()?;
    roles(call, Grant::Remove, &request.key_id, texts(&request.roles)).await
}

pub async fn set_roles(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::SetRolesRequest<'_> = call.request()?;
    roles(call, Grant::Set, &request.key_id, texts(&request.roles)).await
}

async fn permissions(
    call: &mut Call<'_>,
    grant: Grant,
    key_id: &str,
    slugs: Vec<String>,
) -> Result<Reply, Refusal> {
    let caller = call.caller().await?;
    let key = permitted(call, &caller, key_id, "update_key").await?;
    let (add, remove) = ("add_permission_to_key", "remove_permission_from_key");
    permit_grant(&caller, grant, add, remove)?;
    if grant != Grant::Remove {
        may_make(call, &caller, slugs.clone()).await?;
    }
    let author = Author::new(call, &caller);
    let after = desk::write(call, |store| async move {
        store.change_key_permissions(author.by(), &key.id, grant, &slugs).await
    })
    .await?;
    Ok(desk::reply(call, after.iter().map(permission::shown).collect::<Vec<_>>()))
}

async fn roles(
    call: &mut Call<'_>,
    grant: Grant,
    key_id: &str,
    names: Vec<String>,
) -> Result<Reply, Refusal> {
    let caller = call.caller().await?;
    let key = permitted(call, &caller, key_id, "update_key").await?;
    permit_grant(&caller, grant, "add_role_to_key", "remove_role_from_key")?;
    let author = Author::new(call, &caller);
    let after = desk::write(call, |store| async move {
        store.change_key_roles(author.by(), &key.id, grant, &names).await
    })
    .await?;
    Ok(desk::reply(call, after.iter().map(role::shown).collect::<Vec<_>>()))
}

/// An update that replaces permissions or roles needs what setting them needs.
pub async fn may_replace(
    call: &Call<'_>,
    caller: &RootKey,
    request: &wire::UpdateKeyRequest<'_>,
) -> Result<(), Refusal> {
    if let Some(permissions) = &request.permissions {
        permit_grant(caller, Grant::Set, "add_permission_to_key", "remove_permission_from_key")?;
        may_make(call, caller, texts(permissions)).await?;
    }
    if request.roles.is_some() {
        permit_grant(caller, Grant::Set, "add_role_to_key", "remove_role_from_key")?;
    }
    Ok(())
}

/// Whoever sets may do both: what is not in the new set is taken away.
fn permit_grant(caller: &RootKey, grant: Grant, add: &str, remove: &str) -> Result<(), Refusal> {
    if grant != Grant::Remove {
        permit(caller, "rbac", "*", add)?;
    }
    if grant != Grant::Add {
        permit(caller, "rbac", "*", remove)?;
    }
    Ok(())
}

/// A permission that nobody knows yet is made on the way, by those who may make permissions.
pub async fn may_make(
    call: &Call<'_>,
    caller: &RootKey,
    slugs: Vec<String>,
) -> Result<(), Refusal> {
    let Err(refusal) = permit(caller, "rbac", "*", "create_permission") else { return Ok(()) };
    let tenant_id = caller.tenant.id.to_string();
    let all_known = desk::read(call, |store| async move {
        for slug in &slugs {
            let found = store.permission(&tenant_id, slug).await?;
            if found.is_none_or(|permission| permission.slug != *slug) {
                return Ok(false);
            }
        }
        Ok(true)
    });
    if all_known.await? { Ok(()) } else { Err(refusal) }
}
