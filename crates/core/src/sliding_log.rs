//! Sliding log: every admitted cost with its moment, forgotten one width later.
//! Exact over every interval, at the price of memory: at most one entry per unit of quota.
//! Pure arithmetic. It never reads a clock; `now` comes in, the new state goes out.

use std::collections::VecDeque;

use crate::outcome::weigh;
use crate::{Cost, Millis, Outcome, Quota, Width};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlidingLog {
    /// Oldest first; costs of one millisecond share an entry.
    entries: VecDeque<(Millis, u64)>,
    total: u64,
    /// The newest moment this log has seen.
    newest: Millis,
}

// === impl SlidingLog ===

impl SlidingLog {
    /// A log from its parts; `None` when they are not in order of time.
    pub fn from_parts(
        newest: Millis,
        entries: impl IntoIterator<Item = (Millis, u64)>,
    ) -> Option<Self> {
        let entries: VecDeque<_> = entries.into_iter().collect();
        let pairs = entries.iter().zip(entries.iter().skip(1));
        let ordered = pairs.clone().all(|(older, newer)| older.0 < newer.0)
            && entries.back().is_none_or(|(at, _)| *at <= newest);
        let total = entries.iter().try_fold(0_u64, |sum, entry| sum.checked_add(entry.1))?;
        ordered.then_some(Self { entries, total, newest })
    }

    pub fn newest(&self) -> Millis {
        self.newest
    }

    pub fn entries(&self) -> impl ExactSizeIterator<Item = (Millis, u64)> + '_ {
        self.entries.iter().copied()
    }

    pub fn spend(mut self, quota: Quota, width: Width, cost: Cost, now: Millis) -> (Outcome, Self) {
        let now = self.latest(now);
        self.newest = now;
        self.forget(width, now);
        let outcome = self.outcome(quota, width, cost, now, self.total);
        if outcome.admitted() && cost.get() > 0 {
            self.append(cost, now);
        }
        let reset = self.whole_at(width, now);
        (Outcome { reset, ..outcome }, self)
    }

    pub fn probe(&self, quota: Quota, width: Width, cost: Cost, now: Millis) -> Outcome {
        let now = self.latest(now);
        let gone: u64 = self
            .entries
            .iter()
            .take_while(|(at, _)| *at + width.millis() <= now)
            .map(|entry| entry.1)
            .sum();
        let outcome = self.outcome(quota, width, cost, now, self.total - gone);
        let spends = outcome.admitted() && cost.get() > 0;
        let reset = if spends { now + width.millis() } else { self.whole_at(width, now) };
        Outcome { reset, ..outcome }
    }

    /// The moment from which this state is no different from a fresh one.
    pub fn idle_at(&self, width: Width) -> Millis {
        self.whole_at(width, Millis(0))
    }

    /// A clock that went back is read as the newest moment seen: nothing is forgotten early, or twice.
    fn latest(&self, now: Millis) -> Millis {
        now.max(self.newest)
    }

    fn forget(&mut self, width: Width, now: Millis) {
        while let Some((at, cost)) = self.entries.front().copied() {
            if at + width.millis() > now {
                return;
            }
            self.entries.pop_front();
            self.total -= cost;
        }
    }

    fn append(&mut self, cost: Cost, now: Millis) {
        self.total += cost.get();
        match self.entries.back_mut() {
            Some((at, newest)) if *at == now => *newest += cost.get(),
            _ => self.entries.push_back((now, cost.get())),
        }
    }

    fn outcome(&self, quota: Quota, width: Width, cost: Cost, now: Millis, live: u64) -> Outcome {
        let free = quota.get().saturating_sub(live);
        weigh(cost.get(), quota.get(), free, now, || {
            let excess = live + cost.get() - quota.get();
            self.freed_at(excess, width, now)
        })
    }

    /// When the oldest live entries that add up to `excess` are forgotten.
    fn freed_at(&self, excess: u64, width: Width, now: Millis) -> Millis {
        let mut freed = 0;
        let live = self.entries.iter().filter(|(at, _)| *at + width.millis() > now);
        for (at, cost) in live {
            freed += cost;
            if freed >= excess {
                return *at + width.millis();
            }
        }
        now
    }

    fn whole_at(&self, width: Width, now: Millis) -> Millis {
        self.entries.back().map_or(now, |(at, _)| now.max(*at + width.millis()))
    }
}
