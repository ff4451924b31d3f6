//! The steps that are taken most, each in few instructions: so the processor sees as far as the next request, and fetches its
//! cell while it waits for this one. One for each algorithm, put together apart from the others, so that none takes their registers.
//! They change nothing where they say nothing: then it is [`Cell::step`]'s turn.

use tollkeeper_core::{Algorithm, Cost, Limit, Millis, Outcome, State, Window};

use super::{Cell, seconds};

pub(crate) trait ShortStep {
    /// One step where the cell is, and whether it was spent from; or nothing.
    fn take(cell: &mut Cell, limit: &Limit, cost: Cost, now: Millis) -> Option<(Outcome, bool)>;
}

/// Of a sliding window that goes on.
pub(crate) struct Slide;

/// Of a bucket that has enough.
pub(crate) struct Pour;

/// Of a fixed window that goes on. Calendars are left to the long way, and so are logs.
pub(crate) struct Count;

impl ShortStep for Slide {
    #[inline]
    fn take(cell: &mut Cell, limit: &Limit, cost: Cost, now: Millis) -> Option<(Outcome, bool)> {
        let (State::Sliding(window), Algorithm::SlidingWindow(width)) =
            (&mut cell.state, limit.algorithm)
        else {
            return None;
        };
        let first = window.used == 0;
        let outcome = window.go_on(limit.quota, width, cost, now)?;
        let spent = outcome.admitted() && cost != Cost::PEEK;
        if spent {
            if first {
                // Whatever else is spent in this window, it is idle no later.
                cell.idle_at_s = seconds(window.idle_at(width));
            }
            cell.fill = outcome.fill();
        }
        Some((outcome, spent))
    }
}

impl ShortStep for Pour {
    #[inline]
    fn take(cell: &mut Cell, limit: &Limit, cost: Cost, now: Millis) -> Option<(Outcome, bool)> {
        let (State::Bucket(bucket), Algorithm::TokenBucket { width, capacity }) =
            (&mut cell.state, limit.algorithm)
        else {
            return None;
        };
        let outcome = bucket.admit(Limit::refill(limit.quota, width, capacity), cost, now)?;
        // As good as fresh when it is whole again.
        cell.idle_at_s = seconds(outcome.reset);
        cell.fill = outcome.fill();
        Some((outcome, true))
    }
}

impl ShortStep for Count {
    #[inline]
    fn take(cell: &mut Cell, limit: &Limit, cost: Cost, now: Millis) -> Option<(Outcome, bool)> {
        let (State::Fixed(window), Algorithm::FixedWindow(Window::Aligned(width))) =
            (&mut cell.state, limit.algorithm)
        else {
            return None;
        };
        let outcome = window.go_on(limit.quota, width, cost, now)?;
        let spent = outcome.admitted() && cost != Cost::PEEK;
        if spent {
            cell.idle_at_s = seconds(outcome.reset);
            cell.fill = outcome.fill();
        }
        Some((outcome, spent))
    }
}
