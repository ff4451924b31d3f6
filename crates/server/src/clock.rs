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
const SLEW_NS: i64 = 10 * MS;

/// Closer than this the two clocks agree. They are read one after the other, and go at the same pace until somebody sets one: what
/// they seem to differ by is how this thread was held up in between, and following it would move windows to and fro.
const SAME_NS: i64 = 2 * MS;

/// Readings further apart than this are none.
const HELD_UP_NS: u64 = 100_000;

/// At the start one is needed: so often it is tried, and then the last one is taken as it is.
const READINGS: u32 = 10;

const MS: i64 = 1_000_000;

#[derive(Clone, Debug)]
pub struct Clock {
    /// Wall time minus time since boot, in nanoseconds: two times cut to milliseconds differ by one more or less each time.
    offset_ns: Arc<AtomicI64>,
}

/// A moment since boot, in nanoseconds: for measuring how long something took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(u64);

// === impl Clock ===

impl Clock {
    pub fn start() -> Self {
        let difference = (0..READINGS).find_map(|_| difference());
        let offset_ns = difference.unwrap_or_else(|| wall_ns() - Stamp::now().nanos());
        Self { offset_ns: Arc::new(AtomicI64::new(offset_ns)) }
    }

    /// Unix time of a stamp.
    pub fn at(&self, stamp: Stamp) -> Millis {
        millis(stamp.nanos() + self.offset_ns.load(Ordering::Relaxed))
    }

    pub fn now(&self) -> Millis {
        self.at(Stamp::now())
    }

    /// Time that goes on evenly from here, whatever becomes of the system clock.
    pub fn steady(&self) -> impl Fn() -> Millis + Send + Sync + 'static {
        let offset_ns = self.offset_ns.load(Ordering::Relaxed);
        move || millis(Stamp::now().nanos() + offset_ns)
    }

    /// What the system's clock says, right or wrong. For telling that it is wrong; nothing is decided by it.
    pub fn wall() -> Millis {
        millis(wall_ns())
    }

    /// What this clock would have said when the machine started, by its present difference to the machine's own.
    pub fn machine_start(&self) -> Millis {
        millis(self.offset_ns.load(Ordering::Relaxed))
    }

    /// Moves a little towards the system clock; to be called once per second.
    pub fn follow(&self) {
        let Some(difference) = difference() else { return };
        let ahead = difference - self.offset_ns.load(Ordering::Relaxed);
        if ahead.abs() >= SAME_NS {
            self.offset_ns.fetch_add(ahead.clamp(-SLEW_NS, SLEW_NS), Ordering::Relaxed);
        }
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

    fn nanos(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }
}

/// What wall time is ahead of the machine's, or nothing where this thread was held up while it read them.
fn difference() -> Option<i64> {
    let before = Stamp::now();
    let wall = wall_ns();
    let took = Stamp::now().nanos_since(before);
    (took <= HELD_UP_NS).then(|| wall - before.nanos())
}

#[allow(clippy::disallowed_methods, reason = "this is the clock")]
fn wall_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn millis(ns: i64) -> Millis {
    Millis(u64::try_from(ns / MS).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_system_clock_is_worked_off_slowly() {
        let clock = Clock::start();
        clock.offset_ns.fetch_add(-3_600_000 * MS, Ordering::Relaxed);
        let before = clock.now();
        clock.follow();
        assert!(clock.now().since(before) < 1_000, "an hour's difference must not become a jump");
        clock.offset_ns.fetch_add(3_600_000 * MS - SLEW_NS, Ordering::Relaxed);
        // Some readings may be none.
        (0..READINGS).for_each(|_| clock.follow());
        assert!(Clock::wall().0.abs_diff(clock.now().0) <= 4);
    }

    #[test]
    fn a_clock_that_agrees_with_the_system_clock_does_not_move() {
        let clock = Clock::start();
        let offset_ns = clock.offset_ns.load(Ordering::Relaxed);
        for _ in 0..10_000 {
            clock.follow();
        }
        assert_eq!(clock.offset_ns.load(Ordering::Relaxed), offset_ns);
    }
}
