//! `keys.*` as the admin uses them, one file per thing that is done with a key. Verification is not here.
//! Key text exists only in the answer that shows it: what goes to storage is a hash, or sealed.

mod access;
mod balance;
mod create;
mod credits;
mod digest;
mod grants;
mod migrate;
mod mint;
mod read;
mod retire;
pub mod shown;
mod terms;
mod update;

use super::call::Call;
use super::reply::Reply;
use super::route::KeyCall;
use crate::status::Refusal;

pub use grants::may_make;
pub use read::plaintext;

pub async fn handle(which: KeyCall, call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match which {
        KeyCall::Create => create::create(call).await,
        KeyCall::Get => read::get(call).await,
        KeyCall::Whoami => read::whoami(call).await,
        KeyCall::Update => update::update(call).await,
        KeyCall::UpdateCredits => credits::update(call).await,
        KeyCall::Delete => retire::delete(call).await,
        KeyCall::Revoke => retire::revoke(call).await,
        KeyCall::Reroll => retire::reroll(call).await,
        KeyCall::AddPermissions => grants::add_permissions(call).await,
        KeyCall::RemovePermissions => grants::remove_permissions(call).await,
        KeyCall::SetPermissions => grants::set_permissions(call).await,
        KeyCall::AddRoles => grants::add_roles(call).await,
        KeyCall::RemoveRoles => grants::remove_roles(call).await,
        KeyCall::SetRoles => grants::set_roles(call).await,
        KeyCall::Migrate => migrate::migrate(call).await,
    }
}
