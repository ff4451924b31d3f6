//! What follows a decision, seen from outside the crate: nothing is lost, nothing is counted twice.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod changes;
mod corruption;
mod credits;
mod full_disk;
mod journal;
mod keeper;
mod leases;
mod ledger;
mod node;
mod pages;
mod pages_copied;
mod pages_cost;
mod pages_faults;
