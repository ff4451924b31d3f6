//! The endpoints as methods. Each one is a name, a body and a type; what travels is `exchange`'s part.

use tollkeeper_wire::{
    DeleteNamespaceRequest, DeleteOverrideRequest, Empty, GetOverrideRequest, LimitReply,
    LimitRequest, ListOverridesRequest, LivenessReply, MultiLimitReply, MultiLimitRequest,
    OverrideReply, PeekReply, PeekRequest, ResetReply, ResetRequest, SetOverrideReply,
    SetOverrideRequest,
};

use crate::error::ClientError;
use crate::exchange::Exchange;
use crate::secret::Secret;

/// A connection pool to one server, acting with one root key. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    exchange: Exchange,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// To be sent as `cursor` for the next page; absent on the last one.
    pub next: Option<String>,
}

impl Client {
    /// Builds the client; nothing is sent yet.
    pub fn new(base_url: &str, root_key: Secret) -> Result<Self, ClientError> {
        Exchange::new(base_url, root_key).map(|exchange| Self { exchange })
    }

    /// Spends the cost if it fits. A denial is an answer with `success: false`.
    pub async fn limit(&self, ask: &LimitRequest<'_>) -> Result<LimitReply<'static>, ClientError> {
        Ok(self.exchange.post("ratelimit.limit", ask).await?.data)
    }

    /// Spends all costs, or none of them.
    pub async fn multi_limit(
        &self,
        ask: &MultiLimitRequest<'_>,
    ) -> Result<MultiLimitReply<'static>, ClientError> {
        Ok(self.exchange.post("ratelimit.multiLimit", ask).await?.data)
    }

    pub async fn set_override(
        &self,
        ask: &SetOverrideRequest<'_>,
    ) -> Result<SetOverrideReply<'static>, ClientError> {
        Ok(self.exchange.post("ratelimit.setOverride", ask).await?.data)
    }

    pub async fn get_override(
        &self,
        ask: &GetOverrideRequest<'_>,
    ) -> Result<OverrideReply<'static>, ClientError> {
        Ok(self.exchange.post("ratelimit.getOverride", ask).await?.data)
    }

    pub async fn list_overrides(
        &self,
        ask: &ListOverridesRequest<'_>,
    ) -> Result<Page<OverrideReply<'static>>, ClientError> {
        let answer = self.exchange.post("ratelimit.listOverrides", ask).await?;
        let next = answer.pagination.and_then(|page| page.cursor().map(str::to_owned));
        Ok(Page { rows: answer.data, next })
    }

    pub async fn delete_override(
        &self,
        ask: &DeleteOverrideRequest<'_>,
    ) -> Result<(), ClientError> {
        self.exchange.post::<_, Empty>("ratelimit.deleteOverride", ask).await.map(drop)
    }

    pub async fn delete_namespace(
        &self,
        ask: &DeleteNamespaceRequest<'_>,
    ) -> Result<(), ClientError> {
        self.exchange.post::<_, Empty>("ratelimit.deleteNamespace", ask).await.map(drop)
    }

    /// Looks without spending.
    pub async fn peek(&self, ask: &PeekRequest<'_>) -> Result<PeekReply, ClientError> {
        Ok(self.exchange.post("limits.peek", ask).await?.data)
    }

    pub async fn reset(&self, ask: &ResetRequest<'_>) -> Result<ResetReply, ClientError> {
        Ok(self.exchange.post("limits.reset", ask).await?.data)
    }

    /// Whether a server answers at all; sends no root key.
    pub async fn liveness(&self) -> Result<LivenessReply<'static>, ClientError> {
        Ok(self.exchange.get("liveness").await?.data)
    }
}
