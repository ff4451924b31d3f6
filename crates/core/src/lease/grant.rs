//! How much of what is free goes to one node, and from when on it may spend what is not free yet.

use crate::{AMOUNT_MAX, Algorithm, Limit, Millis};

/// A node gets 1/(α·nodes) of what is left, so that the last units are dealt in small coins.
pub const ALPHA: u64 = 2;

/// What may be granted at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Free now.
    pub(super) free: u64,
    /// Granted beyond what is free: units of others that have a date.
    pub(super) debt: u64,
    /// What flows back soon, for everybody together.
    pub(super) soon: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) took: bool,
    /// Spent at once for those who wait behind the first.
    pub(super) more: u64,
    /// Lent, to be spent at once.
    pub(super) now: u64,
    /// Lent, to be spent when free.
    pub(super) later: u64,
}

// === impl Room ===

impl Room {
    pub(super) fn grant(&self, need: u64, more: u64, ask: u64, nodes: u64) -> Grant {
        let nodes = nodes.max(1);
        let took = need > 0 && need <= self.free;
        if need > self.free && ask == 0 {
            return Grant::default();
        }
        let mut left = self.free - if took { need } else { 0 };
        // Whole costs only: a part of one would be spent for nobody.
        let more = if took { more.min(left) / need * need } else { 0 };
        left -= more;
        let served = if took { need } else { 0 };
        // A need that does not fit gets nothing now: what is left is for those that do.
        let guided = if need > self.free { 0 } else { self.free.div_ceil(ALPHA * nodes) };
        let mut now = ask.min(guided).saturating_sub(served).min(left);
        left -= now;
        // Nor later: who is lent what is to come waits for that, and does not ask for what is there.
        let soon = if need > self.free && self.free > 0 { 0 } else { self.soon };
        let share = if soon >= 2 * nodes { soon.div_ceil(nodes) } else { 0 };
        let mut extra = ask.min(share).saturating_sub(served + now);
        if need <= self.free {
            let at_once = extra.min(left);
            now += at_once;
            extra -= at_once;
        }
        Grant { took, more, now, later: extra.min(self.soon.saturating_sub(self.debt)) }
    }
}

/// How long after the answer the `nth` dated unit (from 1) may be spent, where `debt` units of others come
/// first. Late is safe, early is not: every rounding goes up.
#[allow(clippy::cast_possible_truncation, reason = "cut at AMOUNT_MAX first")]
pub fn dated_at(limit: &Limit, previous: u64, debt: u64, nth: u64) -> u64 {
    let units = u128::from(debt) + u128::from(nth);
    let (width, per_width, slack) = match limit.algorithm {
        // The previous window fades in 2^20 steps, each rounded up: one unit and one step later is surely free.
        Algorithm::SlidingWindow(width) => (width, previous, (width.millis() >> 20) + 1),
        Algorithm::TokenBucket { width, .. } => (width, limit.quota.get(), 0),
        _ => return u64::MAX,
    };
    let units = units + u128::from(slack > 0);
    let ms = (units * u128::from(width.millis())).div_ceil(u128::from(per_width.max(1)));
    (ms + u128::from(slack)).min(u128::from(AMOUNT_MAX)) as u64
}

/// What flows back within a twentieth of the width, and where there is an edge, before half of the time to it is over.
pub(super) fn soon(limit: &Limit, win: Millis, previous: u64, now: Millis) -> u64 {
    match limit.algorithm {
        Algorithm::SlidingWindow(width) => {
            let to_edge = (win + width.millis()).since(now);
            (previous / 20).min(share(previous, to_edge / 2, width.millis()))
        }
        Algorithm::TokenBucket { capacity, .. } => (limit.quota.get() / 20).min(capacity.get() / 2),
        _ => 0,
    }
}

#[allow(clippy::cast_possible_truncation, reason = "part is at most whole")]
fn share(of: u64, part: u64, whole: u64) -> u64 {
    (u128::from(of) * u128::from(part.min(whole)) / u128::from(whole)) as u64
}
