//! `keys.getKey` and `keys.whoami`: a key by its id or by its text. A text that came in is never sent back.

use tollkeeper_decide::{KeyHashes, RootKey};
use tollkeeper_store::KeyView;
use tollkeeper_wire as wire;

use super::super::call::{Call, permit};
use super::super::desk;
use super::super::reply::Reply;
use super::access::{find, permitted};
use super::{balance, shown};
use crate::keyring::Keyring;
use crate::status::Refusal;

pub async fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::GetKeyRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    let key = permitted(call, &caller, &request.key_id, "read_key").await?;
    let plaintext = if request.decrypt {
        permit(&caller, "api", &key.project_id, "decrypt_key")?;
        let text = plaintext(&call.app.keyring, &key)?;
        Some(text.ok_or(Refusal::Precondition("This key was not made recoverable."))?)
    } else {
        None
    };
    let key = with_true_balance(call, &caller, key).await?;
    Ok(desk::reply(call, shown::key(&key, plaintext)))
}

pub async fn whoami(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::WhoamiRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    let text = request.key.reveal().as_bytes();
    let hashes = KeyHashes {
        ours: call.app.keyring.hash(text),
        imported: Keyring::imported_hash(&caller.tenant.id, text),
    };
    let (tenant_id, now) = (caller.tenant.id.to_string(), call.now);
    let found =
        desk::read(
            call,
            |store| async move { store.key_view_by_hash(&tenant_id, hashes, now).await },
        );
    // Whoever may not read it gets the answer that an unknown one gets.
    let mine = |key: &KeyView| caller.permissions.allow("api", &key.project_id, "read_key");
    let key = found.await?.filter(mine).ok_or(Refusal::KeyTextUnknown)?;
    let key = with_true_balance(call, &caller, key).await?;
    Ok(desk::reply(call, shown::key(&key, None)))
}

/// The text of a recoverable key; `None` of any other.
pub fn plaintext(
    keyring: &Keyring,
    key: &KeyView,
) -> Result<Option<wire::KeyText<'static>>, Refusal> {
    let Some(sealed) = &key.recoverable else { return Ok(None) };
    let text =
        keyring.envelope().open(&key.id, sealed).and_then(|text| String::from_utf8(text).ok());
    let unreadable = || Refusal::Unexpected(format!("the text of {} cannot be opened", key.id));
    text.map(|text| Some(wire::KeyText::new(text))).ok_or_else(unreadable)
}

/// What this node has spent and not told anybody yet is told, and the key read again.
async fn with_true_balance(
    call: &Call<'_>,
    caller: &RootKey,
    key: KeyView,
) -> Result<KeyView, Refusal> {
    if key.credits.is_some() {
        balance::tell(call, &key.id).await?;
    }
    // Also where it was read by its text: a project that is gone takes its keys with it.
    find(call, caller, &key.id).await
}
