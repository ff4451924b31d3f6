//! `ratelimit.*Override` and `ratelimit.deleteNamespace`: limits that an operator sets over those that callers send.
//! Every change is forgotten by the cache before its answer leaves.

use std::sync::Arc;

use tollkeeper_core::{Override, Quota, Width};
use tollkeeper_decide::{Namespace, RootKey};
use tollkeeper_store::StoreError;
use tollkeeper_wire as wire;

use super::call::{Call, permit};
use super::desk::Author;
use super::reply::Reply;
use super::sheet::Sheet;
use crate::status::Refusal;

pub async fn set(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::SetOverrideRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    let namespace = permitted(call, &caller, &request.namespace, "set_override").await?;
    let (Some(quota), Some(width)) =
        (Quota::new(request.limit), Width::from_millis(request.duration))
    else {
        return Err(Refusal::Unexpected("a checked override holds a number out of bounds".into()));
    };
    if !namespace.overrides.has_room_for(&request.identifier) {
        return Err(Refusal::TooManyOverrides);
    }
    let (name, identifier) = (namespace.id.to_string(), request.identifier.to_string());
    let (store, author) = (call.app.store.clone(), Author::new(call, &caller));
    let setting =
        async move { store.set_override(author.by(), &name, &identifier, quota, width).await };
    let set = stored(call, setting, &request.namespace, &request.identifier).await?;
    forget(call, &caller, &namespace);
    Ok(reply(call, wire::SetOverrideReply { override_id: set.override_id.into() }))
}

pub async fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::GetOverrideRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    let namespace = existing(call, &caller, &request.namespace).await?;
    // Whoever may not read gets the answer that a missing one gets.
    let readable = caller.permissions.allow("ratelimit", &namespace.id, "read_override");
    let found = namespace.overrides.find(&request.identifier).filter(|_| readable);
    let found = found.ok_or_else(|| Refusal::OverrideMissing(request.identifier.to_string()))?;
    Ok(reply(call, shown(found)))
}

pub async fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::ListOverridesRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    let namespace = permitted(call, &caller, &request.namespace, "read_override").await?;
    let (tenant, name) = (caller.tenant.id.to_string(), namespace.id.to_string());
    let (store, limit) = (call.app.store.clone(), request.limit);
    let cursor = request.cursor.as_deref().map(str::to_owned);
    let listing = async move {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        store.list_overrides(&tenant, &name, cursor.as_deref(), limit).await
    };
    let page = stored(call, listing, &request.namespace, "").await?;
    let pagination = match page.next_cursor {
        Some(cursor) => wire::Pagination::continues_at(cursor),
        None => wire::Pagination::last_page(),
    };
    let rows: Vec<_> = page.rows.iter().map(shown).collect();
    let mut sheet = Sheet::new();
    sheet.timing(&call.timing);
    Ok(sheet.page(call.id, rows, pagination))
}

pub async fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::DeleteOverrideRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    let namespace = permitted(call, &caller, &request.namespace, "delete_override").await?;
    let (name, identifier) = (namespace.id.to_string(), request.identifier.to_string());
    let (store, author) = (call.app.store.clone(), Author::new(call, &caller));
    let deleting = async move { store.delete_override(author.by(), &name, &identifier).await };
    stored(call, deleting, &request.namespace, &request.identifier).await?;
    forget(call, &caller, &namespace);
    Ok(reply(call, wire::Empty {}))
}

pub async fn delete_namespace(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::DeleteNamespaceRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    let namespace = permitted(call, &caller, &request.namespace, "delete_namespace").await?;
    let (store, author) = (call.app.store.clone(), Author::new(call, &caller));
    let name = namespace.id.to_string();
    let deleting = async move { store.delete_namespace(author.by(), &name).await };
    stored(call, deleting, &request.namespace, "").await?;
    forget(call, &caller, &namespace);
    Ok(reply(call, wire::Empty {}))
}

/// A namespace that is there and not deleted.
pub async fn existing(
    call: &mut Call<'_>,
    caller: &RootKey,
    called: &str,
) -> Result<Arc<Namespace>, Refusal> {
    let (app, timing, tally) = (call.app, &mut call.timing, call.app.ledger.page());
    let mut see = |cache, freshness| timing.note(tally, cache, freshness);
    let found = app.decider.namespace(&caller.tenant, called, call.now, &mut see).await?;
    let namespace = found.ok_or_else(|| Refusal::NamespaceMissing(called.to_owned()))?;
    if namespace.deleted {
        return Err(Refusal::NamespaceGone(called.to_owned()));
    }
    Ok(namespace)
}

async fn permitted(
    call: &mut Call<'_>,
    caller: &RootKey,
    called: &str,
    action: &str,
) -> Result<Arc<Namespace>, Refusal> {
    let namespace = existing(call, caller, called).await?;
    permit(caller, "ratelimit", &namespace.id, action)?;
    Ok(namespace)
}

/// Runs a write where storage belongs; it ends even if the client goes away.
async fn stored<T: Send + 'static>(
    call: &Call<'_>,
    work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    namespace: &str,
    identifier: &str,
) -> Result<T, Refusal> {
    let done = call.app.backstage.spawn(work).await;
    let done = done.map_err(|error| Refusal::Unexpected(error.to_string()))?;
    done.map_err(|error| {
        call.app.store.note_failure(&error);
        Refusal::of_store(&error, namespace, identifier)
    })
}

fn forget(call: &Call<'_>, caller: &RootKey, namespace: &Namespace) {
    call.app.decider.forget_namespace(&caller.tenant.id, &[&namespace.name, &namespace.id]);
}

fn shown(one: &Override) -> wire::OverrideReply<'_> {
    wire::OverrideReply {
        override_id: one.id.as_ref().into(),
        identifier: one.identifier.as_str().into(),
        limit: one.quota.get(),
        duration: one.width.millis(),
    }
}

fn reply(call: &Call<'_>, data: impl serde::Serialize) -> Reply {
    let mut sheet = Sheet::new();
    sheet.timing(&call.timing);
    sheet.success(call.id, data)
}
