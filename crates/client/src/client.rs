//! The endpoints as methods, one file per group. Each one is a name, a body and a type; what travels is `exchange`'s part.

mod apis;
mod audit;
mod gate;
mod identities;
mod keys;
mod permissions;
mod projects;
mod quotas;
mod ratelimit;
mod root_keys;
mod rules;
mod system;
mod tenants;
mod usage;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tollkeeper_wire::{Done, LivenessReply, Success};

use crate::error::ClientError;
use crate::exchange::Exchange;
use crate::secret::Secret;
pub use usage::ExportPart;

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

    /// Whether a server answers at all; sends no root key.
    pub async fn liveness(&self) -> Result<LivenessReply<'static>, ClientError> {
        let answer: Success<'_, _> = self.exchange.get("liveness").await?;
        Ok(answer.data)
    }

    async fn call<B: Serialize + Sync, T: DeserializeOwned>(
        &self,
        method: &str,
        body: &B,
    ) -> Result<T, ClientError> {
        let answer: Success<'_, T> = self.exchange.post(method, body).await?;
        Ok(answer.data)
    }

    async fn page<B: Serialize + Sync, T: DeserializeOwned>(
        &self,
        method: &str,
        body: &B,
    ) -> Result<Page<T>, ClientError> {
        let answer: Success<'_, Vec<T>> = self.exchange.post(method, body).await?;
        let next = answer.pagination.and_then(|page| page.cursor().map(str::to_owned));
        Ok(Page { rows: answer.data, next })
    }

    /// A call whose success says nothing more; most send an empty `data`, one sends none.
    async fn done<B: Serialize + Sync>(&self, method: &str, body: &B) -> Result<(), ClientError> {
        self.exchange.post::<_, Done<'_>>(method, body).await.map(drop)
    }
}
