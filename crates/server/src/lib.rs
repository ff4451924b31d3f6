//! The edges of Tollkeeper: sockets, HTTP, settings, and the wiring of one server. It never decides anything itself.

mod app;
mod banner;
mod clock;
mod data_dir;
mod envelope;
mod estate;
mod follower;
mod http;
mod ids;
mod keyring;
mod net;
pub mod redacted;
mod run;
pub mod settings;
mod status;
mod upkeep;

pub use crate::http::{Route, routes};
pub use run::{ServeError, serve};
