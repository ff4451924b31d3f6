//! The binary from outside: arguments, environment and stdin in; text and exit code out.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod doctor;
mod limit;
mod program;
mod teaching;
