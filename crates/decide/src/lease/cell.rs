//! One shared cell on one node: what it was lent, what it spent of that, what it last heard, and who waits.
//! Every function is called under the lock of the cell's shard.

use std::collections::VecDeque;
use std::sync::Arc;

use tollkeeper_core::{Algorithm, Boot, Limit, Millis, State, Take, Totals};

use super::ahead::{Ahead, NEVER};
use super::pace::Pace;
use super::parked::Parked;
use super::past::Past;
use super::seen::Seen;
use super::sight::Sight;
use super::waiter::Waiter;
use super::{CellName, Dealt, LeaseAsk, Link, Stage, Units};
use crate::CellKey;

/// Who may wait on one cell. Beyond it an ask is refused: the origin has not answered for too long already.
pub(super) const WAITERS_MAX: usize = 4096;

/// A cost is large from this part of a limit on. A log lends a fiftieth at a time: what is more never comes from a lease.
const LARGE_PARTS: u64 = 16;
const LARGE_PARTS_OF_LOG: u64 = 50;

/// What comes back is for who lacks it, as long as that one waits: about the patience of a request.
const YIELDS_MS: u32 = 10;

#[allow(clippy::struct_excessive_bools, reason = "each is a debt of its own, not one state")]
#[derive(Debug)]
pub(super) struct LeaseCell<W> {
    pub(super) key: CellKey,
    pub(super) name: Arc<CellName>,
    /// The terms under which the lease in hand was granted.
    pub(super) limit: Limit,
    pub(super) win: u64,
    pub(super) totals: Totals,
    /// Of these the origin is known to have heard.
    pub(super) acked: Totals,
    /// An answer was heard in this window: until then the origin may know more of us than we do.
    pub(super) adopted: bool,
    /// No answer was ever heard: this cell may have been forgotten before, and what its boot did then is only known to
    /// the origin. Totals that do not contain it would be merged with it, and be lost.
    pub(super) strange: bool,
    /// Of what is held, so many units wait for a decision.
    pub(super) aside: u64,
    /// Admitted without a lease, and waiting for a decision too.
    pub(super) pledged: u64,
    /// The terms of this node's share while the origin is away, and the moment it was last asked for.
    pub(super) share_terms: Option<Box<(Limit, Millis)>>,
    /// Counts leases: what was set aside in one that is over has been counted as spent.
    pub(super) lease: u64,
    /// From here on nothing is spent from the lease.
    pub(super) lapse: Millis,
    /// Units of the lease that are not free yet, by the moment they are.
    pub(super) dated: VecDeque<(Millis, u64)>,
    pub(super) last_lent: u64,
    pub(super) seen: Option<Seen>,
    pub(super) pace: Pace,
    pub(super) again_at: Millis,
    pub(super) refusals: u32,
    pub(super) flight: Option<Box<Flight>>,
    pub(super) waiters: VecDeque<Waiter<W>>,
    /// Who was refused what is there in a moment.
    pub(super) parked: Option<Box<Parked<W>>>,
    /// What is written of this lease in the journal: units below it may be spent.
    pub(super) ceiling: u64,
    pub(super) answered: Millis,
    pub(super) spent_at: Millis,
    /// Of a log: what was spent, by time.
    pub(super) past: Option<Box<Past>>,
    /// The origin lost its history, and was not yet heard to know ours.
    pub(super) owes: bool,
    /// Where windows slide, what was done in the one before still counts: its start and our totals.
    pub(super) before: Option<Box<(u64, Totals)>>,
    /// That too was not yet told. It goes first.
    pub(super) owes_before: bool,
    /// The newest reading of the origin's clock when the cell was made.
    pub(super) born: Sight,
    /// The share of this node while the origin is away.
    pub(super) share: Option<Box<State>>,
    /// The lease of a fixed window's next window, and the moment to ask for it.
    pub(super) ahead: Option<Box<Ahead>>,
    pub(super) ahead_from: Millis,
    /// Of a lease that is over, and held until it is known that the next window has begun.
    pub(super) between: u64,
    /// The lease of this window was asked for ahead and never heard of: the origin may have lent it.
    pub(super) doubts: bool,
    /// Was it heard of, and is none of it used by then, it goes back.
    pub(super) unused_by: Millis,
    /// A call was not answered, and none since: it may have lent something.
    pub(super) missed: bool,
    /// The low half of the moment at which others lacked what is lent: a whole one would make the cell larger. It is for a moment, and
    /// not kept in sleep.
    pub(super) called_in: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) take: Take,
    /// Whose need it carries.
    pub(super) waiter: Option<u64>,
    /// Who waited last when it left.
    pub(super) last: u64,
    /// It left after history was lost: who answers it knows ours.
    pub(super) pays: bool,
    /// It is about the next window.
    pub(super) ahead: bool,
}

/// What a cell says at once.
#[derive(Debug)]
pub(super) enum First {
    Dealt(Dealt),
    Wait,
}

/// What makes a call complete, from the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    pub(super) boot: Boot,
    pub(super) seq: u64,
    pub(super) nodes: u64,
    pub(super) now: Millis,
    /// The newest reading of the origin's clock, for cells that have none.
    pub(super) sight: Sight,
}

// === impl Flight ===

impl Flight {
    /// It gave back what was held, and told all that was spent when it left, as every call does that somebody needs.
    pub(super) fn gives_back(&self) -> bool {
        self.waiter.is_some() && self.take.need > 0 && !self.ahead
    }
}

// === impl LeaseCell ===

impl<W> LeaseCell<W> {
    pub(super) fn new(key: CellKey, name: Arc<CellName>, limit: Limit, born: Sight) -> Self {
        Self {
            key,
            name,
            limit,
            win: 0,
            totals: Totals::default(),
            acked: Totals::default(),
            adopted: false,
            strange: true,
            aside: 0,
            pledged: 0,
            share_terms: None,
            lease: 0,
            lapse: Millis(0),
            dated: VecDeque::new(),
            last_lent: 0,
            seen: None,
            pace: Pace::default(),
            again_at: Millis(0),
            refusals: 0,
            flight: None,
            waiters: VecDeque::new(),
            parked: None,
            ceiling: 0,
            answered: Millis(0),
            spent_at: Millis(0),
            past: None,
            owes: false,
            before: None,
            owes_before: false,
            born,
            share: None,
            ahead: None,
            ahead_from: NEVER,
            between: 0,
            doubts: false,
            unused_by: NEVER,
            missed: false,
            called_in: 0,
        }
    }

    /// The first look at an ask.
    pub(super) fn look(&mut self, ask: &LeaseAsk, link: Link, nodes: u64, now: Millis) -> First {
        self.pass_time(now);
        if let Some(dealt) = self.impossible(ask, now) {
            return First::Dealt(dealt);
        }
        let cost = ask.cost.get();
        if cost > 0 && self.waiters.is_empty() && self.covers(&ask.limit) && cost <= self.ready() {
            return First::Dealt(self.spend(ask, now));
        }
        if let Some(dealt) = self.pay_in_both(ask, now) {
            return First::Dealt(dealt);
        }
        if link != Link::Up {
            return First::Dealt(self.without_origin(ask, link, nodes, now));
        }
        if let Some(dealt) = self.remembered(ask, now) {
            return First::Dealt(dealt);
        }
        if self.waiters.len() + self.parked_len() >= WAITERS_MAX {
            return First::Dealt(self.unheard(ask, now));
        }
        First::Wait
    }

    /// Ends what time ends: a lease at its lapse, the wait of dated units and of the next window.
    pub(super) fn pass_time(&mut self, now: Millis) {
        self.open_ahead(now);
        while self.dated.front().is_some_and(|(at, _)| *at <= now) {
            self.dated.pop_front();
        }
        if now >= self.lapse && self.totals.held() > self.between {
            self.end_lease();
        }
    }

    /// Nothing is spent from it any more. It is given back with the next call; a bucket's counts as
    /// spent, because the origin writes it off by itself.
    fn end_lease(&mut self) {
        self.totals.used += self.aside;
        (self.aside, self.lease) = (0, self.lease + 1);
        match self.limit.algorithm {
            Algorithm::TokenBucket { .. } => self.totals.used += self.totals.held(),
            _ if self.next_is_leased() => self.between = self.totals.held(),
            _ => self.totals.returned += self.totals.held(),
        }
        self.dated.clear();
    }

    /// Gives back all that is held, with the next call.
    pub(super) fn hand_back(&mut self) {
        self.totals.returned += self.totals.held().saturating_sub(self.aside);
        self.between = 0;
        self.dated.clear();
    }

    /// What was held between two windows goes back: whoever is told of this one may lend it again.
    pub(super) fn end_between(&mut self) {
        self.totals.returned += std::mem::take(&mut self.between);
    }

    /// What may be spent now.
    pub(super) fn ready(&self) -> u64 {
        let dated: u64 = self.dated.iter().map(|(_, units)| units).sum();
        self.totals.held().saturating_sub(self.aside + dated + self.between)
    }

    /// The decision on these was made: they are spent, or free again. What was set aside in a lease that is over by now
    /// was counted as spent when it ended.
    pub(super) fn close(&mut self, units: &Units, spent: bool) {
        let counted = if spent { units.units } else { 0 };
        if units.stage == Stage::Pledged {
            self.pledged = self.pledged.saturating_sub(units.units);
            self.totals.plain += counted;
            self.spend_share(counted);
        } else if self.keeps_lease(units) {
            self.aside = self.aside.saturating_sub(units.units);
            self.totals.used += counted;
        } else if let Some(ahead) = self.ahead.as_mut().filter(|ahead| units.is_of(ahead.lease)) {
            ahead.aside = ahead.aside.saturating_sub(units.units);
            ahead.totals.used += counted;
        }
    }

    /// Is the lease still the one that these were set aside in?
    pub(super) fn keeps_lease(&self, units: &Units) -> bool {
        units.is_of(self.lease)
    }

    /// And may it still be spent from?
    pub(super) fn keeps(&self, units: &Units, now: Millis) -> bool {
        let ahead = self.ahead.as_ref().filter(|ahead| units.is_of(ahead.lease));
        let lapse = ahead.map(|ahead| ahead.lapse);
        let lapse = lapse.or_else(|| self.keeps_lease(units).then_some(self.lapse));
        lapse.is_some_and(|lapse| now < lapse)
    }

    /// A lease of a larger limit is not for an ask with a smaller one.
    pub(super) fn covers(&self, limit: &Limit) -> bool {
        self.limit.quota <= limit.quota && self.limit.ceiling() <= limit.ceiling()
    }

    pub(super) fn spend(&mut self, ask: &LeaseAsk, now: Millis) -> Dealt {
        let units = ask.cost.get();
        self.note_spending(units, now);
        let stage = if ask.bundled {
            self.aside += units;
            Stage::Aside { lease: self.lease }
        } else {
            self.totals.used += units;
            Stage::Spent
        };
        let units = Units { key: self.key, units, stage };
        self.admitted(ask, Some(units), self.origin_time(now))
    }

    pub(super) fn note_spending(&mut self, units: u64, now: Millis) {
        let width = width_of(&self.limit, now);
        let win = if self.win > 0 { self.win } else { now.0 - now.0 % width };
        self.pace.turn_to(win, width);
        // Leases are for what they save calls for: a few large costs would have it borrow what nobody spends.
        if !self.is_large(units) {
            self.pace.spend(units);
        }
        if let Algorithm::SlidingLog(width) = self.limit.algorithm {
            let spent = self.totals.plain + self.totals.used;
            self.past.get_or_insert_default().note(spent, width, now);
        }
        self.spent_at = now;
    }

    /// What the totals count that a log has surely forgotten.
    pub(super) fn forgotten(&self, now: Millis) -> u64 {
        let (Algorithm::SlidingLog(width), Some(past)) = (self.limit.algorithm, &self.past) else {
            return 0;
        };
        past.forgotten(self.totals.plain + self.totals.used, width, now) + self.totals.returned
    }

    /// Is it so much of the limit that few of its kind pass in a window?
    pub(super) fn is_large(&self, cost: u64) -> bool {
        let parts = match self.limit.algorithm {
            Algorithm::SlidingLog(_) => LARGE_PARTS_OF_LOG,
            _ => LARGE_PARTS,
        };
        // Through a small bucket that fills fast much more passes than it holds.
        let most = self.limit.ceiling().max(self.limit.quota.get());
        cost > 1 && cost.saturating_mul(parts) >= most
    }

    /// A new window that has surely begun: totals begin again, or with what was lent ahead.
    pub(super) fn open_window(&mut self, win: u64, now: Millis) {
        let width = width_of(&self.limit, now);
        self.pace.turn_to(win, width);
        let slides = matches!(self.limit.algorithm, Algorithm::SlidingWindow(_));
        let next = slides && win == self.win + width && self.totals != Totals::default();
        if next {
            // An answer may turn the window before the lease has lapsed here.
            self.totals.used += self.aside;
            self.totals.returned += self.totals.held();
        }
        self.before = next.then(|| Box::new((self.win, self.totals)));
        // What was not told of the window that is over must be told still.
        let gives_back = self.totals.returned > self.acked.returned;
        self.owes_before = next && (self.owes || self.untold() > 0 || gives_back);
        self.win = win;
        (self.totals, self.acked) = (Totals::default(), Totals::default());
        self.dated.clear();
        (self.aside, self.lease) = (0, self.lease + 1);
        (self.adopted, self.ceiling, self.last_lent) = (false, 0, 0);
        self.share = None;
        (self.between, self.doubts, self.missed) = (0, false, false);
        (self.ahead_from, self.unused_by) = (NEVER, NEVER);
        if let Some(ahead) = self.ahead.take_if(|ahead| ahead.win <= win)
            && ahead.win == win
        {
            self.install(*ahead, now);
        }
    }

    /// Others lacked what it held a moment ago: what comes back is for them.
    pub(super) fn yields(&self, now: Millis) -> bool {
        low_half(now).wrapping_sub(self.called_in) < YIELDS_MS
    }

    /// Where units flow back they are lent as soon as they do. What is asked for of a log or a fixed window stays as it was.
    pub(super) fn note_call_in(&mut self, now: Millis) {
        if let Algorithm::SlidingWindow(_) | Algorithm::TokenBucket { .. } = self.limit.algorithm {
            self.called_in = low_half(now);
        }
    }

    /// Gives the memory of queues back that are empty: of a million cells hardly one has somebody waiting.
    pub(super) fn rest(&mut self) {
        if self.waiters.is_empty() {
            self.waiters = VecDeque::new();
        }
        if self.dated.is_empty() {
            self.dated = VecDeque::new();
        }
    }

    /// May it be forgotten? Only when the origin knows all of it that still counts.
    pub(super) fn is_idle(&self, now: Millis) -> bool {
        let told = self.acked == self.totals || !self.counts_at(now);
        let waits = !self.waiters.is_empty() || self.parked.is_some();
        let asked = self.flight.is_some() || waits;
        let used = asked || self.pledged > 0 || self.totals.held() > 0 || self.ahead.is_some();
        let told = told && !(self.doubts && self.counts_at(now));
        !used && !self.owes && !self.owes_before && told
    }

    /// Would it be missed, if the origin lost its history now? Nobody else knows what this node spent.
    pub(super) fn is_history(&self, now: Millis) -> bool {
        let passed = now.since(self.spent_at);
        match self.limit.algorithm {
            Algorithm::FixedWindow(_) | Algorithm::SlidingWindow(_) => {
                let spent = self.totals != Totals::default() || self.before.is_some();
                spent && self.counts_at(now)
            }
            Algorithm::SlidingLog(width) => passed <= width.millis(),
            Algorithm::TokenBucket { width, capacity } => {
                let full = u128::from(width.millis()) * u128::from(capacity.get());
                u128::from(passed) * u128::from(self.limit.quota.get()) <= full
            }
        }
    }

    /// Could what it did still matter to anybody?
    fn counts_at(&self, now: Millis) -> bool {
        let at = self.sight().at(now);
        let (start, _) = self.limit.window_at(at);
        match self.limit.algorithm {
            Algorithm::FixedWindow(_) => start.0 <= self.win,
            Algorithm::SlidingWindow(width) => start.0 <= self.win + width.millis(),
            _ => true,
        }
    }
}

/// Comes round in 49 days: a cell that was called in then borrows a moment later once.
#[allow(clippy::cast_possible_truncation, reason = "the low half is what is wanted")]
fn low_half(now: Millis) -> u32 {
    now.0 as u32
}

/// The width of a limit's window, in milliseconds.
pub(super) fn width_of(limit: &Limit, now: Millis) -> u64 {
    match limit.algorithm {
        Algorithm::FixedWindow(window) => {
            let (start, end) = window.bounds(now);
            end.since(start).max(1)
        }
        Algorithm::SlidingWindow(width)
        | Algorithm::SlidingLog(width)
        | Algorithm::TokenBucket { width, .. } => width.millis(),
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn a_cell_takes_less_than_half_a_kibibyte() {
        // Whatever is above 448 bytes takes 512 of the allocator.
        assert!(size_of::<LeaseCell<()>>() <= 472);
    }
}
