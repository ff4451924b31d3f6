//! `keys.updateKey`: absent keeps, null clears, a value replaces.

use tollkeeper_wire as wire;

use super::super::call::Call;
use super::super::desk::{self, Author};
use super::super::reply::Reply;
use super::access::permitted;
use super::{balance, grants, terms};
use crate::status::Refusal;

pub async fn update(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::UpdateKeyRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    let key = permitted(call, &caller, &request.key_id, "update_key").await?;
    grants::may_replace(call, &caller, &request).await?;
    let touches_credits = !request.credits.is_keep();
    let patch = terms::patch(&call.app.keyring, &key.id, request)?;
    if touches_credits {
        balance::give_back(call, &key.id).await?;
    }
    let author = Author::new(call, &caller);
    desk::write(call, |store| async move { store.update_key(author.by(), &key.id, patch).await })
        .await?;
    Ok(desk::reply(call, wire::Empty {}))
}
