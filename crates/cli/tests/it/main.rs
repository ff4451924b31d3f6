//! The binary from outside: arguments, environment, stdin and requests in; text, exit codes and answers out.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod access;
mod admin;
mod archive;
mod audit;
mod bad_input;
mod contract;
mod crowd;
mod doctor;
mod durability;
mod fleet;
mod forward_auth;
mod gate;
mod http2;
mod key_commands;
mod keys;
mod limit;
mod program;
mod quotas;
mod recovery;
mod rules;
mod start;
mod system;
mod teaching;
mod time;
mod usage;
mod world;
