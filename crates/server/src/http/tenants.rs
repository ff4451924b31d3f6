//! `tenants.*`: the parties of one server. Only the operator's own key gets past the door.

use std::sync::Arc;

use tollkeeper_decide::RootKey;
use tollkeeper_store::{TenantPatch, TenantView};
use tollkeeper_wire as wire;

use super::call::Call;
use super::desk::{self, Author, reply};
use super::reply::Reply;
use super::root_keys::Minted;
use super::route::TenantCall;
use super::stored::{owned, page_reply, page_rows, patch};
use crate::status::Refusal;

pub async fn handle(which: TenantCall, call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match which {
        TenantCall::Create => create(call).await,
        TenantCall::List => list(call).await,
        TenantCall::Update => update(call).await,
    }
}

async fn create(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::CreateTenantRequest<'_> = call.request()?;
    let caller = operator(call).await?;
    let minted = Minted::new(&call.app.keyring)?;
    let first = minted.row(Some("first".into()), vec!["*".into()], None);
    let (author, name) = (Author::new(call, &caller), request.name.to_string());
    let (tenant, _) =
        desk::write(
            call,
            |store| async move { store.create_tenant(author.by(), &name, first).await },
        )
        .await?;
    let (tenant_id, slug) = (tenant.id.into(), tenant.slug.into());
    Ok(reply(call, wire::CreateTenantReply { tenant_id, slug, root_key: minted.text() }))
}

async fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::ListTenantsRequest<'_> = call.request()?;
    operator(call).await?;
    let (cursor, rows) = (owned(request.cursor.as_ref()), page_rows(request.limit));
    let page =
        desk::read(call, |store| async move { store.list_tenants(cursor.as_deref(), rows).await })
            .await?;
    Ok(page_reply(call, &page, shown))
}

async fn update(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::UpdateTenantRequest<'_> = call.request()?;
    let caller = operator(call).await?;
    // Nobody could switch the operator's own tenant on again.
    if request.enabled == Some(false) && *request.tenant_id == *caller.tenant.id {
        return Err(Refusal::Precondition("The operator's own tenant cannot be switched off."));
    }
    let (author, tenant_id) = (Author::new(call, &caller), request.tenant_id.to_string());
    let requests_per_minute = patch(request.requests_per_minute, |rate| rate);
    let patch = TenantPatch { enabled: request.enabled, requests_per_minute };
    desk::write(
        call,
        |store| async move { store.update_tenant(author.by(), &tenant_id, patch).await },
    )
    .await?;
    Ok(reply(call, wire::Empty {}))
}

/// No permission stands for this: it cannot be handed on.
async fn operator(call: &mut Call<'_>) -> Result<Arc<RootKey>, Refusal> {
    let caller = call.caller().await?;
    if caller.operator { Ok(caller) } else { Err(Refusal::OperatorOnly) }
}

fn shown(tenant: &TenantView) -> wire::Tenant<'_> {
    wire::Tenant {
        tenant_id: tenant.id.as_str().into(),
        name: tenant.name.as_str().into(),
        slug: tenant.slug.as_str().into(),
        enabled: tenant.enabled,
        created_at: tenant.created_at.0,
        requests_per_minute: tenant.requests_per_minute,
    }
}
