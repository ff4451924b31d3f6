//! `usage.*`: what keys were used for.

use tollkeeper_wire::{
    ExportUsageRequest, FlushUsageReply, FlushUsageRequest, QueryUsageRequest, UsageRow,
};

use crate::client::{Client, Page};
use crate::error::ClientError;

/// Part of an export: the text as it is, and where the next part begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportPart {
    pub text: Vec<u8>,
    pub next: Option<String>,
}

impl Client {
    pub async fn query_usage(
        &self,
        ask: &QueryUsageRequest<'_>,
    ) -> Result<Page<UsageRow<'static>>, ClientError> {
        self.page("usage.query", ask).await
    }

    pub async fn export_usage(
        &self,
        ask: &ExportUsageRequest<'_>,
    ) -> Result<ExportPart, ClientError> {
        let (text, next) = self.exchange.post_text("usage.export", ask, CURSOR).await?;
        Ok(ExportPart { text, next })
    }

    pub async fn flush_usage(&self) -> Result<FlushUsageReply, ClientError> {
        self.call("usage.flush", &FlushUsageRequest::default()).await
    }
}

const CURSOR: &str = "x-tollkeeper-cursor";
