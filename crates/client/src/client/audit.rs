//! `audit.*`: what was decided, what was changed, and whether the record of changes is whole.

use tollkeeper_wire::{
    AdminChange, AuditedDecision, ListChangesRequest, SearchAuditRequest, VerifyAuditReply,
    VerifyAuditRequest,
};

use crate::client::{Client, Page};
use crate::error::ClientError;

impl Client {
    /// Newest first.
    pub async fn search_audit(
        &self,
        ask: &SearchAuditRequest<'_>,
    ) -> Result<Page<AuditedDecision<'static>>, ClientError> {
        self.page("audit.search", ask).await
    }

    /// Newest first.
    pub async fn list_changes(
        &self,
        ask: &ListChangesRequest<'_>,
    ) -> Result<Page<AdminChange<'static>>, ClientError> {
        self.page("audit.changes", ask).await
    }

    pub async fn verify_audit(&self) -> Result<VerifyAuditReply<'static>, ClientError> {
        self.call("audit.verify", &VerifyAuditRequest::default()).await
    }
}
