//! `gate.*`: one question about a whole request.

use tollkeeper_wire::{CheckReply, CheckRequest, ExplainReply, ExplainRequest};

use crate::client::Client;
use crate::error::ClientError;

impl Client {
    /// Spends what passing costs. A denial is an answer with `allowed: false`.
    pub async fn check(&self, ask: &CheckRequest<'_>) -> Result<CheckReply<'static>, ClientError> {
        self.call("gate.check", ask).await
    }

    /// What every rule thinks of a request. Spends nothing.
    pub async fn explain(
        &self,
        ask: &ExplainRequest<'_>,
    ) -> Result<ExplainReply<'static>, ClientError> {
        self.call("gate.explain", ask).await
    }
}
