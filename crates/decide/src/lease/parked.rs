//! A request that is refused what is there in a moment: because other nodes hold it and are asked to give it back, or because
//! it leaves a log just then. It waits for that, and asks again.

use tollkeeper_core::{Admission, Algorithm, Cost, Millis};

use super::cell::LeaseCell;
use super::waiter::Waiter;
use super::{Dealt, LeaseAsk};

/// So long the others have to give back what they can spare: news to them, and a call of theirs to the origin. A request that
/// comes a width after another, and a moment too early for that, waits as long at most.
pub(super) const WAIT_MS_MAX: u64 = 3;

/// So often at most, if there is time: others may be slow to hear of it.
const WAITS_MAX: u32 = 3;

#[derive(Debug)]
pub(super) struct Parked<W> {
    waiters: Vec<Waiter<W>>,
    /// How long those wait that nobody has been told of yet.
    untold: Option<u64>,
}

impl<W> Default for Parked<W> {
    fn default() -> Self {
        Self { waiters: Vec::new(), untold: None }
    }
}

// === impl LeaseCell ===

impl<W> LeaseCell<W> {
    /// How long it is worth to wait, for one that was refused.
    pub(super) fn wait_of(&self, waiter: &Waiter<W>, recall: bool, now: Millis) -> Option<u64> {
        let sight = self.seen.as_ref()?.sight;
        // One more call must fit into its patience.
        let call_ms = sight.heard.since(sight.sent) + 1;
        let has_time = |ms: &u64| now + *ms + call_ms <= waiter.until;
        // Others are asked for one at a time. Who needs much of the limit waits also for what they were asked a moment ago,
        // for another.
        let called = recall || waiter.waits > 0 || self.is_large(waiter.ask.cost.get());
        let asked = called && waiter.rounds > 0 && waiter.waits < WAITS_MAX;
        if asked && self.parked.is_none() && self.can_be_called_in(&waiter.ask, now) {
            return Some(WAIT_MS_MAX).filter(has_time);
        }
        self.forgotten_in(&waiter.ask, now).filter(|_| waiter.waits == 0).filter(has_time)
    }

    /// Would the cost fit, if all that others hold came back, and what is in hand here?
    pub(super) fn can_be_called_in(&self, ask: &LeaseAsk, now: Millis) -> bool {
        let Some(seen) = &self.seen else { return false };
        let at = seen.sight.at(now);
        let then = seen.state.probe(&ask.limit, Cost::PEEK, at + WAIT_MS_MAX).remaining;
        // A call that carries a need gives back what is in hand. What is left of a log's loans comes back only in part.
        let in_hand = match ask.limit.algorithm {
            Algorithm::SlidingLog(_) => 0,
            _ => self.totals.held().saturating_sub(self.aside),
        };
        let lent = seen.elsewhere.saturating_add(in_hand);
        !seen.state.probe(&ask.limit, ask.cost, at).admitted()
            && ask.cost.get() <= then.saturating_add(lent)
    }

    /// When a log forgets its first units, if that is in a moment. Whether they are enough nobody here knows.
    fn forgotten_in(&self, ask: &LeaseAsk, now: Millis) -> Option<u64> {
        let (Algorithm::SlidingLog(_), Some(seen)) = (ask.limit.algorithm, &self.seen) else {
            return None;
        };
        let at = seen.sight.at(now);
        let one = seen.state.probe(&ask.limit, Cost::ONE, at);
        let ms = match one.admission {
            // The copy knows whole milliseconds: it is in the course of this one.
            Admission::Admitted => 1,
            Admission::NotUntil(then) => then.since(at).max(1),
            Admission::Never => return None,
        };
        (ms <= WAIT_MS_MAX).then_some(ms)
    }

    pub(super) fn park(&mut self, waiter: Waiter<W>, ms: u64) {
        let parked = self.parked.get_or_insert_default();
        parked.untold = parked.untold.max(Some(ms));
        parked.waiters.push(Waiter { rounds: 0, waits: waiter.waits + 1, ..waiter });
    }

    pub(super) fn parked_len(&self) -> usize {
        self.parked.as_ref().map_or(0, |parked| parked.waiters.len())
    }

    /// Who was parked since this was asked last waits for so long.
    pub(super) fn parks_for(&mut self) -> Option<u64> {
        self.parked.as_mut()?.untold.take()
    }

    /// Those that waited ask once more, before those that came after them.
    pub(super) fn unpark(&mut self) {
        let Some(parked) = self.parked.take() else { return };
        for waiter in parked.waiters.into_iter().rev() {
            self.waiters.push_front(waiter);
        }
    }

    /// Somebody waits no longer. Who is parked has been refused by the origin; who is not, was not heard.
    pub(super) fn leave(&mut self, id: u64, now: Millis) -> Option<Dealt> {
        let parked = self.parked.as_mut().map(|parked| &mut parked.waiters);
        if let Some(gone) = parked.and_then(|all| all.extract_if(.., |one| one.id == id).next()) {
            return Some(self.refuse(&gone.ask, now));
        }
        let at = self.waiters.iter().position(|one| one.id == id)?;
        let gone = self.waiters.remove(at)?;
        Some(self.unheard(&gone.ask, now))
    }
}
