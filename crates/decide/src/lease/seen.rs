//! The copy of the origin's counters that a cell keeps, and what it says from it without a call: how it stands, and that there is
//! nothing left. It never takes units.

use tollkeeper_core::{Admission, Algorithm, Cost, Limit, Millis, Outcome, State};

use super::cell::LeaseCell;
use super::parked::WAIT_MS_MAX;
use super::sight::Sight;
use super::{Dealt, LeaseAsk, Units};

/// A copy of the origin's counters.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) state: State,
    /// Lent to others.
    pub(super) elsewhere: u64,
    pub(super) sight: Sight,
}

// === impl Seen ===

impl Seen {
    /// This is what an origin says that is being told what it lost: a part of what there was. What was known here before may be
    /// a part of it too, where others spent since. Of the two the one that leaves less is nearer to the truth. Nobody knows what
    /// of it is lent, so all may be: what a dead node had is not missed once the origin has learnt.
    pub(super) fn learnt(self, known: Option<Self>, limit: &Limit) -> Self {
        let left = |seen: &Self| seen.state.probe(limit, Cost::PEEK, self.sight.origin).remaining;
        match known.filter(|known| left(known) < left(&self)) {
            Some(known) => Self { elsewhere: limit.ceiling(), sight: self.sight, ..known },
            None => self,
        }
    }
}

// === impl LeaseCell ===

impl<W> LeaseCell<W> {
    pub(super) fn sight(&self) -> Sight {
        self.seen.as_ref().map_or(self.born, |seen| seen.sight)
    }

    /// The answer to an ask that has its units.
    pub(super) fn admitted(&self, ask: &LeaseAsk, units: Option<Units>, at: Millis) -> Dealt {
        let mut outcome = self.standing(&ask.limit, Cost::PEEK, at);
        outcome.admission = Admission::Admitted;
        Dealt { outcome, units, degraded: false, unavailable: false, at }
    }

    /// How the cell stands at a moment of the origin's clock, by what was last heard and what is in hand.
    pub(super) fn standing(&self, limit: &Limit, cost: Cost, at: Millis) -> Outcome {
        let in_hand = self.ready();
        let probe = |limit: &Limit, cost: Cost| match &self.seen {
            Some(seen) => seen.state.probe(limit, cost, at),
            None => State::fresh(limit).probe(limit, cost, at),
        };
        let mut outcome = probe(limit, cost);
        let mut left = outcome.remaining.saturating_add(in_hand);
        if in_hand > 0 && !self.covers(limit) {
            // What is lent of a larger limit may be more than was ever left of this one.
            let of_lease = probe(&self.limit, Cost::PEEK).remaining.saturating_add(in_hand);
            let spent = self.limit.ceiling().saturating_sub(of_lease);
            left = left.min(limit.ceiling().saturating_sub(spent));
        }
        outcome.remaining = left.min(outcome.limit);
        outcome
    }

    /// The origin's time, as far as this node knows it; never later than it is.
    pub(super) fn origin_time(&self, now: Millis) -> Millis {
        self.sight().at(now)
    }

    /// A cost above the limit never passes, and nobody need be asked.
    pub(super) fn impossible(&self, ask: &LeaseAsk, now: Millis) -> Option<Dealt> {
        if ask.cost.get() <= ask.limit.ceiling() {
            return None;
        }
        let at = self.origin_time(now);
        let mut outcome = self.standing(&ask.limit, Cost::PEEK, at);
        outcome.admission = Admission::Never;
        Some(refusal(outcome, at))
    }

    /// A refusal that needs no call: because units in hand have a date, or because the origin has said so
    /// and its counters cannot have changed to the better yet.
    pub(super) fn remembered(&self, ask: &LeaseAsk, now: Millis) -> Option<Dealt> {
        let cost = ask.cost.get();
        if cost == 0 || !self.waiters.is_empty() {
            return None;
        }
        let seen = self.seen.as_ref()?;
        let at = self.origin_time(now);
        let mut outcome = self.standing(&ask.limit, ask.cost, at);
        // What a log forgets comes back all at once, to who comes a width later: that one asks even if it may be a moment too
        // early, and waits. One line at a time: a log that is always full is not worth more.
        let by = match ask.limit.algorithm {
            Algorithm::SlidingLog(_) if self.parked.is_none() => {
                seen.sight.latest(now) + WAIT_MS_MAX
            }
            Algorithm::SlidingLog(_) => seen.sight.latest(now),
            _ => at,
        };
        let refused = !seen.state.probe(&ask.limit, ask.cost, by).admitted();
        // Dates of a lease under a smaller limit say nothing of what is free under a larger one.
        let dated = self.limit == ask.limit || (refused && self.covers(&ask.limit));
        if let Some(free_at) = self.free_at(cost).filter(|_| dated) {
            outcome.admission = Admission::NotUntil(at + free_at.since(now));
            return Some(refusal(outcome, at));
        }
        (refused && now < self.again_at).then(|| refusal(outcome, at))
    }

    /// What was heard is void: the counters were set back.
    pub(super) fn forget_copy(&mut self) {
        (self.again_at, self.refusals) = (Millis(0), 0);
        if let Some(seen) = &mut self.seen {
            seen.state = State::fresh(&self.limit);
        }
    }

    /// When dated units make up the cost.
    pub(super) fn free_at(&self, cost: u64) -> Option<Millis> {
        if self.dated.is_empty() || self.totals.held().saturating_sub(self.aside) < cost {
            return None;
        }
        let mut ready = self.ready();
        self.dated.iter().find_map(|(at, units)| {
            ready += units;
            (ready >= cost).then_some(*at)
        })
    }

    /// The origin did not answer: refused, whatever is free, because it may have been heard.
    pub(super) fn unheard(&self, ask: &LeaseAsk, now: Millis) -> Dealt {
        /// By then the next call has an answer, or the breaker is open.
        const SOON_MS: u64 = 100;
        let at = self.origin_time(now);
        let mut outcome = self.standing(&ask.limit, Cost::PEEK, at);
        // Who only looks is not refused.
        if ask.cost != Cost::PEEK {
            outcome.admission = Admission::NotUntil(at + SOON_MS);
        }
        Dealt { degraded: true, ..refusal(outcome, at) }
    }
}

/// A plain no.
pub(super) fn refusal(outcome: Outcome, at: Millis) -> Dealt {
    Dealt { outcome, units: None, degraded: false, unavailable: false, at }
}
