//! The record of one cell: what was granted to whom. The twin of `take.lua`, line by line where it matters.

use std::collections::BTreeMap;

use super::grant::{Grant, Room, soon};
use super::log_book::LogBook;
use super::{AHEAD_MS, Boot, Stand, Take, Taken, Totals};
use crate::limit::Limit;
use crate::{
    Algorithm, Cost, FixedWindow, Micros, Millis, SlidingWindow, State, TokenBucket, Width,
};

/// A node drops a bucket's lease 10 s after its last answered call; what it held then is written off as
/// spent a little later, so that the units of the dead flow back.
pub(super) const SILENT_MS: u64 = 10_060;

/// Not more often: those who hold need time to answer.
const RECALL_MS: u64 = 50;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    win: u64,
    counted: u64,
    previous: u64,
    outstanding: u64,
    bucket: TokenBucket,
    /// The rate at which the bucket was last filled.
    tokens: u64,
    log: LogBook,
    boots: BTreeMap<Boot, Entry>,
    recalled_at: u64,
    /// When it is forgotten, if nobody calls.
    expires: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry {
    win: u64,
    seq: u64,
    /// What the call of that number got: a repetition is told the same.
    got: Got,
    totals: Totals,
    /// The same of the window before, where that still counts.
    before: Totals,
    /// Last heard of, and of a window not before its start; for a log, the microsecond that its last loan was entered under.
    at: u64,
    /// Of a log's last loan, what still stands under that moment.
    open: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Got {
    took: bool,
    lent: u64,
    later: u64,
    debt: u64,
    more: u64,
}

// === impl Record ===

impl Record {
    /// One call. Whether it is `learning` says the epoch, which is kept beside the records.
    pub fn take(
        kept: &mut Option<Self>,
        call: &Take,
        learning: bool,
        at: impl Into<Micros>,
    ) -> Taken {
        let at = at.into();
        let now = at.millis();
        kept.take_if(|record| record.expires <= now.0);
        let limit = &call.limit;
        if !call.is_timely(now) {
            return Taken::elsewhere(call, now);
        }
        let made = kept.is_none();
        let record = kept.get_or_insert_default();
        let rate_before = record.tokens;
        record.roll(call, at);
        let merged = record.merge(call, learning, made, at);
        let entry = record.boots.entry(call.boot).or_insert(merged);
        let new = call.seq > entry.seq;
        if new {
            (entry.seq, entry.got) = (call.seq, Got::default());
        }
        let room = record.room(limit, now);
        let wanted = call.need > 0 || call.ask > 0;
        let grant = if new && wanted && !learning {
            room.grant(call.need, call.more, call.ask, call.nodes)
        } else {
            Grant::default()
        };
        record.charge(call, grant, room.debt, if made { Micros::last_of(now) } else { at });
        let entry = record.boots.get(&call.boot).copied().unwrap_or_default();
        let got = if call.seq == entry.seq { entry.got } else { Got::default() };
        let short = new && call.need > 0 && !grant.took && grant.later < call.need && !learning;
        let elsewhere = record.lent(limit, at).saturating_sub(entry.totals.held());
        let recall = short && elsewhere > 0 && record.recalls(limit, now);
        record.fold(call);
        record.expires = now.0 + record.lifetime(limit, rate_before, now);
        let taken = Taken {
            now,
            stand: if learning { Stand::Learning } else { Stand::Heard },
            win: record.win,
            totals: entry.totals,
            took: got.took,
            lent: got.lent,
            later: got.later,
            debt: got.debt,
            more: got.more,
            state: record.state(limit, now),
            outstanding: record.lent(limit, at),
            made,
            recall,
        };
        if made && entry.totals == Totals::default() && record.previous == 0 {
            // Who only looks, or is refused, leaves no trace.
            *kept = None;
        }
        taken
    }

    /// Sets what is granted to what is still held: what was spent is forgiven, what is lent is not.
    pub fn reset(&mut self) {
        self.counted = self.outstanding;
        self.previous = 0;
        self.bucket.missing = self.outstanding;
        self.bucket.fraction = 0;
        self.log.reset(self.outstanding);
    }

    fn roll(&mut self, call: &Take, at: Micros) {
        let now = at.millis();
        match call.limit.algorithm {
            Algorithm::FixedWindow(_) => self.win = call.win,
            Algorithm::SlidingWindow(width) => {
                let start = width.start_of(now).0;
                self.come_back(start, width);
                // A caller may know a later window than a clock that stepped back; none may invent one.
                let known = if call.win <= start + width.millis() { call.win } else { 0 };
                self.roll_to(start.max(known), width);
            }
            Algorithm::TokenBucket { width, capacity } => {
                self.write_off(now);
                if self.bucket.at > now + width.millis().min(AHEAD_MS) {
                    // The clock was far ahead and came back: it fills from now on and not once that has caught up.
                    self.bucket.at = now;
                }
                let mut refill = Limit::refill(call.limit.quota, width, capacity);
                // Who lowers the rate and raises it again gains nothing for the time between.
                refill.tokens = refill.tokens.min(self.tokens);
                self.tokens = call.limit.quota.get();
                self.bucket = self.bucket.refilled(refill, now);
                if self.bucket.missing < self.outstanding {
                    // What is lent is not in the bucket: it never holds more than the rest.
                    (self.bucket.missing, self.bucket.fraction) = (self.outstanding, 0);
                }
            }
            Algorithm::SlidingLog(width) => {
                self.log.forget(width, at);
            }
        }
    }

    /// The clock was far ahead and came back: what was counted there counts here, and all that was lent as spent. What boots
    /// say of there is nothing of here, nor of there once it comes again. One window ahead a caller may know of.
    fn come_back(&mut self, start: u64, width: Width) {
        if self.win > start + width.millis() {
            (self.win, self.previous, self.outstanding, self.recalled_at) = (start, 0, 0, 0);
            self.boots.clear();
        }
    }

    fn roll_to(&mut self, start: u64, width: Width) {
        if start <= self.win {
            return;
        }
        let next = start == self.win + width.millis();
        self.previous = if next { self.counted } else { 0 };
        (self.win, self.counted, self.outstanding) = (start, 0, 0);
    }

    /// Takes in what the caller says of itself; returns its entry.
    fn merge(&mut self, call: &Take, learning: bool, made: bool, at: Micros) -> Entry {
        let now = at.millis();
        let known = self.known(call);
        let heard_at = match call.limit.algorithm {
            Algorithm::SlidingLog(_) => known.at,
            Algorithm::TokenBucket { .. } => now.0,
            // No more than the window is kept of what makes a record, until somebody asks again.
            _ if made => self.win,
            _ => now.0.max(self.win),
        };
        let mut entry = Entry { at: heard_at, ..known };
        // Totals of a window that is yet to come are nobody's: they must not replace those of this one.
        if call.win == self.win {
            let (before, after) = (known.totals, known.totals.merged(call.totals));
            let missing = self.bucket.missing;
            self.count(call, before, after, at);
            self.settle(call, &mut entry, after, at);
            self.cap_missing(&call.limit, missing, learning, now);
            entry.totals = after.balanced(&call.limit);
        } else if self.is_previous(call) {
            let (before, after) = (known.before, known.before.merged(call.totals));
            self.previous = (self.previous + after.counted()).saturating_sub(before.counted());
            entry.before = after;
        }
        self.boots.insert(call.boot, entry);
        entry
    }

    /// What is known of the caller, as of the record's window. What it did in the one before is kept: an origin that lost
    /// its history may hear of that one last, and one that did not must not count it twice.
    fn known(&self, call: &Take) -> Entry {
        let known = self.boots.get(&call.boot).copied().unwrap_or_default();
        if known.win == self.win {
            return known;
        }
        let next = match call.limit.algorithm {
            Algorithm::SlidingWindow(width) => known.win + width.millis() == self.win,
            _ => false,
        };
        let before = if next { known.totals } else { Totals::default() };
        // What a call got in another window is void in this one, also for a repetition of it.
        Entry { win: self.win, got: Got::default(), totals: Totals::default(), before, ..known }
    }

    /// After assertions a bucket is never emptier than empty, what is lent ahead of its time, and one capacity: whatever
    /// was admitted without it, it is of use again in the time that it takes to fill. An origin that learns goes without
    /// that one: totals are of a boot's whole life, and what it spent long ago has flowed back.
    fn cap_missing(&mut self, limit: &Limit, before: u64, learning: bool, now: Millis) {
        if let Algorithm::TokenBucket { .. } = limit.algorithm {
            let debt = if learning { 0 } else { limit.ceiling() };
            let most = limit.ceiling() + soon(limit, Millis(0), 0, now) + debt;
            self.bucket.missing = self.bucket.missing.min(most.max(before));
        }
    }

    /// Does a call say what is not known yet? Only loans and first words are waited after while nodes tell what they
    /// know: what they admit by their policy meanwhile must not make the waiting longer.
    pub fn hears_news(kept: Option<&Self>, call: &Take, now: Millis) -> bool {
        let mut record = kept.filter(|kept| kept.expires > now.0).cloned().unwrap_or_default();
        record.roll(call, now.into());
        let known = record.known(call);
        let (before, more) = if call.win == record.win {
            let after = known.totals.merged(call.totals);
            (known.totals, after.plain > known.totals.plain || after.granted > known.totals.granted)
        } else {
            let after = known.before.merged(call.totals);
            (known.before, record.is_previous(call) && after.counted() > known.before.counted())
        };
        more && (before.is_nothing() || call.totals.granted > before.granted)
    }

    fn is_previous(&self, call: &Take) -> bool {
        match call.limit.algorithm {
            Algorithm::SlidingWindow(width) => call.win + width.millis() == self.win,
            _ => false,
        }
    }

    /// The difference that merged totals make.
    fn count(&mut self, call: &Take, before: Totals, after: Totals, at: Micros) {
        let mut taken = (after.plain - before.plain) + (after.granted - before.granted);
        if matches!(call.limit.algorithm, Algorithm::SlidingLog(_)) && before.is_nothing() {
            taken = taken.saturating_sub(call.forgotten);
        }
        let mut returned = after.returned - before.returned;
        if let Algorithm::TokenBucket { .. } = call.limit.algorithm {
            // What was written off as spent flows back by itself, and is not given back once more.
            returned = returned.min(after.granted.saturating_sub(after.used + before.returned));
        }
        self.add(&call.limit, taken, at, false);
        self.counted = self.counted.saturating_sub(returned);
        if let Algorithm::TokenBucket { .. } = call.limit.algorithm {
            self.bucket.missing = self.bucket.missing.saturating_sub(returned);
        }
        self.outstanding = (self.outstanding + after.held()).saturating_sub(before.held());
    }

    /// A log's last loan stands under the latest moment at which it could be spent. What the caller no longer holds of it is
    /// taken out where it was given back, and was spent by now where it was not. The rest stays: what is given back of an
    /// older loan, whose moment is not known any more, is never taken out of what can still be spent of this one.
    fn settle(&mut self, call: &Take, entry: &mut Entry, after: Totals, at: Micros) {
        let Algorithm::SlidingLog(width) = call.limit.algorithm else { return };
        let settled = entry.open.saturating_sub(after.held());
        let back = settled.min(after.returned - entry.totals.returned);
        self.log.take_out(entry.at, back);
        let by_now = self.log.moment(call.limit.quota, width, at);
        if by_now < entry.at {
            let spent = self.log.take_out(entry.at, settled - back);
            self.log.enter(by_now, spent);
        }
        entry.open -= settled;
    }

    /// Counts units; for a log, says under which moment.
    fn add(&mut self, limit: &Limit, units: u64, at: Micros, plain: bool) -> Option<u64> {
        if units == 0 {
            return None;
        }
        self.counted += units;
        match limit.algorithm {
            Algorithm::TokenBucket { .. } => {
                self.bucket.missing += units;
                self.bucket.at = self.bucket.at.max(at.millis());
                None
            }
            Algorithm::SlidingLog(width) => {
                // A lease is spent when nobody here can see it: at the latest when it lapses.
                let life = if plain { 0 } else { width.millis() / 50 * 1000 };
                let moment = self.log.moment(limit.quota, width, Micros(at.0 + life));
                self.log.enter(moment, units);
                Some(moment)
            }
            _ => None,
        }
    }

    fn charge(&mut self, call: &Take, grant: Grant, debt: u64, at: Micros) {
        let need = if grant.took { call.need } else { 0 };
        let (plain, bundled) = if call.bundled { (0, need) } else { (need, 0) };
        let lent = bundled + grant.now + grant.later;
        let plain = plain + grant.more;
        self.add(&call.limit, plain, at, true);
        let entered = self.add(&call.limit, lent, at, false);
        self.outstanding += lent;
        if let Some(entry) = self.boots.get_mut(&call.boot)
            && (need > 0 || lent > 0)
        {
            entry.got = Got { took: grant.took, lent, later: grant.later, debt, more: grant.more };
            entry.totals.plain += plain;
            entry.totals.granted += lent;
            if let Some(at) = entered {
                (entry.at, entry.open) = (at, lent);
            }
        }
    }

    fn room(&self, limit: &Limit, now: Millis) -> Room {
        let (ceiling, gone) = match limit.algorithm {
            Algorithm::TokenBucket { .. } => {
                (limit.ceiling(), self.bucket.missing + u64::from(self.bucket.fraction > 0))
            }
            Algorithm::SlidingLog(_) => (limit.quota.get(), self.log.live()),
            Algorithm::SlidingWindow(width) => {
                (limit.quota.get(), self.sliding().counted(width, now.max(Millis(self.win))))
            }
            Algorithm::FixedWindow(_) => (limit.quota.get(), self.counted),
        };
        Room {
            free: ceiling.saturating_sub(gone),
            debt: gone.saturating_sub(ceiling),
            soon: soon(limit, Millis(self.win), self.previous, now),
        }
    }

    /// What may still be spent of what is lent. Of a log that stands under later moments than what is spent now: a process that
    /// was killed never says what became of the rest.
    fn lent(&self, limit: &Limit, at: Micros) -> u64 {
        match limit.algorithm {
            Algorithm::SlidingLog(width) => {
                let by_now = self.log.moment(limit.quota, width, at);
                // Later than a width from now is only what was entered by a clock that jumped.
                self.outstanding.min(self.log.within(by_now, by_now + width.millis() * 1000))
            }
            _ => self.outstanding,
        }
    }

    /// Is it time to say that others hold what is missing here?
    fn recalls(&mut self, limit: &Limit, now: Millis) -> bool {
        // Of the record's window: a clock that went back is still in it.
        let (_, end) = limit.window_at(now.max(Millis(self.win)));
        let due = now.0.abs_diff(self.recalled_at) >= RECALL_MS && end.since(now) > RECALL_MS;
        if due {
            self.recalled_at = now.0;
        }
        due
    }

    /// What silent boots hold of a bucket counts as spent.
    fn write_off(&mut self, now: Millis) {
        for entry in self.boots.values_mut() {
            let held = entry.totals.held();
            if held > 0 && now.0 >= entry.at + SILENT_MS {
                entry.totals.used += held;
                self.outstanding = self.outstanding.saturating_sub(held);
            }
        }
    }

    /// More boots than any fleet has: those silent longest are forgotten, and what they held counts as spent. One that calls
    /// again is counted again, so who holds nothing is not gone yet. Of logs it is not known: those go that hold least.
    fn fold(&mut self, call: &Take) {
        let room = usize::try_from(2 * call.nodes + 64).unwrap_or(usize::MAX);
        if self.boots.len() <= room {
            return;
        }
        let current = |entry: &Entry| if entry.win == self.win { entry.totals.held() } else { 0 };
        let mut others: Vec<_> =
            self.boots.iter().filter(|(boot, _)| **boot != call.boot).collect();
        let log = matches!(call.limit.algorithm, Algorithm::SlidingLog(_));
        others
            .sort_by_key(|(boot, entry)| (if log { 0 } else { entry.at }, current(entry), **boot));
        let gone: Vec<_> = others
            .iter()
            .take(self.boots.len() - room)
            .map(|(boot, entry)| (**boot, current(entry)))
            .collect();
        for (boot, held) in gone {
            self.boots.remove(&boot);
            self.outstanding = self.outstanding.saturating_sub(held);
        }
    }

    /// To the end of the next window; a bucket until it is full and every lease has lapsed, also for those who ask for it under
    /// other terms: what is missing of a large one flows back no sooner because somebody asked for a small one.
    fn lifetime(&self, limit: &Limit, rate_before: u64, now: Millis) -> u64 {
        match limit.algorithm {
            Algorithm::FixedWindow(window) => {
                let (start, end) = window.bounds(Millis(self.win));
                end.since(now) + end.since(start)
            }
            Algorithm::SlidingWindow(width) => {
                Millis(self.win + 2 * width.millis()).since(now).max(1)
            }
            Algorithm::SlidingLog(width) => 2 * width.millis(),
            Algorithm::TokenBucket { width, capacity } => {
                let quota = limit.quota.get();
                let slowest = match (rate_before, quota) {
                    (0, rate) | (rate, 0) => rate,
                    (before, now) => before.min(now),
                };
                let flows = |units: u64, rate: u64| {
                    let ms = u128::from(width.millis()) * u128::from(units);
                    let ms = ms.div_ceil(u128::from(rate.max(1)));
                    u64::try_from(ms).unwrap_or(u64::MAX).min(crate::WIDTH_MS_MAX)
                };
                let full = flows(capacity.get(), quota).max(flows(self.bucket.missing, slowest));
                full * 2 + SILENT_MS
            }
        }
    }

    fn sliding(&self) -> SlidingWindow {
        SlidingWindow { start: Millis(self.win), used: self.counted, previous: self.previous }
    }

    /// The counters as a node may keep them.
    fn state(&self, limit: &Limit, now: Millis) -> State {
        match limit.algorithm {
            Algorithm::FixedWindow(_) => {
                State::Fixed(FixedWindow { start: Millis(self.win), used: self.counted })
            }
            Algorithm::SlidingWindow(_) => State::Sliding(self.sliding()),
            Algorithm::TokenBucket { .. } => {
                State::Bucket(TokenBucket { at: self.bucket.at.max(now), ..self.bucket })
            }
            Algorithm::SlidingLog(_) => State::Log(Box::new(self.log.copy(now))),
        }
    }
}

// === impl Taken ===

impl Taken {
    /// The answer to a call about a window that it is not the time for.
    pub fn elsewhere(call: &Take, now: Millis) -> Self {
        Self {
            now,
            stand: Stand::WrongWindow,
            win: call.limit.window_at(now).0.0,
            totals: Totals::default(),
            took: false,
            lent: 0,
            later: 0,
            debt: 0,
            more: 0,
            state: State::fresh(&call.limit),
            outstanding: 0,
            made: false,
            recall: false,
        }
    }

    /// What is free for anybody, by the counters of the answer.
    pub fn free(&self, limit: &Limit) -> u64 {
        self.state.probe(limit, Cost::PEEK, self.now).remaining
    }
}
