//! The guarantees of the engine, seen from outside the crate. Under the feature `shuttle` its locks
//! belong to a scheduler, so there these tests are left out.

#![cfg(not(feature = "shuttle"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bank;
mod fleet;
mod flood;
mod keys;
mod memory;
mod model;
mod modes;
mod purse;
mod purse_model;
mod purse_return;
mod purse_world;
mod rules;
mod signatures;
mod swr;
mod threads;
mod verify;
mod verify_limits;
mod warm;
mod world;
