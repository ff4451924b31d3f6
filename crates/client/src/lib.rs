//! Typed client of the HTTP API, used by the command line and by tests.
//! It never retries: an ask that got no answer may have been charged, and only the caller knows whether to ask again.

mod client;
mod error;
mod exchange;
mod secret;

pub use client::{Client, ExportPart, Page};
pub use error::ClientError;
pub use secret::Secret;
pub use tollkeeper_wire as wire;
