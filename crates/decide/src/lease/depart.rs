//! A cell's next call: when it is time for one, whose need it carries, how much it asks for and what it tells.

use tollkeeper_core::{Algorithm, Cost, Millis, Take, Totals};

use super::LeaseAsk;
use super::cell::{Flight, LeaseCell, Sender, width_of};
use super::waiter::Waiter;

/// A burst is over when nothing was spent for so long.
const LULL_MS: u64 = 100;

/// Two looks through the table: what would be too late at the next but one is told at this one.
const LOOKS_MS: u64 = 800;

/// What was spent and not told of a bucket is not worth a call of its own below this part of it, nor below so many units, or
/// a small one would have a call for nearly every decision; of one that holds fewer than 64 an eighth is much.
const UNTOLD_PARTS: u64 = 64;
const UNTOLD_MIN: u64 = 8;
const UNTOLD_MIN_PARTS: u64 = 8;

/// A log lends no less but to what is spent together: who uses fewer in a fiftieth of its width asks for each.
const LOG_LEASE_MIN: u64 = 3;

// === impl LeaseCell ===

impl<W> LeaseCell<W> {
    /// The next call of this cell, for its first waiter if there is one.
    pub(super) fn depart(&mut self, sender: &Sender, now: Millis) -> Take {
        self.open_ahead(now);
        let more = self.wanted_at_once();
        let mut ask = self.wanted_on_loan();
        if !self.yields(now) {
            ask = ask.max(self.demand());
        }
        let front = self.waiters.front().map(|waiter| (waiter.id, waiter.ask));
        if let Some((_, first)) = &front {
            // A lower limit than the lease's takes its cost and no more: it must not be lent what it forbids.
            if first.cost.get() == 0 || !self.covers(&first.limit) {
                ask = 0;
            }
            if first.cost.get() > 0 {
                // Too little for it, or lent for a larger limit: it goes back, and the whole cost is asked for.
                self.hand_back();
            }
            // Who only looks gives nothing back, and what is set aside cannot go back: then the lease in hand keeps the
            // terms it was granted under, or a smaller limit would spend it.
            let kept = first.cost.get() == 0 || (self.aside > 0 && !self.covers(&first.limit));
            if !kept {
                self.limit = first.limit;
            }
        }
        if matches!(self.limit.algorithm, Algorithm::SlidingLog(_)) {
            // Units of two moments would lapse at two moments: only the new ones are kept.
            self.hand_back();
        }
        self.turn_fixed(sender, now);
        self.end_between();
        let (need, bundled) = front.map_or((0, false), |(_, ask)| (ask.cost.get(), ask.bundled));
        if self.owes_before {
            // Nothing is granted while history is told; so this goes first.
            return self.report(sender);
        }
        let limit = front.map_or(self.limit, |(_, ask)| ask.limit);
        let take = Take { need, more, ask, bundled, limit, ..self.said(sender) };
        let waiter = front.map(|(id, _)| id);
        let pays = self.owes && !self.strange;
        let last = self.waiters.iter().map(|waiter| waiter.id).max().unwrap_or(0);
        self.flight = Some(Box::new(Flight { take, waiter, last, pays, ahead: false }));
        take
    }

    /// What those cost who wait behind the first, where a lease would count from its end on: a log's.
    fn wanted_at_once(&self) -> u64 {
        let Some(first) = self.waiters.front().map(|waiter| waiter.ask) else { return 0 };
        let alike = self.waiters.iter().skip(1).filter(|waiter| is_served_with(&first, waiter));
        first.cost.get().saturating_mul(alike.count() as u64)
    }

    /// What the first costs and those behind it that a lease is for. Who needs much of the limit asks for itself: what could
    /// be lent for it is never enough.
    fn wanted_on_loan(&self) -> u64 {
        let Some(first) = self.waiters.front().map(|waiter| waiter.ask) else { return 0 };
        let behind = self.waiters.iter().skip(1);
        let behind = behind.filter(|waiter| !is_served_with(&first, waiter));
        let costs = behind.map(|waiter| waiter.ask.cost.get()).filter(|cost| !self.is_large(*cost));
        costs.fold(first.cost.get(), u64::saturating_add)
    }

    /// What this node can make use of. Units of a log lapse so soon that only those count which it spends until then, and are
    /// so late that a few of them are not worth it.
    pub(super) fn demand(&self) -> u64 {
        match self.limit.algorithm {
            Algorithm::SlidingLog(_) => {
                let soon = self.pace.most() / 50;
                if soon < LOG_LEASE_MIN { 0 } else { soon }
            }
            _ => self.pace.demand(),
        }
    }

    /// A fixed window has a record of its own: which it is must be known before the call.
    pub(super) fn turn_fixed(&mut self, sender: &Sender, now: Millis) {
        if matches!(self.limit.algorithm, Algorithm::FixedWindow(_)) {
            let sight = self.seen.as_ref().map_or(sender.sight, |seen| seen.sight);
            let start = self.limit.window_at(sight.at(now)).0.0;
            if start > self.win && !self.awaits(start, now) {
                self.open_window(start, now);
            }
        }
    }

    pub(super) fn said(&self, sender: &Sender) -> Take {
        Take {
            boot: sender.boot,
            seq: sender.seq,
            win: self.win,
            totals: if self.strange { Totals::default() } else { self.totals },
            need: 0,
            more: 0,
            forgotten: if self.strange { 0 } else { self.forgotten(sender.now) },
            ask: 0,
            bundled: false,
            nodes: sender.nodes,
            limit: self.limit,
        }
    }

    /// A call that only tells, and asks for nothing.
    pub(super) fn report(&mut self, sender: &Sender) -> Take {
        self.end_between();
        let mut take = self.said(sender);
        let mut pays = self.owes && !self.strange;
        if let Some((win, totals)) = self.before.as_deref().copied().filter(|_| self.owes_before) {
            (take.win, take.totals, pays) = (win, totals, true);
        } else if self.strange {
            // What cannot be told is taken; if that is refused it is told once the totals are known.
            take.need = self.totals.plain;
        }
        self.flight = Some(Box::new(Flight { take, waiter: None, last: 0, pays, ahead: false }));
        take
    }

    /// What is kept in hand while more is on its way, as a part of the last loan. Where units flow back, every unit
    /// in hand is one that another node is refused, so the reserve is small.
    pub(super) fn reserve(&self) -> u64 {
        match self.limit.algorithm {
            Algorithm::SlidingWindow(_) => 8,
            _ => 2,
        }
    }

    /// Is it time to ask for more, before the lease runs out?
    pub(super) fn runs_low(&self, now: Millis) -> bool {
        let Some(seen) = &self.seen else { return false };
        let low = self.flight.is_none()
            && self.last_lent >= 4
            && self.totals.held() <= self.last_lent / self.reserve()
            && now >= self.again_at
            && !self.yields(now)
            && now < self.lapse;
        low && {
            let at = seen.sight.at(now);
            seen.state.probe(&self.limit, Cost::ONE, at).admitted()
        } && !self.lasts(now)
    }

    /// Is there enough in hand until a fixed window ends, by all that is known of the node's use? Where a whole window of it
    /// is known, enough for now will do: a lease of that size is often just enough.
    fn lasts(&self, now: Millis) -> bool {
        let Algorithm::FixedWindow(_) = self.limit.algorithm else { return false };
        let (left, width) = (self.lapse.since(now), width_of(&self.limit, now));
        let held = self.totals.held();
        let soon = self.pace.within(100, width).max(1);
        held > self.pace.until_end(left, width) || (self.pace.is_known() && held > soon)
    }

    /// Must a bucket hear what was spent of it, so that it goes on filling? What is lent is not in it, and it never fills up
    /// to more than the rest: what was spent of a loan and not told flows back to nobody.
    pub(super) fn hinders_refill(&self, now: Millis) -> bool {
        let (Algorithm::TokenBucket { .. }, Some(seen)) = (self.limit.algorithm, &self.seen) else {
            return false;
        };
        let ceiling = self.limit.ceiling();
        let untold = self.totals.used.saturating_sub(self.acked.used);
        let worth = untold > 0 && untold >= worth_telling(ceiling);
        worth && now.since(self.spent_at) >= LULL_MS && {
            let soon = seen.sight.at(now) + LOOKS_MS;
            let free = seen.state.probe(&self.limit, Cost::PEEK, soon).remaining;
            ceiling.saturating_sub(free) < self.acked.held().saturating_add(seen.elsewhere)
        }
    }
}

/// Does the origin spend for it at once, in the call for the first? Of a log, and only for those that ask for as much under the
/// same limit: the origin decides as for the first.
fn is_served_with<W>(first: &LeaseAsk, waiter: &Waiter<W>) -> bool {
    let is_log = matches!(first.limit.algorithm, Algorithm::SlidingLog(_));
    is_log && first.cost.get() > 0 && waiter.asks_for(first.cost.get(), &first.limit)
}

/// From how many units on a bucket of this size is to hear of them.
fn worth_telling(ceiling: u64) -> u64 {
    (ceiling / UNTOLD_PARTS).max(UNTOLD_MIN.min(ceiling / UNTOLD_MIN_PARTS))
}
