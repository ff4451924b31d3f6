//! `system.*`: how a server is doing, and where limits are counted.

use tollkeeper_wire::{SetModeRequest, StatusReply, StatusRequest};

use crate::client::Client;
use crate::error::ClientError;

impl Client {
    /// In force on every node within two seconds.
    pub async fn set_mode(&self, ask: &SetModeRequest<'_>) -> Result<(), ClientError> {
        self.done("system.setMode", ask).await
    }

    pub async fn status(&self) -> Result<StatusReply<'static>, ClientError> {
        self.call("system.status", &StatusRequest::default()).await
    }
}
