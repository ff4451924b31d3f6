//! The HTTP edge: a request becomes an ask, an answer becomes a reply. It decides nothing.

mod body;
mod call;
mod fields;
mod health;
mod idempotency;
mod limits;
mod metrics;
mod openapi;
mod overrides;
mod ratelimit;
mod reply;
mod route;
mod service;
mod timing;

pub use idempotency::Idempotency;
pub use route::{ROUTES, Route};
pub use service::answer;
