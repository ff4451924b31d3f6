//! A cell's next call: when it is time for one, whose need it carries, how much it asks for and what it tells.

use tollkeeper_core::{Algorithm, Cost, Millis, Take, Totals};

use super::cell::{Flight, LeaseCell, Sender, width_of};

// === impl LeaseCell ===

impl<W> LeaseCell<W> {
    /// The next call of this cell, for its first waiter if there is one.
    pub(super) fn depart(&mut self, sender: &Sender, now: Millis) -> Take {
        self.open_ahead(now);
        let costs = self.waiters.iter().map(|waiter| waiter.ask.cost.get());
        let waiting = costs.fold(0, u64::saturating_add);
        let mut ask = waiting.max(self.demand());
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
        let take = Take { need, ask, bundled, limit, ..self.said(sender) };
        let waiter = front.map(|(id, _)| id);
        let pays = self.owes && !self.strange;
        self.flight = Some(Box::new(Flight { take, waiter, pays, ahead: false }));
        take
    }

    /// What this node can make use of. Units of a log lapse so soon that only those count which it spends until then.
    pub(super) fn demand(&self) -> u64 {
        match self.limit.algorithm {
            Algorithm::SlidingLog(_) => self.pace.most() / 50,
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
        self.flight = Some(Box::new(Flight { take, waiter: None, pays, ahead: false }));
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
        let soon = self.pace.in_50_ms(width).saturating_mul(2).max(1);
        held > self.pace.until_end(left, width) || (self.pace.is_known() && held > soon)
    }
}
