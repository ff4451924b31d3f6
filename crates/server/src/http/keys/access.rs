//! Which keys a caller may touch: those of its tenant whose project is still there, and of those what it is permitted.

use tollkeeper_decide::RootKey;
use tollkeeper_store::{KeyView, Thing};

use super::super::call::{Call, permit};
use super::super::desk;
use crate::status::Refusal;

/// A key of another tenant, or of a project that was deleted, is as unknown as none.
pub async fn find(call: &Call<'_>, caller: &RootKey, key_id: &str) -> Result<KeyView, Refusal> {
    let (tenant_id, id, now) = (caller.tenant.id.to_string(), key_id.to_owned(), call.now);
    let found = desk::read(call, |store| async move {
        let Some(key) = store.key_view(&tenant_id, &id, now).await? else { return Ok(None) };
        Ok(store.project(&tenant_id, &key.project_id).await?.map(|_| key))
    });
    found.await?.ok_or_else(|| Refusal::not_found(Thing::Key, key_id))
}

pub async fn permitted(
    call: &Call<'_>,
    caller: &RootKey,
    key_id: &str,
    action: &str,
) -> Result<KeyView, Refusal> {
    let key = find(call, caller, key_id).await?;
    permit(caller, "api", &key.project_id, action)?;
    Ok(key)
}
