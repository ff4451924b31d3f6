//! `keys.updateCredits`: the balance of a key by hand.

use tollkeeper_store::CreditsChange;
use tollkeeper_wire as wire;

use super::super::call::Call;
use super::super::desk::{self, Author};
use super::super::reply::Reply;
use super::access::permitted;
use super::{balance, shown};
use crate::status::Refusal;

pub async fn update(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::UpdateCreditsRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    let key = permitted(call, &caller, &request.key_id, "update_key").await?;
    let wanted = wanted(&request);
    match wanted {
        CreditsChange::Increment(_) => balance::before_more(call, &key.id).await?,
        CreditsChange::Set(_) | CreditsChange::Decrement(_) => {
            balance::give_back(call, &key.id).await?;
        }
    }
    let author = Author::new(call, &caller);
    let after = desk::write(call, |store| async move {
        store.update_credits(author.by(), &key.id, wanted).await
    });
    Ok(desk::reply(call, shown::credits(after.await?)))
}

fn wanted(request: &wire::UpdateCreditsRequest<'_>) -> CreditsChange {
    let value = request.value.value().copied();
    // The wire lets nothing through but a value, or null to `set`.
    match request.operation {
        wire::CreditOperation::Set => CreditsChange::Set(value),
        wire::CreditOperation::Increment => CreditsChange::Increment(value.unwrap_or(0)),
        wire::CreditOperation::Decrement => CreditsChange::Decrement(value.unwrap_or(0)),
    }
}
