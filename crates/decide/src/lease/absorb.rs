//! An answer comes in: what it lends, what it says, and who of those who wait gets what.

use std::collections::VecDeque;

use tollkeeper_core::{Admission, Algorithm, Millis, Stand, State, Take, Taken, Totals, dated_at};

use super::cell::{Flight, LeaseCell};
use super::seen::{Seen, refusal};
use super::sight::Sight;
use super::waiter::Waiter;
use super::{Dealt, Link, Stage, Units};

/// A bucket's lease lives so long after the call that was answered last; the origin waits a little longer
/// before it writes it off.
const BUCKET_LEASE_MS: u64 = 10_000;

/// Dated units are kept in so many groups, each with the date of its last.
const DATES_MAX: u64 = 16;

/// Calls that are made for one waiter: the second only where the first found another window, or one ahead of it took all.
pub(super) const ROUNDS_MAX: u32 = 2;

const AGAIN_MS: u64 = 20;
const AGAIN_MS_MAX: u64 = 5_000;

/// Everybody whose wait is over.
pub(super) type Dealing<W> = Vec<(W, Dealt)>;

// === impl LeaseCell ===

impl<W> LeaseCell<W> {
    /// Takes in an answer to the call in flight.
    pub(super) fn absorb(
        &mut self,
        taken: &Taken,
        sent: Millis,
        heard: Millis,
        out: &mut Dealing<W>,
    ) {
        let Some(flight) = self.flight.take() else { return };
        self.answered = sent;
        if let Some(asker) = self.waiters.iter_mut().find(|one| Some(one.id) == flight.waiter) {
            asker.rounds += 1;
        }
        let sight = Sight { origin: taken.now, sent, heard };
        // The origin's clock stepped back to before the window in hand: what it lent of that is not for now.
        let early = !flight.ahead && self.is_before(taken);
        let turned = early.then(|| Taken::elsewhere(&flight.take, taken.now));
        let taken = turned.as_ref().unwrap_or(taken);
        if flight.ahead && self.absorb_ahead(&flight, taken, sight, out) {
            return;
        }
        if flight.pays {
            let of_before = self.before.as_ref().is_some_and(|before| before.0 == flight.take.win);
            self.owes_before &= !of_before;
            self.owes &= of_before || flight.take.win != self.win;
        }
        // Without the origin the cell has turned to a later window since the call left: an answer about the old one
        // must not turn it back, or what was admitted alone in the new one is never told.
        if flight.take.win < self.win && taken.win < self.win {
            if taken.took && !flight.take.bundled {
                self.serve_first(&flight, taken.now, heard, out);
            }
            self.deal_ready(heard, out);
            return;
        }
        let mut same = taken.win == self.win;
        let goes_back = taken.win < self.win;
        // A need that nobody waits for was spent before it was taken.
        let spent = if taken.took && flight.waiter.is_none() { flight.take.need } else { 0 };
        if !same {
            if flight.take.win == self.win && taken.stand != Stand::WrongWindow {
                self.acked.plain = self.acked.plain.max(flight.take.totals.plain + spent);
                self.acked.returned = self.acked.returned.max(flight.take.totals.returned);
            }
            if goes_back {
                self.keep_for_later(sight);
            }
            self.open_window(taken.win, heard);
            // What was lent of it ahead is known.
            same = self.adopted;
        }
        if taken.stand == Stand::WrongWindow {
            // It tells the time and nothing of any counters: those that were heard stay, with all that was lent of them.
            let known = self.seen.take().filter(|_| self.adopted);
            self.see(taken, sight);
            if let Some(seen) = known {
                self.seen = Some(Seen { sight, ..seen });
            }
            self.deal_ready(heard, out);
            self.drop_late(heard, out);
            return;
        }
        // What was told of another window is nothing of this one; but who was heard in this one before has told what the
        // origin knows.
        let told = if flight.take.win == taken.win {
            Totals { plain: flight.take.totals.plain + spent, ..flight.take.totals }
        } else if same && self.adopted {
            taken.totals
        } else {
            Totals::default()
        };
        self.adopt(taken, &told, same);
        let learning = taken.stand == Stand::Learning;
        let known = self.seen.take_if(|_| learning && !goes_back);
        self.see(taken, sight);
        self.seen = self.seen.take().map(|seen| seen.learnt(known, &self.limit));
        self.date(taken, sight);
        if taken.took {
            self.serve_first(&flight, taken.now, heard, out);
            self.serve_more(taken, &flight, heard, out);
        }
        if learning {
            while let Some(waiter) = self.waiters.pop_front() {
                let dealt =
                    self.without_origin(&waiter.ask, Link::Learning, flight.take.nodes, heard);
                out.push((waiter.tell, dealt));
            }
            return;
        }
        self.end_share(taken.now);
        self.remember(taken, &flight.take, heard);
        let refused = flight.waiter.filter(|_| !taken.took).map(|_| flight.take.need);
        self.deal(taken.recall, refused, heard, out);
    }

    /// The origin's totals of us, and what we did since we sent ours.
    fn adopt(&mut self, taken: &Taken, told: &Totals, same: bool) {
        let theirs = taken.totals;
        let expected = if same && self.adopted { self.totals.held() } else { 0 };
        let since = if same { self.totals.plain.saturating_sub(told.plain) } else { 0 };
        if self.adopted && same {
            self.totals.granted = theirs.granted.max(self.totals.granted);
            self.totals.used = self.totals.used.max(theirs.used);
            self.totals.returned = self.totals.returned.max(theirs.returned);
        } else {
            self.totals = theirs;
            if let Algorithm::SlidingLog(_) = self.limit.algorithm {
                self.past.get_or_insert_default().adopt(self.answered);
            }
        }
        self.totals.plain = theirs.plain + since;
        self.acked = theirs;
        (self.adopted, self.strange, self.doubts) = (true, false, false);
        self.missed = false;
        // Granted by answers that never came: nobody here has spent any of it.
        let lost = self.totals.held().saturating_sub(expected + taken.lent);
        match self.limit.algorithm {
            // A log takes units back out of the last loan, and these are of an older one: they wait until they are forgotten.
            Algorithm::SlidingLog(_) => self.totals.used += lost,
            _ => self.totals.returned += lost,
        }
        if taken.lent > 0 {
            self.last_lent = taken.lent;
        }
    }

    fn see(&mut self, taken: &Taken, sight: Sight) {
        let elsewhere = taken.outstanding.saturating_sub(self.totals.held());
        self.seen = Some(Seen { state: taken.state.clone(), elsewhere, sight });
        let (_, end) = self.limit.window_at(taken.now);
        self.lapse = match self.limit.algorithm {
            Algorithm::FixedWindow(_) => sight.before(end),
            Algorithm::SlidingWindow(width) => {
                sight.before(Millis(taken.win.saturating_add(width.millis())).max(taken.now))
            }
            Algorithm::TokenBucket { .. } => sight.before(taken.now + BUCKET_LEASE_MS),
            Algorithm::SlidingLog(width) => {
                let lapse = sight.before(taken.now + width.millis() / 50);
                // Units of an earlier loan were entered under its moment: no later answer makes them last longer.
                if self.totals.held() > taken.lent { self.lapse.min(lapse) } else { lapse }
            }
        };
        self.plan_ahead();
        if let Some(ahead) = &mut self.ahead {
            ahead.set(sight);
        }
    }

    /// Gives dated units their moments.
    fn date(&mut self, taken: &Taken, sight: Sight) {
        if taken.later == 0 {
            return;
        }
        let previous = match &taken.state {
            State::Sliding(state) => state.previous,
            _ => 0,
        };
        let groups = taken.later.min(DATES_MAX);
        let mut dealt = 0;
        let mut fresh = VecDeque::with_capacity(usize::try_from(groups).unwrap_or(0));
        for group in 1..=groups {
            let upto = taken.later * group / groups;
            let ms = dated_at(&self.limit, previous, taken.debt, upto);
            fresh.push_back((sight.after(ms), upto - dealt));
            dealt = upto;
        }
        self.dated.append(&mut fresh);
        self.dated.make_contiguous().sort_unstable_by_key(|(at, _)| *at);
    }

    /// The need was taken: it belongs to the waiter it was asked for, or to nobody.
    fn serve_first(&mut self, flight: &Flight, at: Millis, now: Millis, out: &mut Dealing<W>) {
        let Flight { take, waiter, .. } = flight;
        let Some(place) = self.waiters.iter().position(|one| Some(one.id) == *waiter) else {
            return;
        };
        let Some(Waiter { ask, tell, .. }) = self.waiters.remove(place) else { return };
        let stage = if take.bundled {
            self.aside += take.need;
            Stage::Aside { lease: self.lease }
        } else {
            Stage::Taken
        };
        self.note_spending(take.need, now);
        let units = Units { key: self.key, units: take.need, stage };
        // The origin decided, and when it did is the moment of the decision.
        out.push((tell, self.admitted(&ask, Some(units), at)));
    }

    /// What was spent for those behind the first is theirs, in order: those that were there when the call left. Some may have
    /// gone since: what was meant for them is lost.
    fn serve_more(&mut self, taken: &Taken, flight: &Flight, now: Millis, out: &mut Dealing<W>) {
        let Take { need, limit, .. } = flight.take;
        let mut left = taken.more;
        let mut place = 0;
        while let Some(waiter) = self.waiters.get(place).filter(|_| left >= need) {
            if !waiter.asks_for(need, &limit) || waiter.id > flight.last {
                place += 1;
                continue;
            }
            left -= need;
            let Some(Waiter { ask, tell, .. }) = self.waiters.remove(place) else { return };
            self.note_spending(need, now);
            let units = Units { key: self.key, units: need, stage: Stage::Taken };
            out.push((tell, self.admitted(&ask, Some(units), taken.now)));
        }
    }

    /// When to ask again, where the answer was no.
    fn remember(&mut self, taken: &Taken, take: &Take, now: Millis) {
        if taken.took || taken.lent > 0 {
            self.refusals = 0;
            self.again_at = Millis(0);
            return;
        }
        if take.need == 0 && take.ask == 0 {
            return;
        }
        let elsewhere = self.seen.as_ref().is_some_and(|seen| seen.elsewhere > 0);
        let wait = if elsewhere {
            (AGAIN_MS << self.refusals.min(8)).min(AGAIN_MS_MAX)
        } else {
            AGAIN_MS_MAX
        };
        self.refusals = self.refusals.saturating_add(1);
        self.again_at = now + wait;
    }

    /// Deals to those who wait, in order: units, or a refusal. It ends at the first that must ask for itself.
    /// `refused`: what the origin has just refused one of them.
    fn deal(&mut self, recall: bool, refused: Option<u64>, now: Millis, out: &mut Dealing<W>) {
        self.pass_time(now);
        while let Some(front) = self.waiters.front() {
            let (ask, rounds) = (front.ask, front.rounds);
            let cost = ask.cost.get();
            let dealt = if cost == 0 {
                Some(self.admitted(&ask, None, self.origin_time(now)))
            } else if self.covers(&ask.limit) && cost <= self.ready() {
                Some(self.spend(&ask, now))
            } else {
                self.refused(&ask, rounds, refused, now)
            };
            let Some(dealt) = dealt else { return };
            let Some(waiter) = self.waiters.pop_front() else { return };
            let in_vain = dealt.units.is_none() && cost > 0;
            match self.wait_of(&waiter, recall, now).filter(|_| in_vain) {
                Some(ms) => self.park(waiter, ms),
                None => out.push((waiter.tell, dealt)),
            }
        }
    }

    /// Deals what is in hand to those it is enough for, in order.
    fn deal_ready(&mut self, now: Millis, out: &mut Dealing<W>) {
        self.pass_time(now);
        while let Some(front) = self.waiters.front() {
            let (ask, cost) = (front.ask, front.ask.cost.get());
            if cost == 0 || !self.covers(&ask.limit) || cost > self.ready() {
                return;
            }
            let dealt = self.spend(&ask, now);
            if let Some(waiter) = self.waiters.pop_front() {
                out.push((waiter.tell, dealt));
            }
        }
    }

    /// Nothing was learnt but the time: who has asked twice by now is refused.
    fn drop_late(&mut self, now: Millis, out: &mut Dealing<W>) {
        while self.waiters.front().is_some_and(|front| front.rounds >= ROUNDS_MAX) {
            if let Some(waiter) = self.waiters.pop_front() {
                let dealt = self.unheard(&waiter.ask, now);
                out.push((waiter.tell, dealt));
            }
        }
    }

    /// A refusal, where the origin has said so, or where there is no time for another round.
    fn refused(
        &self,
        ask: &super::LeaseAsk,
        rounds: u32,
        refused: Option<u64>,
        now: Millis,
    ) -> Option<Dealt> {
        let at = self.origin_time(now);
        let mut outcome = self.standing(&ask.limit, ask.cost, at);
        if let Some(free_at) = self.free_at(ask.cost.get()) {
            outcome.admission = Admission::NotUntil(at + free_at.since(now));
            return Some(refusal(outcome, at));
        }
        let seen = self.seen.as_ref()?;
        let free = seen.state.probe(&ask.limit, ask.cost, at).admitted();
        // Of a log the copy knows whole milliseconds, and may take for free what is not: who asks for as much was refused it too.
        let is_log = matches!(ask.limit.algorithm, Algorithm::SlidingLog(_));
        let free = free && !(is_log && refused.is_some_and(|need| need <= ask.cost.get()));
        // Nobody else of the line asks for what others hold, once one has.
        let asks = refused.is_none() && now >= self.again_at && self.can_be_called_in(ask, now);
        if rounds == 0 && (free || asks) {
            return None;
        }
        Some(self.refuse(ask, now))
    }

    /// The origin refused it a moment ago; what has become free since is for whoever asks next.
    pub(super) fn refuse(&self, ask: &super::LeaseAsk, now: Millis) -> Dealt {
        let at = self.origin_time(now);
        let mut outcome = self.standing(&ask.limit, ask.cost, at);
        if outcome.admitted() {
            outcome.admission = Admission::NotUntil(at + 1);
        }
        refusal(outcome, at)
    }

    /// There was no answer. Everybody who waits is refused: the call may have been heard.
    pub(super) fn miss(&mut self, now: Millis, out: &mut Dealing<W>) {
        match self.flight.take() {
            Some(flight) if flight.ahead => self.miss_ahead(now),
            flight => self.missed |= flight.is_some(),
        }
        while let Some(waiter) = self.waiters.pop_front() {
            let dealt = self.unheard(&waiter.ask, now);
            out.push((waiter.tell, dealt));
        }
    }
}
