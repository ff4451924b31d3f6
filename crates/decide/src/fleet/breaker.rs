//! When to stop asking a server that does not answer, and when to ask again.

use tollkeeper_core::Millis;

/// Judged over so long at a time: a stall of a few dozen milliseconds is no outage, and must not look like one.
const WINDOW_MS: u64 = 500;

/// Fewer calls than this say nothing.
const CALLS_MIN: u32 = 20;

/// Where fewer ask than that: so long without one answer to at least so many calls.
const SILENT_MS: u64 = 1_000;
const SILENT_CALLS_MIN: u32 = 4;

/// A server without a connection for so long is away, however few calls there were.
const DOWN_MS: u64 = 250;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Breaker {
    since: Millis,
    calls: u32,
    failed: u32,
    /// Since when no call was answered, and how many were not.
    silent: Option<(Millis, u32)>,
    down_since: Option<Millis>,
    open: bool,
}

// === impl Breaker ===

impl Breaker {
    /// A call was answered in time, or not. True when that opened it.
    pub(super) fn note(&mut self, answered: bool, now: Millis) -> bool {
        let mut opens = false;
        if now.since(self.since) >= WINDOW_MS {
            // What was judged long ago says nothing about now.
            let recent = now.since(self.since) < 2 * WINDOW_MS;
            let failing = self.calls >= CALLS_MIN && self.failed * 2 >= self.calls;
            opens = !self.open && recent && failing;
            (self.since, self.calls, self.failed) = (now, 0, 0);
        }
        self.calls += 1;
        self.failed += u32::from(!answered);
        opens |= !answered && self.is_silent(now) && !self.open;
        self.silent = self.silent.filter(|_| !answered);
        self.open |= opens;
        opens
    }

    /// Counts one more call without an answer.
    fn is_silent(&mut self, now: Millis) -> bool {
        let (since, calls) = self.silent.get_or_insert((now, 0));
        *calls = calls.saturating_add(1);
        *calls >= SILENT_CALLS_MIN && now.since(*since) >= SILENT_MS
    }

    /// A question that had all the time in the world was not answered. True when that opened it.
    pub(super) fn hangs(&mut self) -> bool {
        !std::mem::replace(&mut self.open, true)
    }

    /// Whether there is a connection. True when its absence opened it.
    pub(super) fn connected(&mut self, connected: bool, now: Millis) -> bool {
        if connected {
            self.down_since = None;
            return false;
        }
        let since = *self.down_since.get_or_insert(now);
        let opens = !self.open && now.since(since) >= DOWN_MS;
        self.open |= opens;
        opens
    }

    /// It answered a probe.
    pub(super) fn close(&mut self) {
        *self = Self::default();
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(calls: impl Iterator<Item = (u64, bool)>) -> Breaker {
        let mut breaker = Breaker::default();
        calls.for_each(|(at, answered)| {
            breaker.note(answered, Millis(10_000 + at));
        });
        breaker
    }

    #[test]
    fn it_opens_when_half_of_the_calls_of_half_a_second_fail() {
        assert!(fed((0..1_100).step_by(10).map(|at| (at, at % 20 == 0))).is_open());
        assert!(!fed((0..1_100).step_by(10).map(|at| (at, at % 30 != 0))).is_open());
    }

    #[test]
    fn a_stall_of_fifty_milliseconds_does_not_open_it() {
        let stalled = |at: &u64| (at / 50) % 20 == 3;
        assert!(!fed((0..5_000).map(|at| (at, !stalled(&at)))).is_open());
    }

    #[test]
    fn a_few_calls_say_nothing_while_one_of_them_is_answered_now_and_then() {
        assert!(!fed((0..5_000).step_by(100).map(|at| (at, at % 900 == 0))).is_open());
        assert!(!fed((0..900).step_by(100).map(|at| (at, false))).is_open());
        assert!(!fed([0, 2_000, 4_000].into_iter().map(|at| (at, false))).is_open());
    }

    #[test]
    fn a_second_without_a_single_answer_opens_it_however_few_ask() {
        assert!(fed((0..2_000).step_by(250).map(|at| (at, false))).is_open());
        assert!(fed((0..10_000).step_by(2_000).map(|at| (at, false))).is_open());
    }

    #[test]
    fn a_server_without_a_connection_is_away_after_a_quarter_of_a_second() {
        let mut breaker = Breaker::default();
        assert!(!breaker.connected(false, Millis(1_000)));
        assert!(!breaker.connected(false, Millis(1_249)));
        assert!(breaker.connected(false, Millis(1_250)));
        let mut flapping = Breaker::default();
        for at in (1_000..3_000).step_by(100) {
            assert!(!flapping.connected(at % 200 == 0, Millis(at)));
        }
    }
}
