//! One side's turn: its requests on as many threads as there are streams, with the journal's reader beside them.

use std::sync::Barrier;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use crate::clock::Stopwatch;
use crate::failure::Failure;

/// How often the product's journal takes what changed.
const BEAT: Duration = Duration::from_millis(20);
/// Lower than the requests, higher than idle.
const NICENESS: i32 = 10;

pub(super) trait Limiter: Sync {
    /// Checks every request once, in order; returns how many were admitted.
    fn check_all(&self, requests: &[String]) -> usize;

    /// What happens beside the requests, every 20 ms.
    fn beat(&self) {}
}

/// How many of the requests must be admitted for the measurement to be what it claims to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    All,
    None,
}

/// Returns how long the slowest thread took.
pub(super) fn contest(
    limiter: &dyn Limiter,
    streams: &[Vec<String>],
    share: Share,
) -> Result<Duration, Failure> {
    let start = Barrier::new(streams.len());
    let check = |requests: &[String]| {
        start.wait();
        let watch = Stopwatch::start();
        let admitted = limiter.check_all(requests);
        (watch.elapsed(), admitted)
    };
    let (stop, stopped) = sync_channel::<()>(0);
    let turns: Vec<_> = thread::scope(|scope| {
        // For every side alike, so that none has the machine more to itself than another.
        scope.spawn(move || {
            // On Linux this is the thread's own niceness. A machine that refuses it still measures.
            let _ = rustix::process::nice(NICENESS);
            while stopped.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                limiter.beat();
            }
        });
        let threads: Vec<_> =
            streams.iter().map(|requests| scope.spawn(|| check(requests))).collect();
        let turns = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
        drop(stop);
        turns
    });
    let mut slowest = Duration::ZERO;
    for (turn, requests) in turns.into_iter().zip(streams) {
        let (took, admitted) = turn.map_err(|_| Failure::Invalid("a limiter panicked".into()))?;
        let expected = if share == Share::All { requests.len() } else { 0 };
        if admitted != expected {
            return Err(Failure::Invalid(format!("{admitted} admitted instead of {expected}")));
        }
        slowest = slowest.max(took);
    }
    Ok(slowest)
}
