//! The HTTP edge: a request becomes an ask, an answer becomes a reply. It decides nothing.

mod apis;
mod body;
mod call;
mod changes;
mod desk;
mod fields;
mod health;
mod idempotency;
mod identities;
mod keys;
mod limit_terms;
mod limits;
mod metrics;
mod openapi;
mod overrides;
mod permissions;
mod projects;
mod ratelimit;
mod reply;
mod roles;
mod root_keys;
mod route;
mod service;
mod stored;
mod system;
mod tenants;
mod throttle;
mod timing;
mod verify;

pub use changes::REMEMBERED_MS;
pub use idempotency::Idempotency;
pub use route::{Route, routes};
pub use service::answer;
pub use throttle::Throttles;
