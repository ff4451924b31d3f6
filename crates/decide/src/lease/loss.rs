//! What the origin may have lost: a record that vanished alone, by eviction or by hand, and what an answer tells of that to a
//! node that was in it; or everything.
//! It costs no call: where nothing was heard of a cell before, nothing is missed.

use tollkeeper_core::{Algorithm, Millis, Stand, State, Taken, Totals};

use super::cell::LeaseCell;

// === impl LeaseCell ===

impl<W> LeaseCell<W> {
    /// The origin may know nothing of this cell: false where there is nothing to know.
    pub(super) fn owe(&mut self) -> bool {
        let told_something = self.totals != Totals::default()
            || self.before.is_some()
            || self.ahead.is_some()
            || self.flight.is_some();
        if !told_something {
            return false;
        }
        (self.owes, self.owes_before) = (true, self.before.is_some());
        if let Some(ahead) = &mut self.ahead {
            ahead.owes = true;
        }
        // It may have been heard before the loss.
        if let Some(flight) = &mut self.flight {
            flight.pays = false;
        }
        true
    }

    /// Is the record that answered another one than that which heard this node before? Whoever is telling its totals
    /// because of that was told already, and tells nobody.
    pub(super) fn lacks_record(&self, taken: &Taken, now: Millis) -> bool {
        let ours = self.flight.as_ref().is_some_and(|flight| flight.take.win == self.win);
        let counted = self.acked.plain > 0 || self.acked.granted > 0;
        let told = self.adopted && ours && counted && !self.owes && taken.stand == Stand::Heard;
        if !told || self.may_be_forgotten(now) {
            return false;
        }
        if taken.win == self.win {
            return taken.made || self.has_shrunk(taken);
        }
        // A window that slides keeps its record for one more.
        let next = match self.limit.algorithm {
            Algorithm::SlidingWindow(width) => taken.win == self.win + width.millis(),
            _ => false,
        };
        next && taken.made
    }

    /// A bucket that is full again, and a log that is empty, end as they should when nobody has called for so long.
    fn may_be_forgotten(&self, now: Millis) -> bool {
        let silent = now.since(self.answered);
        match self.limit.algorithm {
            Algorithm::FixedWindow(_) | Algorithm::SlidingWindow(_) => false,
            Algorithm::SlidingLog(width) => silent > width.millis(),
            Algorithm::TokenBucket { width, capacity } => {
                let full = u128::from(width.millis()) * u128::from(capacity.get());
                u128::from(silent) * u128::from(self.limit.quota.get()) > full
            }
        }
    }

    /// Does it count less than it can, of those whose counters fall only by what is given back? Then another node made it
    /// anew, which had nothing to miss.
    fn has_shrunk(&self, taken: &Taken) -> bool {
        let (Some(seen), Some(flight)) = (&self.seen, &self.flight) else { return false };
        let (before, after) = match (&seen.state, &taken.state) {
            (State::Fixed(before), State::Fixed(after)) if before.start == after.start => {
                (before.used, after.used)
            }
            (State::Sliding(before), State::Sliding(after)) if before.start == after.start => {
                (before.used, after.used)
            }
            _ => return false,
        };
        let returned = flight.take.totals.returned.saturating_sub(self.acked.returned);
        after < before.saturating_sub(seen.elsewhere + returned)
    }
}
