//! `apis.*`: the contract's view of projects, and the keys of one.

use tollkeeper_wire::{
    Api, CreateApiReply, CreateApiRequest, DeleteApiRequest, GetApiRequest, Key, ListKeysRequest,
};

use crate::client::{Client, Page};
use crate::error::ClientError;

impl Client {
    pub async fn create_api(
        &self,
        ask: &CreateApiRequest<'_>,
    ) -> Result<CreateApiReply<'static>, ClientError> {
        self.call("apis.createApi", ask).await
    }

    pub async fn get_api(&self, ask: &GetApiRequest<'_>) -> Result<Api<'static>, ClientError> {
        self.call("apis.getApi", ask).await
    }

    pub async fn delete_api(&self, ask: &DeleteApiRequest<'_>) -> Result<(), ClientError> {
        self.done("apis.deleteApi", ask).await
    }

    pub async fn list_keys(
        &self,
        ask: &ListKeysRequest<'_>,
    ) -> Result<Page<Key<'static>>, ClientError> {
        self.page("apis.listKeys", ask).await
    }
}
