//! `quotas.*`: what one identity may do.

use tollkeeper_wire::{BlockRequest, GetQuotaRequest, QuotaReply, SetQuotaRequest, UnblockRequest};

use crate::client::Client;
use crate::error::ClientError;

impl Client {
    pub async fn get_quota(
        &self,
        ask: &GetQuotaRequest<'_>,
    ) -> Result<QuotaReply<'static>, ClientError> {
        self.call("quotas.get", ask).await
    }

    pub async fn set_quota(
        &self,
        ask: &SetQuotaRequest<'_>,
    ) -> Result<QuotaReply<'static>, ClientError> {
        self.call("quotas.set", ask).await
    }

    pub async fn block(&self, ask: &BlockRequest<'_>) -> Result<QuotaReply<'static>, ClientError> {
        self.call("quotas.block", ask).await
    }

    pub async fn unblock(
        &self,
        ask: &UnblockRequest<'_>,
    ) -> Result<QuotaReply<'static>, ClientError> {
        self.call("quotas.unblock", ask).await
    }
}
