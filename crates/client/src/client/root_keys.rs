//! `rootKeys.*`: the keys with which this API itself is called.

use tollkeeper_wire::{
    CreateRootKeyRequest, DeleteRootKeyRequest, KeyReply, ListRootKeysRequest,
    RerollRootKeyRequest, RootKey, UpdateRootKeyRequest,
};

use crate::client::{Client, Page};
use crate::error::ClientError;

impl Client {
    /// The answer is the only place where the root key is shown.
    pub async fn create_root_key(
        &self,
        ask: &CreateRootKeyRequest<'_>,
    ) -> Result<KeyReply<'static>, ClientError> {
        self.call("rootKeys.createKey", ask).await
    }

    pub async fn list_root_keys(
        &self,
        ask: &ListRootKeysRequest<'_>,
    ) -> Result<Page<RootKey<'static>>, ClientError> {
        self.page("rootKeys.listKeys", ask).await
    }

    pub async fn update_root_key(&self, ask: &UpdateRootKeyRequest<'_>) -> Result<(), ClientError> {
        self.done("rootKeys.updateKey", ask).await
    }

    pub async fn delete_root_key(&self, ask: &DeleteRootKeyRequest<'_>) -> Result<(), ClientError> {
        self.done("rootKeys.deleteKey", ask).await
    }

    /// A new root key with everything that the old one had.
    pub async fn reroll_root_key(
        &self,
        ask: &RerollRootKeyRequest<'_>,
    ) -> Result<KeyReply<'static>, ClientError> {
        self.call("rootKeys.rerollKey", ask).await
    }
}
