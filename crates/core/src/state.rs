//! The state of one cell: whichever algorithm's counters it holds, stepped and written as one thing.

use crate::limit::Limit;
use crate::{
    Algorithm, Cost, FixedWindow, Millis, Outcome, SlidingLog, SlidingWindow, TokenBucket,
};

mod codec;
#[cfg(test)]
mod properties;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Fixed(FixedWindow),
    Sliding(SlidingWindow),
    Bucket(TokenBucket),
    /// Boxed: the only state that grows, and the rarest; the others stay in three words.
    Log(Box<SlidingLog>),
}

// === impl State ===

impl State {
    /// The state of a cell that nobody has spent from.
    pub fn fresh(limit: &Limit) -> Self {
        match limit.algorithm {
            Algorithm::FixedWindow(_) => Self::Fixed(FixedWindow::default()),
            Algorithm::SlidingWindow(_) => Self::Sliding(SlidingWindow::default()),
            Algorithm::TokenBucket { .. } => Self::Bucket(TokenBucket::default()),
            Algorithm::SlidingLog(_) => Self::Log(Box::default()),
        }
    }

    /// One step: this state, a cost and a moment give an outcome and the next state.
    /// A state of another algorithm than the limit's counts as fresh; a cell's key holds
    /// its algorithm, so the two only differ when a stored state was tampered with.
    #[must_use]
    pub fn spend(mut self, limit: &Limit, cost: Cost, now: Millis) -> (Outcome, Self) {
        let outcome = self.step(limit, cost, now);
        (outcome, self)
    }

    /// The same where the state is: a table of many does not move each out and back.
    #[inline]
    pub fn step(&mut self, limit: &Limit, cost: Cost, now: Millis) -> Outcome {
        let quota = limit.quota;
        match (self, limit.algorithm) {
            (Self::Fixed(state), Algorithm::FixedWindow(window)) => {
                let (outcome, next) = state.spend(quota, window, cost, now);
                *state = next;
                outcome
            }
            (Self::Sliding(state), Algorithm::SlidingWindow(width)) => {
                let (outcome, next) = state.spend(quota, width, cost, now);
                *state = next;
                outcome
            }
            (Self::Bucket(state), Algorithm::TokenBucket { width, capacity }) => {
                let (outcome, next) = state.spend(Limit::refill(quota, width, capacity), cost, now);
                *state = next;
                outcome
            }
            (Self::Log(state), Algorithm::SlidingLog(width)) => {
                let (outcome, next) = std::mem::take(&mut **state).spend(quota, width, cost, now);
                **state = next;
                outcome
            }
            (other, _) => {
                *other = Self::fresh(limit);
                other.step(limit, cost, now)
            }
        }
    }

    /// What [`State::spend`] would answer, without spending.
    pub fn probe(&self, limit: &Limit, cost: Cost, now: Millis) -> Outcome {
        let quota = limit.quota;
        match (self, limit.algorithm) {
            (Self::Fixed(state), Algorithm::FixedWindow(window)) => {
                state.probe(quota, window, cost, now)
            }
            (Self::Sliding(state), Algorithm::SlidingWindow(width)) => {
                state.probe(quota, width, cost, now)
            }
            (Self::Bucket(state), Algorithm::TokenBucket { width, capacity }) => {
                state.probe(Limit::refill(quota, width, capacity), cost, now)
            }
            (Self::Log(state), Algorithm::SlidingLog(width)) => {
                state.probe(quota, width, cost, now)
            }
            _ => Self::fresh(limit).probe(limit, cost, now),
        }
    }

    /// What [`State::spend`] would answer, and the state that it would lead to where that takes no copy of a list: of a log
    /// there is none, and it is stepped once it is known that it will be spent from.
    #[inline]
    pub fn ahead(&self, limit: &Limit, cost: Cost, now: Millis) -> (Outcome, Option<Self>) {
        let quota = limit.quota;
        match (self, limit.algorithm) {
            (Self::Fixed(state), Algorithm::FixedWindow(window)) => {
                let (outcome, next) = state.spend(quota, window, cost, now);
                (outcome, Some(Self::Fixed(next)))
            }
            (Self::Sliding(state), Algorithm::SlidingWindow(width)) => {
                let (outcome, next) = state.spend(quota, width, cost, now);
                (outcome, Some(Self::Sliding(next)))
            }
            (Self::Bucket(state), Algorithm::TokenBucket { width, capacity }) => {
                let (outcome, next) = state.spend(Limit::refill(quota, width, capacity), cost, now);
                (outcome, Some(Self::Bucket(next)))
            }
            _ => (self.probe(limit, cost, now), None),
        }
    }

    /// The moment from which this state is no different from a fresh one, so that it may be forgotten.
    pub fn idle_at(&self, limit: &Limit) -> Millis {
        match (self, limit.algorithm) {
            (Self::Fixed(state), Algorithm::FixedWindow(window)) => state.idle_at(window),
            (Self::Sliding(state), Algorithm::SlidingWindow(width)) => state.idle_at(width),
            (Self::Bucket(state), Algorithm::TokenBucket { width, capacity }) => {
                state.idle_at(Limit::refill(limit.quota, width, capacity))
            }
            (Self::Log(state), Algorithm::SlidingLog(width)) => state.idle_at(width),
            _ => Millis(0),
        }
    }
}
