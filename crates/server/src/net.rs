//! Sockets: one listener hands connections to worker threads, each with a runtime of its own.
//! Bounded in number, in size and in patience; drained in order at the end.

mod aside;
mod connection;
mod date;
mod framing;
mod front;
mod gauges;
mod listener;
mod parting;
mod plain;
mod screen;
mod screened;
mod turned_away;
mod turns;
mod watched;
mod worker;

pub use gauges::Gauges;
pub use listener::{ListenError, Listener};
pub use turned_away::TurnedAway;
pub use worker::Workers;
