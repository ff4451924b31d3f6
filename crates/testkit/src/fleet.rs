//! A fleet in one thread: the engine's own lease tables, a model of the shared origin, and a network that
//! loses, delays, repeats and reorders. Everything follows from one number, so that every run can be run again.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a simulator's own small numbers"
)]

mod check;
mod dice;
mod draw;
mod event;
mod journal;
mod mischief;
mod network;
mod node;
mod origin;
mod plan;
mod requests;
mod world;

pub use check::Findings;
pub use dice::Dice;
pub use plan::{Faults, Plan, Promise, Traffic};
pub use world::{Story, run};
