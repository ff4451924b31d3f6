//! How an admin call reaches storage: off the worker's thread, to its end even if the client leaves, and followed by
//! this node before its answer goes out, so that whoever made a change sees it at once.

use tollkeeper_core::Millis;
use tollkeeper_decide::RootKey;
use tollkeeper_store::{By, Store, StoreError, Written};

use super::call::Call;
use super::reply::Reply;
use super::sheet::Sheet;
use crate::status::Refusal;

/// Who changes something, and when: what the audit keeps.
#[derive(Clone, Debug)]
pub struct Author {
    pub tenant_id: String,
    root_key_id: String,
    now: Millis,
}

// === impl Author ===

impl Author {
    pub fn new(call: &Call<'_>, caller: &RootKey) -> Self {
        let (tenant_id, root_key_id) = (caller.tenant.id.to_string(), caller.id.to_string());
        Self { tenant_id, root_key_id, now: call.now }
    }

    pub fn by(&self) -> By<'_> {
        By { tenant_id: &self.tenant_id, root_key_id: &self.root_key_id, now: self.now }
    }
}

/// Changes something, and waits until this node has forgotten what that made stale.
pub async fn write<T, F>(call: &Call<'_>, work: impl FnOnce(Store) -> F) -> Result<T, Refusal>
where
    T: Send + 'static,
    F: Future<Output = Result<Written<T>, StoreError>> + Send + 'static,
{
    let written = read(call, work).await?;
    call.app.follow(written.revision).await;
    Ok(written.value)
}

/// Asks storage.
pub async fn read<T, F>(call: &Call<'_>, work: impl FnOnce(Store) -> F) -> Result<T, Refusal>
where
    T: Send + 'static,
    F: Future<Output = Result<T, StoreError>> + Send + 'static,
{
    let done = call.app.backstage.spawn(work(call.app.store.clone())).await;
    let done = done.map_err(|error| Refusal::Unexpected(error.to_string()))?;
    done.map_err(|error| noted(call, &error))
}

/// A refusal, and a word to whoever watches the disk.
pub fn noted(call: &Call<'_>, error: &StoreError) -> Refusal {
    call.app.store.note_failure(error);
    Refusal::from(error)
}

/// An answer with nothing to say about limits.
pub fn reply(call: &Call<'_>, data: impl serde::Serialize) -> Reply {
    let mut sheet = Sheet::new();
    sheet.timing(&call.timing);
    sheet.success(call.id, data)
}
