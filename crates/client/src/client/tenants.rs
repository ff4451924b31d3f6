//! `tenants.*`: for the operator's root key only.

use tollkeeper_wire::{
    CreateTenantReply, CreateTenantRequest, ListTenantsRequest, Tenant, UpdateTenantRequest,
};

use crate::client::{Client, Page};
use crate::error::ClientError;

impl Client {
    /// The answer is the only place where the tenant's root key is shown.
    pub async fn create_tenant(
        &self,
        ask: &CreateTenantRequest<'_>,
    ) -> Result<CreateTenantReply<'static>, ClientError> {
        self.call("tenants.create", ask).await
    }

    pub async fn list_tenants(
        &self,
        ask: &ListTenantsRequest<'_>,
    ) -> Result<Page<Tenant<'static>>, ClientError> {
        self.page("tenants.list", ask).await
    }

    pub async fn update_tenant(&self, ask: &UpdateTenantRequest<'_>) -> Result<(), ClientError> {
        self.done("tenants.update", ask).await
    }
}
