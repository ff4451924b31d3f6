//! When to stop asking a server that does not answer, and when to ask again.

use tollkeeper_core::Millis;

/// Judged over so long at a time: a stall of a few dozen milliseconds is no outage, and must not look like one.
const WINDOW_MS: u64 = 500;

/// Fewer calls than this say nothing.
const CALLS_MIN: u32 = 20;

/// Where fewer ask than that: so long without one answer to at least so many calls.
const SILENT_MS: u64 = 1_000;
const SILENT_CALLS_MIN: u32 = 4;

/// A server without a connection, or of which no probe was answered, for so long is away, however few calls there were.
const DOWN_MS: u64 = 250;

/// A probe has 300 ms. One that ended much later than that waited for this machine, which stood still, and not for the server.
const PROBE_MS_MAX: u64 = 500;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Breaker {
    since: Millis,
    calls: u32,
    failed: u32,
    /// Since when no call was answered, and how many were not.
    silent: Option<(Millis, u32)>,
    down_since: Option<Millis>,
    /// Since when probes were not answered. Apart from connections: a server that refuses everything has one.
    unheard_since: Option<Millis>,
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

    /// A probe came to nothing after so long. One that was waited for in vain tells of a server that hangs; what fails
    /// sooner, a connection that broke or a process that must be vetted first, may be well again with the next probe. True
    /// when that opened it.
    pub(super) fn unheard(&mut self, waited_ms: u64, now: Millis) -> bool {
        let since = *self.unheard_since.get_or_insert(now);
        let hangs = (DOWN_MS..PROBE_MS_MAX).contains(&waited_ms);
        let opens = !self.open && (hangs || now.since(since) >= DOWN_MS);
        self.open |= opens;
        opens
    }

    /// A probe was answered, however late.
    pub(super) fn heard(&mut self) {
        self.unheard_since = None;
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

    /// It answered a probe in time.
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
    fn a_probe_that_failed_at_once_says_nothing_before_the_next_ones_do() {
        let mut breaker = Breaker::default();
        assert!(!breaker.unheard(0, Millis(1_000)) && !breaker.unheard(3, Millis(1_249)));
        assert!(breaker.unheard(0, Millis(1_250)) && breaker.is_open());
        let mut flapping = Breaker::default();
        for at in (1_000..3_000).step_by(200) {
            assert!(!flapping.unheard(0, Millis(at)));
            flapping.heard();
        }
    }

    #[test]
    fn a_probe_that_was_waited_for_in_vain_opens_it_but_not_one_that_this_machine_slept_through() {
        assert!(Breaker::default().unheard(300, Millis(1_000)));
        assert!(!Breaker::default().unheard(10_000, Millis(11_000)));
    }

    #[test]
    fn a_server_that_is_connected_and_refuses_every_probe_is_away() {
        let mut breaker = Breaker::default();
        for at in (1_000..1_300).step_by(100) {
            breaker.connected(true, Millis(at));
            breaker.unheard(0, Millis(at));
        }
        assert!(!breaker.is_open());
        breaker.connected(true, Millis(1_300));
        assert!(breaker.unheard(0, Millis(1_300)));
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
