//! `identities.*`: whose keys these are.

use tollkeeper_wire::{
    CreateIdentityReply, CreateIdentityRequest, DeleteIdentityRequest, GetIdentityRequest,
    Identity, ListIdentitiesRequest, UpdateIdentityRequest,
};

use crate::client::{Client, Page};
use crate::error::ClientError;

impl Client {
    pub async fn create_identity(
        &self,
        ask: &CreateIdentityRequest<'_>,
    ) -> Result<CreateIdentityReply<'static>, ClientError> {
        self.call("identities.createIdentity", ask).await
    }

    pub async fn get_identity(
        &self,
        ask: &GetIdentityRequest<'_>,
    ) -> Result<Identity<'static>, ClientError> {
        self.call("identities.getIdentity", ask).await
    }

    pub async fn list_identities(
        &self,
        ask: &ListIdentitiesRequest<'_>,
    ) -> Result<Page<Identity<'static>>, ClientError> {
        self.page("identities.listIdentities", ask).await
    }

    pub async fn update_identity(
        &self,
        ask: &UpdateIdentityRequest<'_>,
    ) -> Result<Identity<'static>, ClientError> {
        self.call("identities.updateIdentity", ask).await
    }

    pub async fn delete_identity(
        &self,
        ask: &DeleteIdentityRequest<'_>,
    ) -> Result<(), ClientError> {
        self.done("identities.deleteIdentity", ask).await
    }
}
