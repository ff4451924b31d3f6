//! The guarantees of the wire types, seen from outside the crate.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod agreement;
mod gate;
mod grown;
mod key_replies;
mod keys;
mod refusals;
mod replies;
mod signing;
