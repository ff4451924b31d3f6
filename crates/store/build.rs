//! Has the crate built again when a migration is added: the macro that embeds them only watches those it saw.

#![allow(clippy::print_stdout, reason = "cargo listens there")]

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
