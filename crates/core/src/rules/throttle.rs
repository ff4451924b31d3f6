//! Throttling as a leaky bucket: whoever is over the limit is told how long to wait, and beyond the longest wait is
//! refused. It is an ordinary token bucket, enlarged by what flows back during that wait: so it is counted wherever
//! token buckets are.

use crate::calendar::DAY_MS;
use crate::{AMOUNT_MAX, Algorithm, Limit, Millis, Outcome, Quota, Width, Window};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    quota: Quota,
    width: Width,
    /// What may pass without waiting.
    capacity: Quota,
    enlarged: Quota,
    max_delay_ms: u64,
}

// === impl Throttle ===

impl Throttle {
    /// Whatever the limit's algorithm, its quota flows back over its width. `None` for a calendar month, over which
    /// nothing flows evenly.
    pub fn new(limit: Limit, max_delay_ms: u64) -> Option<Self> {
        let quota = limit.quota;
        let (width, capacity) = match limit.algorithm {
            Algorithm::FixedWindow(Window::Month) => return None,
            Algorithm::FixedWindow(Window::Day) => (Width::from_millis(DAY_MS)?, quota),
            Algorithm::FixedWindow(Window::Aligned(width))
            | Algorithm::SlidingWindow(width)
            | Algorithm::SlidingLog(width) => (width, quota),
            Algorithm::TokenBucket { width, capacity } => (width, capacity),
        };
        let room = u128::from(quota.get()) * u128::from(max_delay_ms) / u128::from(width.millis());
        let enlarged = u128::from(capacity.get()).saturating_add(room).min(u128::from(AMOUNT_MAX));
        let enlarged = u64::try_from(enlarged).ok().and_then(Quota::new)?;
        Some(Self { quota, width, capacity, enlarged, max_delay_ms })
    }

    /// The bucket that is spent from.
    pub fn enlarged(&self) -> Limit {
        Limit::token_bucket(self.quota, self.width, Some(self.enlarged))
    }

    /// What an outcome of the enlarged bucket means for the rule's own limit, and how long an admitted request has to
    /// wait. What remains is what may pass without waiting; an ask for nothing is told what is still owed. `now` is of
    /// the clock that the outcome came by.
    pub fn seen(&self, outcome: Outcome, now: Millis) -> (Outcome, u64) {
        let room = self.enlarged.get() - self.capacity.get();
        let own = Outcome {
            limit: outcome.limit.min(self.capacity.get()),
            remaining: outcome.remaining.saturating_sub(room),
            ..outcome
        };
        let short = room.saturating_sub(outcome.remaining);
        let waits = outcome.admitted() && short > 0;
        (own, if waits { self.delay_ms(short, outcome.reset.since(now)) } else { 0 })
    }

    /// Until the bucket holds its room again. That is as long before it is whole as its capacity takes to flow back,
    /// rounded down: a request may wait a millisecond too long, never one too short. A node with units in hand is
    /// better off than what it knows of the reset says, and waits for the whole units that it is short of.
    fn delay_ms(&self, short: u64, whole_in_ms: u64) -> u64 {
        let (width, quota) = (u128::from(self.width.millis()), u128::from(self.quota.get().max(1)));
        let capacity_ms = u128::from(self.capacity.get()) * width / quota;
        let by_reset = u128::from(whole_in_ms).saturating_sub(capacity_ms);
        let by_units = (u128::from(short) * width).div_ceil(quota);
        let longest = u128::from(self.max_delay_ms);
        u64::try_from(by_reset.min(by_units).min(longest)).unwrap_or(self.max_delay_ms)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Admission, Cost, State};

    const START: u64 = 1_700_000_000_123;

    fn quota(amount: u64) -> Quota {
        Quota::new(amount).unwrap()
    }

    fn width(ms: u64) -> Width {
        Width::from_millis(ms).unwrap()
    }

    fn limits() -> impl Strategy<Value = Limit> {
        let amounts = prop_oneof![1_u64..4, 4_u64..500];
        let widths = prop_oneof![1_u64..50, 900_u64..70_000, 3_600_000_u64..90_000_000];
        (amounts, widths, prop::option::of(1_u64..20), 0..4).prop_map(
            |(amount, ms, burst, kind)| match kind {
                0 => Limit::sliding_window(quota(amount), width(ms)),
                1 => Limit::fixed_window(quota(amount), Window::Aligned(width(ms))),
                2 => Limit::sliding_log(quota(amount), width(ms)).unwrap(),
                _ => Limit::token_bucket(quota(amount), width(ms), burst.map(quota)),
            },
        )
    }

    /// A limit, a longest wait of up to some refills of it, and asks close enough together to have to wait.
    fn cases() -> impl Strategy<Value = (Limit, u64, Vec<(u64, u64)>)> {
        limits().prop_flat_map(|limit| {
            let throttle = Throttle::new(limit, 0).unwrap();
            let token_ms = throttle.width.millis() / throttle.quota.get() + 1;
            let asks = prop::collection::vec((0..token_ms * 2, 0_u64..4), 1..40);
            (Just(limit), 0..token_ms * 12, asks)
        })
    }

    /// Every ask with the outcome that the rule shows and its delay.
    fn play(throttle: &Throttle, asks: &[(u64, u64)]) -> Vec<(Millis, Cost, Outcome, u64)> {
        let enlarged = throttle.enlarged();
        let mut state = State::fresh(&enlarged);
        let mut now = Millis(START);
        let mut played = Vec::new();
        for (advance_ms, cost) in asks {
            now = now + *advance_ms;
            let cost = Cost::new(*cost).unwrap();
            let (outcome, next) = state.spend(&enlarged, cost, now);
            state = next;
            let (own, delay_ms) = throttle.seen(outcome, now);
            played.push((now, cost, own, delay_ms));
        }
        played
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(10_000) })]

        #[test]
        fn nobody_waits_longer_than_the_longest_wait_and_a_refused_request_not_at_all(
            (limit, max_delay_ms, asks) in cases(),
        ) {
            let throttle = Throttle::new(limit, max_delay_ms).unwrap();
            for (_, _, own, delay_ms) in play(&throttle, &asks) {
                prop_assert!(delay_ms <= max_delay_ms);
                prop_assert!(own.admitted() || delay_ms == 0);
            }
        }

        /// The promise of a throttle: requests that wait as told arrive as the bucket of the rule's own limit admits.
        #[test]
        fn what_is_sent_after_its_delay_never_exceeds_the_rate_and_the_burst(
            (limit, max_delay_ms, asks) in cases(),
        ) {
            let throttle = Throttle::new(limit, max_delay_ms).unwrap();
            let admitted = play(&throttle, &asks).into_iter().filter(|(_, _, own, _)| own.admitted());
            let mut sent: Vec<(u64, u128)> = admitted
                .map(|(now, cost, _, delay_ms)| (now.0 + delay_ms, u128::from(cost.get())))
                .collect();
            sent.sort_unstable();
            let per_ms = u128::from(throttle.quota.get());
            for from in 0..sent.len() {
                let mut units = 0;
                for (at, cost) in &sent[from..] {
                    units += cost * u128::from(throttle.width.millis());
                    // One ask may be larger than the burst; it goes when the bucket is level again.
                    let burst = u128::from(throttle.capacity.get().max(3));
                    // A millisecond at each end is lost to whole milliseconds.
                    let flowed = u128::from(at - sent[from].0 + 2) * per_ms;
                    prop_assert!(units <= burst * u128::from(throttle.width.millis()) + flowed);
                }
            }
        }

        #[test]
        fn what_remains_passes_without_waiting_and_one_more_does_not(
            (limit, max_delay_ms, asks) in cases(),
        ) {
            let throttle = Throttle::new(limit, max_delay_ms).unwrap();
            let enlarged = throttle.enlarged();
            let mut state = State::fresh(&enlarged);
            let mut now = Millis(START);
            for (advance_ms, cost) in asks {
                now = now + advance_ms;
                let (outcome, next) = state.spend(&enlarged, Cost::new(cost).unwrap(), now);
                state = next;
                let (own, delay_ms) = throttle.seen(outcome, now);
                prop_assert!(own.remaining <= own.limit);
                prop_assert!(delay_ms == 0 || own.remaining == 0);
                let ask = |cost| throttle.seen(state.probe(&enlarged, Cost::new(cost).unwrap(), now), now);
                if own.remaining > 0 {
                    let (all, all_delay_ms) = ask(own.remaining);
                    prop_assert!(all.admitted() && all_delay_ms == 0);
                }
                let (more, more_delay_ms) = ask(own.remaining + 1);
                prop_assert!(!more.admitted() || more_delay_ms > 0);
            }
        }

        #[test]
        fn a_wait_is_never_more_than_a_millisecond_longer_than_the_bucket_needs(
            (limit, max_delay_ms, asks) in cases(),
        ) {
            let throttle = Throttle::new(limit, max_delay_ms).unwrap();
            let (unit, per_ms) = (i128::from(throttle.width.millis()), i128::from(throttle.quota.get()));
            let capacity = i128::from(throttle.capacity.get()) * unit;
            // The rule's own bucket, which may owe; in parts of a token, exactly.
            let mut level = capacity;
            let mut last = Millis(START);
            for (now, cost, own, delay_ms) in play(&throttle, &asks) {
                level = (level + i128::from(now.since(last)) * per_ms).min(capacity);
                last = now;
                if own.admitted() {
                    level -= i128::from(cost.get()) * unit;
                    let needed = u64::try_from((-level).max(0)).unwrap().div_ceil(u64::try_from(per_ms).unwrap());
                    // A peek waits for nobody, but shows what one who asks for something would wait at least.
                    prop_assert!(cost == Cost::PEEK || (needed..=needed + 1).contains(&delay_ms),
                        "needs {needed} ms, is told {delay_ms}");
                }
            }
        }
    }

    #[test]
    fn a_calendar_month_cannot_be_throttled_and_a_day_can() {
        assert_eq!(Throttle::new(Limit::fixed_window(quota(5), Window::Month), 1000), None);
        let day = Throttle::new(Limit::fixed_window(quota(24), Window::Day), 7_200_000).unwrap();
        assert_eq!(day.enlarged(), Limit::token_bucket(quota(24), width(DAY_MS), Some(quota(26))));
    }

    #[test]
    fn a_quota_of_zero_blocks_also_when_it_throttles() {
        let none = Throttle::new(Limit::sliding_window(quota(0), width(1000)), 60_000).unwrap();
        let state = State::fresh(&none.enlarged());
        let outcome = state.probe(&none.enlarged(), Cost::ONE, Millis(START));
        assert_eq!(none.seen(outcome, Millis(START)).0.admission, Admission::Never);
    }

    #[test]
    fn nothing_overflows_at_the_largest_amounts() {
        let most = Limit::token_bucket(quota(AMOUNT_MAX), width(1), Some(quota(AMOUNT_MAX)));
        let throttle = Throttle::new(most, u64::MAX).unwrap();
        let enlarged = throttle.enlarged();
        let cost = Cost::new(AMOUNT_MAX).unwrap();
        let (outcome, _) = State::fresh(&enlarged).spend(&enlarged, cost, Millis(START));
        assert!(throttle.seen(outcome, Millis(START)).0.admitted());
    }
}
