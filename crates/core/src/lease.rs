//! Leases: units of a cell that a node may spend by itself, and the record that says who was granted how many.
//! What Redis does in a script is done here as a pure function, so that the two can be held against each other.
//! It never reads a clock; `now` comes in.

#[cfg(test)]
mod buckets;
#[cfg(test)]
mod clocks;
#[cfg(test)]
mod crowd;
mod grant;
mod log_book;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod properties;
mod record;

use crate::{AMOUNT_MAX, Algorithm, Limit, Millis, State};

pub use grant::{ALPHA, dated_at};
pub use log_book::{first_moment as first_log_moment, log_copy};
pub use record::Record;

/// One process life, as it is known in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Boot(pub u64);

/// What one boot did with one cell in one window. Every number only ever grows, so that
/// repeated, late and reordered messages are harmless when they are merged by max.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Taken and spent in one step, without ever being held.
    pub plain: u64,
    /// Lent, to be spent later.
    pub granted: u64,
    /// Of those, spent.
    pub used: u64,
    /// Of those, given back.
    pub returned: u64,
}

/// A node's call about one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Take {
    pub boot: Boot,
    /// Counts the calls of a boot. One that is not newer than the last is granted nothing.
    pub seq: u64,
    /// Whose totals follow: the start of a window; zero where there are none.
    pub win: u64,
    pub totals: Totals,
    /// What the first waiter costs: all of it, or nothing.
    pub need: u64,
    /// What those cost who wait behind it, in a log, each as much as the first: as many of them as there is room for are served
    /// at once, because whatever a log lends counts from when the lease is over.
    pub more: u64,
    /// What the totals count of a log that it has surely forgotten: given back, or spent longer ago than it is wide. Whoever
    /// hears of them for the first time, because the origin lost its history, need not count it.
    pub forgotten: u64,
    /// What the node could use, the need included.
    pub ask: u64,
    /// The need is one of several that are spent together or not at all: it is lent, not spent at once.
    pub bundled: bool,
    /// How many nodes share the cell, as far as this one knows. A hint; exactness does not depend on it.
    pub nodes: u64,
    pub limit: Limit,
}

/// The answer to a [`Take`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The time by which this was decided: the only clock that counts.
    pub now: Millis,
    pub stand: Stand,
    pub win: u64,
    /// This boot's totals in that window.
    pub totals: Totals,
    /// The need was taken, by this call or an earlier delivery of it.
    pub took: bool,
    /// What it lent.
    pub lent: u64,
    /// Of that, so many may only be spent once they have become free.
    pub later: u64,
    /// Units of others that become free before those.
    pub debt: u64,
    /// Spent at once for those who wait behind the first.
    pub more: u64,
    /// The counters after this call: what is free is what they yield.
    pub state: State,
    /// Lent to anybody and not known to be spent.
    pub outstanding: u64,
    /// There was no record before.
    pub made: bool,
    /// Others hold what is missing here: somebody should ask them to give it back.
    pub recall: bool,
}

/// So long before a fixed window begins, and no longer before than it is wide, units of it are lent: there to be spent
/// when it has begun.
pub const AHEAD_MS: u64 = 60_000;

/// How a call was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    Heard,
    /// The window that was asked for is not the current one: look at the time and ask again.
    WrongWindow,
    /// History was lost. Totals are taken in, nothing is granted until everybody has told theirs.
    Learning,
}

// === impl Boot ===

impl Boot {
    /// Eleven characters hold 64 bits.
    pub fn text(self) -> [u8; 11] {
        const DIGITS: &[u8; 64] =
            b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz-";
        let mut text = [b'0'; 11];
        let mut rest = self.0;
        for digit in text.iter_mut().rev() {
            *digit = DIGITS[usize::from(rest.to_le_bytes()[0] & 63)];
            rest >>= 6;
        }
        text
    }
}

// === impl Totals ===

impl Totals {
    /// Lent and neither spent nor given back.
    pub fn held(&self) -> u64 {
        self.granted.saturating_sub(self.used.saturating_add(self.returned))
    }

    /// Nothing was ever told of it.
    pub(crate) fn is_nothing(&self) -> bool {
        self.plain == 0 && self.granted == 0
    }

    /// All that counts against the limit.
    pub fn counted(&self) -> u64 {
        self.plain.saturating_add(self.granted.saturating_sub(self.returned))
    }

    /// Of a bucket what was written off as spent may be given back all the same, by a call that comes later. Then it was never
    /// granted, or as much of the next loan would be nobody's.
    #[must_use]
    pub(crate) fn balanced(self, limit: &Limit) -> Self {
        let Algorithm::TokenBucket { .. } = limit.algorithm else { return self };
        let gone = self.used.saturating_add(self.returned).min(AMOUNT_MAX);
        Self { granted: self.granted.max(gone), ..self }
    }

    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        Self {
            plain: self.plain.max(other.plain),
            granted: self.granted.max(other.granted),
            used: self.used.max(other.used),
            returned: self.returned.max(other.returned),
        }
    }
}

// === impl Take ===

impl Take {
    /// Is its window one that the origin may speak of at `now`? Of a fixed one that is yet to begin only loans: a need is
    /// spent at once, and would be spent in the window before.
    pub fn is_timely(&self, now: Millis) -> bool {
        let Algorithm::FixedWindow(window) = self.limit.algorithm else { return true };
        let (start, end) = window.bounds(Millis(self.win));
        let early = start.since(now);
        let ahead = self.need == 0 && early <= AHEAD_MS.min(end.since(start));
        start.0 == self.win && now < end && (early == 0 || ahead)
    }
}

// === impl Limit ===

impl Limit {
    /// The window that a record of this limit is about at `now`: its start and its end. Cells that flow
    /// have none.
    pub fn window_at(&self, now: Millis) -> (Millis, Millis) {
        match self.algorithm {
            Algorithm::FixedWindow(window) => window.bounds(now),
            Algorithm::SlidingWindow(width) => {
                let start = width.start_of(now);
                (start, start + width.millis())
            }
            Algorithm::SlidingLog(_) | Algorithm::TokenBucket { .. } => {
                (Millis(0), Millis(u64::MAX))
            }
        }
    }

    /// The most that can be spent at once.
    pub fn ceiling(&self) -> u64 {
        match self.algorithm {
            Algorithm::TokenBucket { capacity, .. } if self.quota.get() > 0 => capacity.get(),
            _ => self.quota.get(),
        }
    }
}
