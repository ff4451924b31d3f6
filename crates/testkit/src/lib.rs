//! What tests of every crate share: a server process, a clock that is told the time, raw connections and slow clients.
//! It imports no crate of ours, so that any of them can use it, and it is never part of the product.

mod connection;
mod fake_clock;
mod output;
mod postgres;
mod process;
mod slow_sockets;

pub use connection::{Connection, Response};
pub use fake_clock::FakeClock;
pub use postgres::{Database, Postgres, PostgresFailure};
pub use process::{ROOT_KEY, StartFailure, Tollkeeper};
pub use slow_sockets::SlowSockets;
