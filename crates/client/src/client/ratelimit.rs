//! `ratelimit.*` and `limits.*`: asking limits, looking at them, and overriding them.

use tollkeeper_wire::{
    DeleteNamespaceRequest, DeleteOverrideRequest, GetOverrideRequest, LimitReply, LimitRequest,
    ListOverridesRequest, MultiLimitReply, MultiLimitRequest, OverrideReply, PeekReply,
    PeekRequest, ResetReply, ResetRequest, SetOverrideReply, SetOverrideRequest,
};

use crate::client::{Client, Page};
use crate::error::ClientError;

impl Client {
    /// Spends the cost if it fits. A denial is an answer with `success: false`.
    pub async fn limit(&self, ask: &LimitRequest<'_>) -> Result<LimitReply<'static>, ClientError> {
        self.call("ratelimit.limit", ask).await
    }

    /// Spends all costs, or none of them.
    pub async fn multi_limit(
        &self,
        ask: &MultiLimitRequest<'_>,
    ) -> Result<MultiLimitReply<'static>, ClientError> {
        self.call("ratelimit.multiLimit", ask).await
    }

    pub async fn set_override(
        &self,
        ask: &SetOverrideRequest<'_>,
    ) -> Result<SetOverrideReply<'static>, ClientError> {
        self.call("ratelimit.setOverride", ask).await
    }

    pub async fn get_override(
        &self,
        ask: &GetOverrideRequest<'_>,
    ) -> Result<OverrideReply<'static>, ClientError> {
        self.call("ratelimit.getOverride", ask).await
    }

    pub async fn list_overrides(
        &self,
        ask: &ListOverridesRequest<'_>,
    ) -> Result<Page<OverrideReply<'static>>, ClientError> {
        self.page("ratelimit.listOverrides", ask).await
    }

    pub async fn delete_override(
        &self,
        ask: &DeleteOverrideRequest<'_>,
    ) -> Result<(), ClientError> {
        self.done("ratelimit.deleteOverride", ask).await
    }

    pub async fn delete_namespace(
        &self,
        ask: &DeleteNamespaceRequest<'_>,
    ) -> Result<(), ClientError> {
        self.done("ratelimit.deleteNamespace", ask).await
    }

    /// Looks without spending.
    pub async fn peek(&self, ask: &PeekRequest<'_>) -> Result<PeekReply, ClientError> {
        self.call("limits.peek", ask).await
    }

    pub async fn reset(&self, ask: &ResetRequest<'_>) -> Result<ResetReply, ClientError> {
        self.call("limits.reset", ask).await
    }
}
