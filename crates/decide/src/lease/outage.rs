//! The origin is away, or has lost its history: what a limit does then is its policy.

use tollkeeper_core::{Admission, Algorithm, Cost, Limit, Millis, Outcome, Quota, State};

use super::cell::LeaseCell;
use super::{Dealt, LeaseAsk, Link, OnOutage};

/// So long after an origin is back every node has told it what it spent of its share.
const TOLD_MS: u64 = 2_000;

// === impl LeaseCell ===

impl<W> LeaseCell<W> {
    /// Decides alone. What it admits is counted, and told when the origin is back.
    ///
    /// An origin that is learning is back in a second or two, and what it does not know yet may be all that there was: a
    /// share of it would be guessed. Then `share` refuses.
    pub(super) fn without_origin(
        &mut self,
        ask: &LeaseAsk,
        link: Link,
        nodes: u64,
        now: Millis,
    ) -> Dealt {
        let at = self.origin_time(now);
        let mut outcome = self.standing(&ask.limit, Cost::PEEK, at);
        if ask.cost == Cost::PEEK {
            return Dealt { outcome, units: None, degraded: true, unavailable: false, at };
        }
        let mut unavailable = false;
        match ask.on_outage {
            OnOutage::Allow => outcome.admission = Admission::Admitted,
            OnOutage::Deny => {
                outcome.admission = Admission::NotUntil(at + 1000);
                unavailable = true;
            }
            OnOutage::Share if link == Link::Learning => {
                outcome.admission = Admission::NotUntil(at + 1000);
            }
            OnOutage::Share => outcome = self.share_of(ask, nodes, at),
        }
        let mut held = None;
        if outcome.admitted() {
            self.turn_alone(ask, at, now);
            held = Some(self.count_plain(ask, now));
        }
        Dealt { outcome, units: held, degraded: true, unavailable, at }
    }

    /// This node's part: of what was left when the origin was last heard in this window, else of the limit. A log has no
    /// window: what the origin knew of it counts until it has aged.
    fn share_of(&mut self, ask: &LeaseAsk, nodes: u64, at: Millis) -> Outcome {
        let (start, _) = ask.limit.window_at(at);
        let is_log = matches!(ask.limit.algorithm, Algorithm::SlidingLog(_));
        let is_this_window = start.0 == self.win && self.win > 0;
        let known = self.seen.as_ref().filter(|_| is_log || is_this_window);
        let whole = match known {
            Some(seen) => seen.state.probe(&ask.limit, Cost::PEEK, at).remaining,
            None => ask.limit.quota.get(),
        };
        // One at least: an outage must not turn a small limit into a ban.
        let part = scaled(&ask.limit, (whole / nodes).max(u64::from(whole > 0)), nodes);
        let state = self.share.take().map_or_else(|| State::fresh(&part), |share| *share);
        let (mut outcome, next) = if ask.bundled {
            // What waits for its decision is not free, and is spent with it.
            let waiting = Cost::new(self.pledged.saturating_add(ask.cost.get()));
            let probed = state.probe(&part, waiting.unwrap_or(ask.cost), at);
            let others = if probed.admitted() { 0 } else { self.pledged };
            let remaining = probed.remaining.saturating_sub(others);
            (Outcome { remaining, ..probed }, state)
        } else {
            state.spend(&part, ask.cost, at)
        };
        self.share = Some(Box::new(next));
        self.share_terms = Some(Box::new((part, at)));
        if outcome.admission == Admission::Never && ask.cost.get() <= ask.limit.ceiling() {
            outcome.admission = Admission::NotUntil(outcome.reset.max(at + 1000));
        }
        outcome.limit = ask.limit.ceiling();
        outcome
    }

    /// The origin was heard to know all that was spent of the share, so that its copy holds it: counted in both, it would be
    /// refused twice the next time. Not as long as others may have theirs to tell, or who is heard first would have a part of
    /// that too. A bucket's share is no part of what was left: it empties and fills by itself.
    pub(super) fn end_share(&mut self, at: Millis) {
        let Some((part, asked_at)) = self.share_terms.as_deref() else { return };
        let told = self.untold() == 0 && self.pledged == 0 && at.since(*asked_at) >= TOLD_MS;
        if told && !matches!(part.algorithm, Algorithm::TokenBucket { .. }) {
            (self.share, self.share_terms) = (None, None);
        }
    }

    /// What was pledged from the share is spent.
    pub(super) fn spend_share(&mut self, units: u64) {
        let cost = Cost::new(units).filter(|_| units > 0);
        let (Some(cost), Some((part, at))) = (cost, self.share_terms.as_deref().copied()) else {
            return;
        };
        if let Some(state) = self.share.take() {
            self.share = Some(Box::new(state.spend(&part, cost, at).1));
        }
    }

    /// Counts in the window of the moment, as far as the node knows it.
    fn turn_alone(&mut self, ask: &LeaseAsk, at: Millis, now: Millis) {
        let (start, _) = ask.limit.window_at(at);
        let windowed = !matches!(
            ask.limit.algorithm,
            Algorithm::TokenBucket { .. } | Algorithm::SlidingLog(_)
        );
        if windowed && start.0 > self.win && !self.awaits(start.0, now) {
            let share = self.share.take();
            self.limit = ask.limit;
            self.open_window(start.0, now);
            self.share = share;
        }
    }
}

/// The same limit with another quota; a bucket's burst is shared out like its rate.
fn scaled(limit: &Limit, quota: u64, nodes: u64) -> Limit {
    let quota = Quota::new(quota).unwrap_or(limit.quota);
    match limit.algorithm {
        Algorithm::TokenBucket { width, capacity } => {
            let burst = Quota::new((capacity.get() / nodes).max(1));
            Limit::token_bucket(quota, width, burst)
        }
        _ => Limit { quota, ..*limit },
    }
}
