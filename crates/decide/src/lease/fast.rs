//! `fast`: never waits. What was admitted and not yet told to the origin stays below a cap, so that
//! what all nodes together admit too much is bounded.

use tollkeeper_core::{Admission, Algorithm, Cost, Limit, Millis};

use super::cell::LeaseCell;
use super::seen::refusal;
use super::{Dealt, LeaseAsk, Stage, Units};

/// A tenth of what is left, over all nodes, may be under way untold.
const FAST_ALPHA: u64 = 10;

// === impl LeaseCell ===

impl<W> LeaseCell<W> {
    /// Decides by what was last heard and what was admitted since.
    pub(super) fn decide_fast(&mut self, ask: &LeaseAsk, nodes: u64, now: Millis) -> Dealt {
        self.pass_time(now);
        let at = self.origin_time(now);
        let mut outcome = self.standing(&ask.limit, Cost::PEEK, at);
        let untold = self.untold() + self.pledged;
        let left = outcome.remaining.saturating_sub(untold);
        let cost = ask.cost.get();
        let cap = outcome.remaining / (FAST_ALPHA * nodes.max(1));
        // A cost above the cap would never pass; alone it may, also in several parts. Who only looks adds nothing.
        let alone = untold <= ask.beside;
        let passes = cost <= left && (untold + cost <= cap || alone || cost == 0);
        outcome.remaining = left;
        if !passes {
            outcome.admission =
                if cost > outcome.limit { Admission::Never } else { self.fits(ask, at) };
            return refusal(outcome, at);
        }
        // A lease of a larger limit must not pass for one of this limit.
        if self.totals.held() == 0 || self.covers(&ask.limit) {
            self.limit = ask.limit;
        }
        let held = self.count_plain(ask, now);
        outcome.remaining = left - cost;
        outcome.admission = Admission::Admitted;
        Dealt { outcome, units: Some(held), degraded: false, unavailable: false, at }
    }

    /// Counts what is admitted without a lease: at once, or with the decision where something else may still refuse.
    pub(super) fn count_plain(&mut self, ask: &LeaseAsk, now: Millis) -> Units {
        let (key, units) = (self.key, ask.cost.get());
        self.note_spending(units, now);
        if ask.bundled {
            self.pledged += units;
            return Units { key, units, stage: Stage::Pledged };
        }
        self.totals.plain += units;
        Units { key, units, stage: Stage::Spent }
    }

    /// Half of what may be untold is: the rest covers the time that telling takes.
    pub(super) fn must_tell(&self, limit: &Limit, nodes: u64, now: Millis) -> bool {
        let outcome = self.standing(limit, Cost::PEEK, self.origin_time(now));
        let cap = outcome.remaining / (FAST_ALPHA * nodes.max(1));
        self.flight.is_none() && self.untold() > 0 && self.untold() >= cap / 2
    }

    /// The copy of a log knows only its first entry: all else it takes for new. Who is refused by it looks again.
    pub(super) fn copy_is_stale(&self, now: Millis) -> bool {
        let Algorithm::SlidingLog(width) = self.limit.algorithm else { return false };
        self.flight.is_none() && now.since(self.answered) >= (width.millis() / 50).max(1)
    }

    pub(super) fn untold(&self) -> u64 {
        self.totals.plain.saturating_sub(self.acked.plain)
    }

    fn fits(&self, ask: &LeaseAsk, at: Millis) -> Admission {
        /// By then the origin has answered, where only untold spending stands in the way.
        const SOON_MS: u64 = 20;
        let probed = self.seen.as_ref().map(|seen| seen.state.probe(&ask.limit, ask.cost, at));
        match probed.map(|outcome| outcome.admission) {
            Some(Admission::NotUntil(later)) => Admission::NotUntil(later),
            _ => Admission::NotUntil(at + SOON_MS),
        }
    }

    /// Turns to the window of the moment, before anything is counted in it. True where something of the last one must
    /// be told still.
    pub(super) fn turn_fast(&mut self, ask: &LeaseAsk, now: Millis) -> bool {
        let at = self.sight().at(now);
        let start = match ask.limit.algorithm {
            Algorithm::FixedWindow(_) | Algorithm::SlidingWindow(_) => ask.limit.window_at(at).0.0,
            _ => return false,
        };
        if start <= self.win || self.awaits(start, now) {
            return false;
        }
        // A lease of a larger limit must not pass for one of this limit.
        if self.totals.held() == 0 || self.covers(&ask.limit) {
            self.limit = ask.limit;
        }
        self.open_window(start, now);
        self.owes_before && self.flight.is_none()
    }
}
