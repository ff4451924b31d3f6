//! What the clocks of the servers say, from the probes that are made anyway: for whoever wants to know whether this
//! machine's own clock is wrong. Nothing is decided by it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tollkeeper_core::Millis;

use crate::clock::now;

/// Servers are probed ten times a second; what was read longer ago says that this one is not.
const FRESH: Duration = Duration::from_secs(2);

/// An answer that took longer says too little of the moment that it speaks of.
const SLOW: Duration = Duration::from_millis(200);

/// By place: what a server's clock said, and when.
#[derive(Debug, Default)]
pub(crate) struct ServerTimes(Mutex<Vec<Option<(u64, Instant)>>>);

// === impl ServerTimes ===

impl ServerTimes {
    /// The server read its clock at some moment between the question and now: most likely in the middle.
    pub(crate) fn note(&self, server: usize, said_ms: u64, asked: Instant) {
        let took = now().saturating_duration_since(asked);
        if took > SLOW {
            return;
        }
        let mut all = self.all();
        if all.len() <= server {
            all.resize(server + 1, None);
        }
        all[server] = Some((said_ms, asked + took / 2));
    }

    /// What it would say now. `None` where nobody has heard it lately.
    pub(crate) fn read(&self, server: usize) -> Option<Millis> {
        let (said_ms, at) = (*self.all().get(server)?)?;
        let passed = now().saturating_duration_since(at);
        (passed <= FRESH).then(|| Millis(said_ms) + u64::try_from(passed.as_millis()).unwrap_or(0))
    }

    fn all(&self) -> MutexGuard<'_, Vec<Option<(u64, Instant)>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_goes_on_from_what_it_said_until_that_is_too_long_ago() {
        let times = ServerTimes::default();
        assert_eq!(times.read(1), None);
        times.note(1, 1_000, now());
        let Some(ago) = now().checked_sub(Duration::from_millis(100)) else { return };
        assert!(times.read(1).is_some_and(|read| (1_000..1_100).contains(&read.0)));
        times.note(1, 5_000, ago);
        assert!(times.read(1).is_some_and(|read| (5_050..5_150).contains(&read.0)));
        let Some(long_ago) = now().checked_sub(Duration::from_secs(3)) else { return };
        times.note(1, 9_000, long_ago);
        assert!(times.read(1).is_some_and(|read| read.0 < 9_000), "slow answers say nothing");
        assert_eq!((times.read(0), times.read(2)), (None, None));
    }
}
