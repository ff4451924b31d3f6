//! `rootKeys.*`: the keys of this API itself. None can make, widen or take over one that may do more, or lives longer, than it.

use tollkeeper_core::{Millis, Permissions};
use tollkeeper_decide::{KeyHash, RootKey};
use tollkeeper_store::{NewRootKey, RootKeyPatch, RootKeyView, Thing};
use tollkeeper_wire as wire;

use super::call::{Call, permit};
use super::desk::{self, Author, reply};
use super::known_permissions::is_known;
use super::reply::Reply;
use super::route::RootKeyCall;
use super::stored::{owned, page_reply, page_rows, patch, texts};
use crate::ids;
use crate::keyring::{Keyring, PEPPER_ID};
use crate::redacted::Redacted;
use crate::status::Refusal;

/// What may be shown of a root key: its kind and four characters, and its last four.
const START_CHARS: usize = 12;
const END_CHARS: usize = 4;
const MINUTE_MS: u64 = 60_000;

pub async fn handle(which: RootKeyCall, call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match which {
        RootKeyCall::Create => create(call).await,
        RootKeyCall::List => list(call).await,
        RootKeyCall::Update => update(call).await,
        RootKeyCall::Delete => delete(call).await,
        RootKeyCall::Reroll => reroll(call).await,
    }
}

async fn create(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::CreateRootKeyRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rootKeys", "*", "createKey")?;
    let expires = request.expires.value().copied().map(Millis);
    let permissions = texts(&request.permissions);
    let mut faults = unknown(&permissions);
    faults.extend(expires.filter(|at| *at <= call.now).map(|_| in_the_past()));
    if !faults.is_empty() {
        return Err(Refusal::Fields(faults));
    }
    within(&caller, &permissions, expires)?;
    let minted = Minted::new(&call.app.keyring)?;
    let row = minted.row(owned(request.name.as_ref()), permissions, expires);
    let author = Author::new(call, &caller);
    let id =
        desk::write(call, |store| async move { store.create_root_key(author.by(), row).await })
            .await?;
    Ok(reply(call, wire::KeyReply { key_id: id.into(), key: minted.text() }))
}

async fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::ListRootKeysRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rootKeys", "*", "listKeys")?;
    let (tenant, rows) = (caller.tenant.id.clone(), page_rows(request.limit));
    let cursor = owned(request.cursor.as_ref());
    let page = desk::read(call, |store| async move {
        store.list_root_keys(&tenant, cursor.as_deref(), rows).await
    })
    .await?;
    Ok(page_reply(call, &page, shown))
}

async fn update(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::UpdateRootKeyRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rootKeys", &request.key_id, "updateKey")?;
    let permissions = request.permissions.as_deref().map(texts);
    if let Some(permissions) = &permissions {
        let faults = unknown(permissions);
        if !faults.is_empty() {
            return Err(Refusal::Fields(faults));
        }
        // Widening a key that lives longer than the caller would outlive it just as making one would.
        let target = existing(call, &caller, &request.key_id).await?;
        within(&caller, permissions, target.expires)?;
    }
    let (author, id) = (Author::new(call, &caller), request.key_id.to_string());
    let name = patch(request.name, |name| name.to_string());
    let patch =
        RootKeyPatch { name, permissions, enabled: request.enabled, ..RootKeyPatch::default() };
    desk::write(call, |store| async move { store.update_root_key(author.by(), &id, patch).await })
        .await?;
    Ok(reply(call, wire::Empty {}))
}

async fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::DeleteRootKeyRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rootKeys", &request.key_id, "deleteKey")?;
    let (author, id) = (Author::new(call, &caller), request.key_id.to_string());
    desk::write(call, |store| async move { store.delete_root_key(author.by(), &id).await }).await?;
    Ok(reply(call, wire::Empty {}))
}

async fn reroll(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::RerollRootKeyRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rootKeys", &request.key_id, "rerollKey")?;
    let old = existing(call, &caller, &request.key_id).await?;
    // The new text comes back to the caller, and with it everything that key may do.
    within(&caller, &old.permissions, old.expires)?;
    let minted = Minted::new(&call.app.keyring)?;
    let row = minted.row(None, Vec::new(), old.expires);
    let until = request.expiration.map(|grace_ms| old_key_ends(call.now, grace_ms));
    let author = Author::new(call, &caller);
    let id = desk::write(call, |store| async move {
        store.reroll_root_key(author.by(), &old.id, row, until).await
    })
    .await?;
    Ok(reply(call, wire::KeyReply { key_id: id.into(), key: minted.text() }))
}

async fn existing(call: &Call<'_>, caller: &RootKey, id: &str) -> Result<RootKeyView, Refusal> {
    let (tenant, named) = (caller.tenant.id.clone(), id.to_owned());
    let found =
        desk::read(call, |store| async move { store.root_key_view(&tenant, &named).await }).await?;
    found.ok_or_else(|| Refusal::not_found(Thing::RootKey, id))
}

fn unknown(permissions: &[String]) -> Vec<wire::FieldError> {
    let given = permissions.iter().enumerate();
    let strange = given.filter(|(_, permission)| !is_known(permission));
    strange
        .map(|(at, _)| {
            let fix = "Send `*`, or `group.id.action` as /openapi.json names it at each call, with one id or `*`.";
            wire::FieldError::new(
                format!("body.permissions[{at}]"),
                "Is no permission that this server knows.",
                fix,
            )
        })
        .collect()
}

fn in_the_past() -> wire::FieldError {
    let fix = "Send a later moment in unix milliseconds, or null: never.";
    wire::FieldError::new("body.expires", "Is in the past: the key would never work.", fix)
}

/// Refuses what would go beyond the caller itself.
fn within(
    caller: &RootKey,
    permissions: &[String],
    expires: Option<Millis>,
) -> Result<(), Refusal> {
    let wanted: Permissions = permissions.iter().map(String::as_str).collect();
    if let Some(beyond) = caller.permissions.first_beyond(&wanted) {
        return Err(Refusal::Forbidden { needs: beyond.to_owned() });
    }
    let outlives = caller.expires.is_some_and(|own| expires.is_none_or(|wanted| wanted > own));
    if outlives { Err(Refusal::Outlives) } else { Ok(()) }
}

/// At once, or at the first full minute at which the grace is over.
fn old_key_ends(now: Millis, grace_ms: u64) -> Millis {
    if grace_ms == 0 {
        return now;
    }
    Millis(now.0.saturating_add(grace_ms).div_ceil(MINUTE_MS) * MINUTE_MS)
}

/// A root key that was made just now: its text leaves in one answer and is kept nowhere.
#[derive(Debug)]
pub struct Minted {
    text: Redacted<String>,
    hash: KeyHash,
}

// === impl Minted ===

impl Minted {
    pub fn new(keyring: &Keyring) -> Result<Self, Refusal> {
        let text = ids::root_key().map_err(|error| Refusal::Unexpected(error.to_string()))?;
        let hash = keyring.hash(text.expose().as_bytes());
        Ok(Self { text, hash })
    }

    pub fn row(
        &self,
        name: Option<String>,
        permissions: Vec<String>,
        expires: Option<Millis>,
    ) -> NewRootKey {
        let text = self.text.expose();
        let start = text.get(..START_CHARS).map(str::to_owned);
        let end = text.get(text.len().saturating_sub(END_CHARS)..).map(str::to_owned);
        NewRootKey { hash: self.hash, pepper_id: PEPPER_ID, name, permissions, expires, start, end }
    }

    pub fn text(&self) -> wire::KeyText<'_> {
        wire::KeyText::new(self.text.expose().as_str())
    }
}

fn shown(row: &RootKeyView) -> wire::RootKey<'_> {
    let permissions: Vec<Box<str>> =
        row.permissions.iter().map(|one| one.as_str().into()).collect();
    wire::RootKey {
        key_id: row.id.as_str().into(),
        name: row.name.as_deref().map(Into::into),
        start: row.start.as_deref().unwrap_or_default().into(),
        end: row.end.as_deref().unwrap_or_default().into(),
        enabled: row.enabled,
        created_at: row.created_at.0,
        last_used_at: row.last_used_at.map_or(0, |at| at.0),
        expires: row.expires.map(|at| at.0),
        permissions: permissions.into(),
    }
}
