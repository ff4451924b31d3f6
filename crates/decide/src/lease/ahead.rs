//! The lease of the next window: a fixed window's busy cell asks for it before the edge, at a moment of its own, so that the
//! cells whose windows end together neither call together nor wait together. It is a lease of that window's own record.
//! Nothing of it is spent for that window alone before the window has surely begun: late is safe, early never.

use tollkeeper_core::{AHEAD_MS, Algorithm, Limit, Millis, Stand, Take, Taken, Totals};

use super::absorb::Dealing;
use super::cell::{Flight, LeaseCell, Sender};
use super::seen::Seen;
use super::sight::Sight;
use super::{Dealt, LeaseAsk, Link, Stage, Units};

/// What a cell spends in a window, this one or the last, before it asks for the next one: who comes once or twice costs what
/// it always did.
const SPENT_MIN: u64 = 4;

/// In narrower windows an answer is hardly there before the edge is.
const WIDTH_MS_MIN: u64 = 200;

/// In wide windows the first ask leaves so long before the edge: a quarter of a minute later than it is heard, as this node's
/// reckoning of the origin's clock may be hours old.
const LEAD_MS_MAX: u64 = AHEAD_MS / 4 * 3;

/// The last ask leaves so long before the edge, or a twentieth of the window: time enough to be answered.
const MARGIN_MS: u64 = 1_000;

/// Leases that a cell has in one window, at most: so far ahead is the number of the next one's first.
const LEASES_MAX: u64 = 1 << 32;

/// After a call that was not answered.
const AGAIN_MS: u64 = 100;

#[derive(Clone, Debug)]
pub(super) struct Ahead {
    pub(super) win: u64,
    /// The terms under which it was granted.
    pub(super) limit: Limit,
    pub(super) totals: Totals,
    pub(super) acked: Totals,
    /// An answer was heard. Until then there may be a loan that nobody here knows of.
    pub(super) adopted: bool,
    pub(super) lent: u64,
    /// Its number among the cell's leases, and what is set aside in it around the edge.
    pub(super) lease: u64,
    pub(super) aside: u64,
    /// What is written of it in the journal: how much was granted, and up to where it may be spent.
    pub(super) noted: u64,
    pub(super) ceiling: u64,
    /// From here on the window has surely begun…
    pub(super) opens: Millis,
    /// …and from here on it may be over.
    pub(super) lapse: Millis,
    pub(super) seen: Option<Seen>,
    /// The origin lost its history, and was not yet heard to know this.
    pub(super) owes: bool,
}

// === impl Ahead ===

impl Ahead {
    pub(super) fn new(win: u64, limit: Limit, lease: u64, sight: Sight) -> Self {
        let mut ahead = Self {
            win,
            limit,
            totals: Totals::default(),
            acked: Totals::default(),
            adopted: false,
            lent: 0,
            lease,
            aside: 0,
            noted: 0,
            ceiling: 0,
            opens: Millis(u64::MAX),
            lapse: Millis(0),
            seen: None,
            owes: false,
        };
        ahead.set(sight);
        ahead
    }

    /// Its moments follow the newest reading of the origin's clock.
    pub(super) fn set(&mut self, sight: Sight) {
        self.opens = sight.after(Millis(self.win).since(sight.origin));
        self.lapse = sight.before(self.limit.window_at(Millis(self.win)).1);
    }

    /// What may be spent of it, once it may.
    pub(super) fn ready(&self) -> u64 {
        self.totals.held().saturating_sub(self.aside)
    }

    /// Is there something of it that the origin must be told, and is it near enough for the origin to hear of it?
    pub(super) fn is_untold(&self, at: Millis) -> bool {
        let (start, end) = self.limit.window_at(Millis(self.win));
        let near = start.since(at) <= AHEAD_MS.min(end.since(start));
        self.adopted && near && (self.owes || self.totals.returned > self.acked.returned)
    }

    /// Was any of it spent?
    fn is_spent(&self) -> bool {
        self.totals.plain > 0 || self.totals.used > 0
    }

    /// Takes in an answer that came before the window did.
    fn adopt(&mut self, taken: &Taken, sight: Sight) {
        let expected = self.totals.held();
        self.totals = self.totals.merged(taken.totals);
        // Granted by answers that never came: it goes back.
        self.totals.returned += self.totals.held().saturating_sub(expected + taken.lent);
        (self.acked, self.adopted) = (taken.totals, true);
        self.lent = self.lent.max(taken.lent);
        let elsewhere = taken.outstanding.saturating_sub(self.totals.held());
        let seen = Seen { state: taken.state.clone(), elsewhere, sight };
        let known = self.seen.take_if(|_| taken.stand == Stand::Learning);
        self.seen = Some(seen.learnt(known, &self.limit));
        self.set(sight);
    }
}

// === impl LeaseCell ===

impl<W> LeaseCell<W> {
    /// Plans this window's ask for the next one. Its moment is the cell's own, and another one in every window: anywhere in
    /// it but its first tenth, or in its last 45 s. All asks of one edge in a tenth of the window would be a spike before it.
    pub(super) fn plan_ahead(&mut self) {
        let Algorithm::FixedWindow(window) = self.limit.algorithm else { return };
        let (start, end) = window.bounds(Millis(self.win));
        let width = end.since(start);
        let lead = (width - width / 10).min(LEAD_MS_MAX);
        let margin = (width / 20).min(MARGIN_MS);
        let offset = margin + self.part(lead - margin);
        let wide = width >= WIDTH_MS_MIN;
        self.ahead_from = if wide { Millis(self.lapse.since(Millis(offset))) } else { NEVER };
    }

    /// Is it time to ask for the next window's lease, and is the cell busy enough to want one?
    pub(super) fn wants_ahead(&self, now: Millis) -> bool {
        self.ahead_from <= now
            && now < self.lapse
            && self.flight.is_none()
            && self.waiters.is_empty()
            && self.adopted
            && self.pace.is_at_least(SPENT_MIN)
            && self.ahead.as_ref().is_none_or(|ahead| !ahead.adopted)
    }

    /// Asks for as much as the node uses in a window and a quarter more, so that an even load hardly needs a second call.
    pub(super) fn depart_ahead(&mut self, sender: &Sender) -> Take {
        let next = self.limit.window_at(Millis(self.win)).1.0;
        let (limit, sight) = (self.limit, self.sight());
        let lease = self.lease + LEASES_MAX;
        let known = self.ahead.take().filter(|ahead| ahead.win == next);
        let ahead = known.unwrap_or_else(|| Box::new(Ahead::new(next, limit, lease, sight)));
        self.ahead_from = NEVER;
        let most = self.pace.most();
        let ask = most.saturating_add(most / 4);
        let (totals, limit) = (ahead.totals, ahead.limit);
        let take = Take { win: next, totals, ask, limit, ..self.said(sender) };
        self.flight =
            Some(Box::new(Flight { take, waiter: None, last: 0, pays: ahead.owes, ahead: true }));
        self.ahead = Some(ahead);
        take
    }

    /// Tells what is known of the next window's lease, and asks for nothing.
    pub(super) fn report_ahead(&mut self, sender: &Sender) -> Option<Take> {
        let ahead = self.ahead.as_ref()?;
        let (win, totals, limit) = (ahead.win, ahead.totals, ahead.limit);
        let take = Take { win, totals, limit, ..self.said(sender) };
        self.flight =
            Some(Box::new(Flight { take, waiter: None, last: 0, pays: ahead.owes, ahead: true }));
        Some(take)
    }

    /// Takes in an answer about the next window. False where it is none: that window has begun by the origin's clock, and
    /// the answer is like any other.
    pub(super) fn absorb_ahead(
        &mut self,
        flight: &Flight,
        taken: &Taken,
        sight: Sight,
        out: &mut Dealing<W>,
    ) -> bool {
        if taken.stand == Stand::WrongWindow {
            // By the origin's clock it is too early for it, so it was never lent or is of no use for long: dropping it unspent
            // is always safe, and who gets to that window finds in its first answer what there is to give back.
            let early = taken.win <= self.win;
            if early {
                self.ahead.take_if(|ahead| !ahead.is_spent());
                self.follow_clock(sight);
                self.plan_ahead();
            }
            return early;
        }
        if !self.is_before(taken) {
            return false;
        }
        // A cell that has turned to that window already knows better than a clock that stepped back; what was lent is found
        // in the next answer, and goes back.
        if let Some(ahead) = self.ahead.as_mut().filter(|ahead| ahead.win == taken.win) {
            ahead.adopt(taken, sight);
            ahead.owes &= !flight.pays;
            self.follow_clock(sight);
        }
        if taken.stand == Stand::Learning {
            while let Some(waiter) = self.waiters.pop_front() {
                let nodes = flight.take.nodes;
                let dealt = self.without_origin(&waiter.ask, Link::Learning, nodes, sight.heard);
                out.push((waiter.tell, dealt));
            }
        }
        true
    }

    /// Is the answer about a fixed window that is yet to begin?
    pub(super) fn is_before(&self, taken: &Taken) -> bool {
        let fixed = matches!(self.limit.algorithm, Algorithm::FixedWindow(_));
        fixed && taken.stand != Stand::WrongWindow && taken.now.0 < taken.win
    }

    /// A newer reading of the origin's clock, for the window in hand.
    fn follow_clock(&mut self, sight: Sight) {
        let (start, end) = self.limit.window_at(sight.origin);
        if start.0 == self.win {
            self.lapse = sight.before(end);
        }
        if let Some(seen) = &mut self.seen {
            seen.sight = sight;
        }
    }

    /// Turns to the next window once it has surely begun.
    pub(super) fn open_ahead(&mut self, now: Millis) {
        let due = self.ahead.as_ref().filter(|ahead| now >= ahead.opens);
        if let Some(win) = due.map(|ahead| ahead.win) {
            // Who is alone meanwhile goes on with the share that it has: it may have spent of it in that window already.
            let share = self.share.take();
            self.open_window(win, now);
            self.share = share;
        }
    }

    /// The window that it was lent for is the one in hand now.
    pub(super) fn install(&mut self, ahead: Ahead, now: Millis) {
        self.limit = ahead.limit;
        (self.totals, self.acked) = (ahead.totals, ahead.acked);
        (self.adopted, self.doubts) = (ahead.adopted, !ahead.adopted);
        (self.last_lent, self.ceiling) = (ahead.lent, ahead.ceiling);
        (self.lease, self.aside) = (ahead.lease, ahead.aside);
        self.owes |= ahead.owes;
        self.lapse = ahead.lapse;
        if let Some(seen) = ahead.seen {
            self.seen = Some(seen);
            (self.again_at, self.refusals) = (Millis(0), 0);
        }
        self.plan_ahead();
        let grace = (ahead.lapse.since(now) / 10).min(AHEAD_MS);
        self.unused_by = now + grace + self.part(grace);
    }

    /// The origin's clock stepped back to before the window in hand. That window comes once more, and an origin that lost its
    /// records with its clock would lend all of it again: what was spent of it is kept, and told before it begins. Not where
    /// that is long after: a cell that knows of a window to come is not forgotten.
    pub(super) fn keep_for_later(&mut self, sight: Sight) {
        let fixed = matches!(self.limit.algorithm, Algorithm::FixedWindow(_));
        let soon = Millis(self.win).since(sight.origin) <= AHEAD_MS;
        let known = self.ahead.as_ref().is_some_and(|ahead| ahead.is_spent());
        if !fixed || !soon || !self.adopted || known {
            return;
        }
        self.totals.used += self.aside;
        self.totals.returned += self.totals.held();
        let mut ahead = Ahead::new(self.win, self.limit, self.lease + LEASES_MAX, sight);
        (ahead.totals, ahead.acked, ahead.adopted) = (self.totals, self.acked, true);
        (ahead.noted, ahead.ceiling) = (self.totals.granted, self.ceiling.max(self.totals.used));
        (ahead.seen, ahead.owes) = (self.seen.clone(), true);
        self.ahead = ahead.is_spent().then(|| Box::new(ahead));
    }

    /// Is the lease that waits that of the very next window?
    pub(super) fn next_is_leased(&self) -> bool {
        let next = self.limit.window_at(Millis(self.win)).1.0;
        self.ahead.as_ref().is_some_and(|ahead| ahead.win == next)
    }

    /// A lease that was asked for ahead and is of no use goes back: who has had no request in the first part of the window
    /// is not as busy as it was.
    pub(super) fn drops_unused(&mut self, now: Millis) -> bool {
        if now < self.unused_by {
            return false;
        }
        self.unused_by = NEVER;
        let unused = self.totals.used == 0 && self.aside == 0 && self.totals.held() > 0;
        if unused {
            self.hand_back();
        }
        unused
    }

    /// Around the edge it is not known for some milliseconds which of two windows it is. Who holds units of both pays in
    /// both: whichever it is, the request is counted in it.
    pub(super) fn pay_in_both(&mut self, ask: &LeaseAsk, now: Millis) -> Option<Dealt> {
        let cost = ask.cost.get();
        let both = self.covers(&ask.limit) && cost <= self.between && self.next_is_leased();
        let ahead = self.ahead.as_mut().filter(|_| both && cost > 0)?;
        let covers = ahead.limit.quota <= ask.limit.quota;
        if !covers || cost > ahead.ready() || !self.waiters.is_empty() {
            return None;
        }
        // What is set aside and not spent is free again in the next window only: this one is over by then.
        let stage = if ask.bundled {
            ahead.aside += cost;
            Stage::Aside { lease: ahead.lease }
        } else {
            ahead.totals.used += cost;
            Stage::Spent
        };
        self.between -= cost;
        self.totals.used += cost;
        self.note_spending(cost, now);
        let units = Units { key: self.key, units: cost, stage };
        Some(self.admitted(ask, Some(units), self.origin_time(now)))
    }

    /// A call that was not answered may have been heard. There is time for another one, or for a look after the edge.
    pub(super) fn miss_ahead(&mut self, now: Millis) {
        self.ahead_from = now + AGAIN_MS;
    }

    /// Where the next window's lease waits for it, the cell turns to it when it has surely begun, and no sooner.
    pub(super) fn awaits(&self, win: u64, now: Millis) -> bool {
        self.ahead.as_ref().is_some_and(|ahead| ahead.win == win && now < ahead.opens)
    }

    /// The cell's own part of a time in this window, spread evenly over all cells.
    #[allow(clippy::cast_possible_truncation, reason = "less than the whole")]
    fn part(&self, of: u64) -> u64 {
        let mixed = mix(self.key.exact ^ mix(self.key.subject ^ mix(self.win)));
        ((u128::from(mixed) * u128::from(of)) >> 64) as u64
    }
}

/// No moment at all.
pub(super) const NEVER: Millis = Millis(u64::MAX);

/// The last steps of `SplitMix64`: every bit of the number decides about every bit of the result.
fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
