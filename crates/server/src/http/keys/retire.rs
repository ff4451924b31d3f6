//! The ends of a key: `keys.deleteKey`, `keys.revoke`, and `keys.rerollKey`, which puts a new one in its place.

use std::sync::Arc;

use tollkeeper_core::Millis;
use tollkeeper_store::{Deletion, KeyView, Reroll, Store};
use tollkeeper_wire as wire;

use super::super::call::{Call, permit};
use super::super::desk::{self, Author};
use super::super::reply::Reply;
use super::access::{find, permitted};
use super::balance;
use super::mint::{Recipe, mint};
use crate::signing;
use crate::status::Refusal;

const MINUTE_MS: u64 = 60_000;

pub async fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::DeleteKeyRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    let id = request.key_id.to_string();
    let deletion = if request.permanent { Deletion::Permanent } else { Deletion::Soft };
    // The row of a key that was deleted before can still go, but nobody knows any more whose it was.
    let any_project = caller.permissions.allow("api", "*", "delete_key");
    if deletion == Deletion::Soft || !any_project {
        permitted(call, &caller, &id, "delete_key").await?;
    }
    let author = Author::new(call, &caller);
    let deleting = async move |store: Store| store.delete_key(author.by(), &id, deletion).await;
    desk::write(call, deleting).await?;
    Ok(desk::reply(call, wire::Empty {}))
}

pub async fn revoke(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::RevokeKeyRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "keys", "*", "revoke")?;
    let key = find(call, &caller, &request.key_id).await?;
    let revoked_at = key.revoked_at.unwrap_or(call.now).0;
    let reason = request.reason.as_deref().map(str::to_owned);
    let author = Author::new(call, &caller);
    desk::write(call, |store| async move {
        store.revoke_key(author.by(), &key.id, reason.as_deref()).await
    })
    .await?;
    Ok(desk::reply(call, wire::RevokeKeyReply { revoked_at }))
}

pub async fn reroll(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::RerollKeyRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    let old = permitted(call, &caller, &request.key_id, "create_key").await?;
    if old.recoverable.is_some() {
        permit(&caller, "api", &old.project_id, "encrypt_key")?;
    }
    let id = Store::fresh_key_id().map_err(|error| Refusal::from(&error))?;
    let minted = mint(&call.app.keyring, &id, recipe(&old))?;
    let old_expires = request.expiration.map(|grace_ms| old_expires(call.now, grace_ms));
    let reseal = signing::reseal(Arc::clone(&call.app.keyring), &old.id, &id);
    let reroll = Reroll { id: Some(id), secret: minted.secret, old_expires, reseal };
    // The new key starts with the old one's balance.
    balance::tell(call, &old.id).await?;
    let author = Author::new(call, &caller);
    let made =
        desk::write(
            call,
            |store| async move { store.reroll_key(author.by(), &old.id, reroll).await },
        );
    Ok(desk::reply(call, wire::KeyReply { key_id: made.await?.into(), key: minted.text }))
}

/// As the old one was made; a key from elsewhere gets what a new one would.
fn recipe(old: &KeyView) -> Recipe<'_> {
    Recipe {
        prefix: old.prefix.as_deref(),
        byte_length: old.byte_length,
        recoverable: old.recoverable.is_some(),
    }
}

/// Rounded up to a whole minute, except where there is no grace at all.
fn old_expires(now: Millis, grace_ms: u64) -> Millis {
    if grace_ms == 0 {
        return now;
    }
    Millis((now + grace_ms).0.div_ceil(MINUTE_MS).saturating_mul(MINUTE_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grace_ends_with_a_minute_and_none_ends_now() {
        let now = Millis(90_500);
        assert_eq!(old_expires(now, 0), now);
        assert_eq!(old_expires(now, 1), Millis(120_000));
        assert_eq!(old_expires(now, 29_500), Millis(120_000));
        assert_eq!(old_expires(now, 29_501), Millis(180_000));
    }
}
