//! The one place that reads time. Decisions run on a clock that goes on with real time and does not jump:
//! wall time as it was at start, plus what has passed since, also in suspend. A step of the system clock moves
//! no window; the difference is worked off slowly.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use tollkeeper_core::Millis;

/// How far one call of [`Clock::follow`] moves towards the system clock. Called once per second that is 1 %:
/// slow enough that no window changes its length by more, fast enough for ordinary drift.
const SLEW_MS: i64 = 10;

#[derive(Clone, Debug)]
pub struct Clock {
    /// Wall time minus time since boot, in milliseconds.
    offset_ms: Arc<AtomicI64>,
}

/// A moment since boot, in nanoseconds: for measuring how long something took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(u64);

// === impl Clock ===

impl Clock {
    pub fn start() -> Self {
        Self { offset_ms: Arc::new(AtomicI64::new(wall_ms() - Stamp::now().millis())) }
    }

    /// Unix time of a stamp.
    pub fn at(&self, stamp: Stamp) -> Millis {
        let ms = stamp.millis() + self.offset_ms.load(Ordering::Relaxed);
        Millis(u64::try_from(ms).unwrap_or(0))
    }

    pub fn now(&self) -> Millis {
        self.at(Stamp::now())
    }

    /// Time that goes on evenly from here, whatever becomes of the system clock.
    pub fn steady(&self) -> impl Fn() -> Millis + Send + Sync + 'static {
        let offset_ms = self.offset_ms.load(Ordering::Relaxed);
        move || Millis(u64::try_from(Stamp::now().millis() + offset_ms).unwrap_or(0))
    }

    /// What the system's clock says, right or wrong. For telling that it is wrong; nothing is decided by it.
    pub fn wall() -> Millis {
        Millis(u64::try_from(wall_ms()).unwrap_or(0))
    }

    /// What this clock would have said when the machine started, by its present difference to the machine's own.
    pub fn machine_start(&self) -> Millis {
        Millis(u64::try_from(self.offset_ms.load(Ordering::Relaxed)).unwrap_or(0))
    }

    /// Moves a little towards the system clock; to be called once per second.
    pub fn follow(&self) {
        let ahead = wall_ms() - Stamp::now().millis() - self.offset_ms.load(Ordering::Relaxed);
        self.offset_ms.fetch_add(ahead.clamp(-SLEW_MS, SLEW_MS), Ordering::Relaxed);
    }
}

// === impl Stamp ===

impl Stamp {
    /// Boot time and not monotonic time: it goes on while the machine sleeps, as windows must.
    pub fn now() -> Self {
        let time = clock_gettime(ClockId::Boottime);
        let ns = time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec);
        Self(u64::try_from(ns).unwrap_or(0))
    }

    /// Milliseconds since the machine started: every process of it reads the same.
    pub fn machine_ms(self) -> u64 {
        self.0 / 1_000_000
    }

    pub fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    fn millis(self) -> i64 {
        i64::try_from(self.0 / 1_000_000).unwrap_or(i64::MAX)
    }
}

#[allow(clippy::disallowed_methods, reason = "this is the clock")]
fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_system_clock_is_worked_off_slowly() {
        let clock = Clock::start();
        clock.offset_ms.fetch_add(-3_600_000, Ordering::Relaxed);
        let before = clock.now();
        clock.follow();
        assert!(clock.now().since(before) < 1_000, "an hour's difference must not become a jump");
        clock.offset_ms.fetch_add(3_600_000 - SLEW_MS, Ordering::Relaxed);
        clock.follow();
        assert!((wall_ms() - i64::try_from(clock.now().0).unwrap_or(0)).abs() <= 2);
    }
}
