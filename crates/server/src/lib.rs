//! The edges of Tollkeeper: sockets, HTTP, settings, and the wiring of one server. It never decides anything itself.

mod app;
mod archiving;
mod aside;
mod audit;
mod banner;
mod clock;
mod data_dir;
mod envelope;
mod estate;
mod fleet;
mod follower;
mod forward_auth;
mod head_count;
mod http;
mod hush;
mod ids;
mod keyring;
mod lease_estate;
mod limit_stats;
mod net;
pub mod offline;
pub mod redacted;
mod rollback;
mod rule_books;
pub mod rules;
mod run;
pub mod settings;
mod shared_cache;
mod signing;
mod skew;
mod status;
mod upkeep;
mod usage;

pub use crate::http::{Effect, Route, routes};
pub use run::{ServeError, serve};
