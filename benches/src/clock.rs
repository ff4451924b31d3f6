//! The only place of the bench that reads time.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tollkeeper_core::Millis;

/// A stopwatch that runs from its making.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

// === impl Stopwatch ===

impl Stopwatch {
    #[allow(clippy::disallowed_methods, reason = "measuring time is what a bench is for")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// The moment of its making.
    pub(crate) fn begun(self) -> Instant {
        self.0
    }
}

/// Between two looks at something that takes its time.
#[allow(clippy::disallowed_methods, reason = "what is measured goes on meanwhile")]
pub(crate) fn pause(how_long: Duration) {
    std::thread::sleep(how_long);
}

/// Milliseconds since boot, read as the edge reads them once per request.
pub(crate) fn boot_millis() -> Millis {
    let time = clock_gettime(ClockId::Boottime);
    let ms = time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000);
    Millis(u64::try_from(ms).unwrap_or(0))
}
