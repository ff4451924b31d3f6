//! The only place of this crate that reads a clock: deadlines of calls and how long they took.
//! No time that is read here reaches a decision.

use std::time::Duration;

use tokio::time::Instant;

#[allow(
    clippy::disallowed_methods,
    reason = "a deadline on the network is kept by the runtime's timer"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

pub(crate) fn after(patience: Duration) -> Instant {
    now() + patience
}
