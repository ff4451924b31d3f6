//! The machine's own time, for tests about a real process: there is no clock to hand in across a process boundary.

use std::time::{Duration, Instant};

/// Far beyond what anything waited for takes, so that only a thing that never happens runs into it.
const PATIENCE: Duration = Duration::from_secs(40);

#[allow(clippy::disallowed_methods, reason = "a client measures by its own clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods, reason = "what is tested is that time passes")]
pub(crate) fn pause(how_long: Duration) {
    std::thread::sleep(how_long);
}

/// Waits for something that the server does by itself.
pub(crate) fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let begun = now();
    while !happened() {
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        pause(Duration::from_millis(10));
    }
}
