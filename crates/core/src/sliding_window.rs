//! Sliding window from two counters: the current window plus the fading share of the previous one.
//! Pure arithmetic. It never reads a clock; `now` comes in, the new state goes out.

use crate::outcome::weigh;
use crate::{Cost, Millis, Outcome, Quota, Width};

/// The previous window fades in 2^20 steps, rounded against the caller. Steps of a power of two
/// keep every product exact, here in 128 bits and in Redis in two halves below 2^53.
const STEPS_LOG2: u32 = 20;
const STEPS: u64 = 1 << STEPS_LOG2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlidingWindow {
    pub start: Millis,
    pub used: u64,
    pub previous: u64,
}

// === impl SlidingWindow ===

impl SlidingWindow {
    pub fn spend(self, quota: Quota, width: Width, cost: Cost, now: Millis) -> (Outcome, Self) {
        let rolled = self.rolled(width, now);
        let outcome = rolled.outcome(quota, width, cost, now);
        let used = rolled.used + if outcome.admitted() { cost.get() } else { 0 };
        (outcome, Self { used, ..rolled })
    }

    /// [`SlidingWindow::spend`] where it is shortest: the window goes on. `None` where it does not, and nothing is changed.
    #[inline]
    pub fn go_on(
        &mut self,
        quota: Quota,
        width: Width,
        cost: Cost,
        now: Millis,
    ) -> Option<Outcome> {
        if now >= self.start + width.millis() {
            return None;
        }
        let outcome = self.outcome(quota, width, cost, now);
        if outcome.admitted() {
            self.used += cost.get();
        }
        Some(outcome)
    }

    pub fn probe(&self, quota: Quota, width: Width, cost: Cost, now: Millis) -> Outcome {
        self.rolled(width, now).outcome(quota, width, cost, now)
    }

    /// The moment from which this state is no different from a fresh one.
    #[inline]
    pub fn idle_at(&self, width: Width) -> Millis {
        match (self.used, self.previous) {
            (0, 0) => self.start,
            (0, _) => self.start + width.millis(),
            _ => self.start + 2 * width.millis(),
        }
    }

    /// What counts against the quota at `now`: this window, and what is left of the previous one.
    pub fn counted(&self, width: Width, now: Millis) -> u64 {
        let rolled = self.rolled(width, now);
        rolled.used + carried(rolled.previous, now.since(rolled.start), width)
    }

    fn rolled(self, width: Width, now: Millis) -> Self {
        // A clock behind the newest window it has shown stays in that window: going back refills nothing. Most steps end here,
        // and without a division.
        if now < self.start + width.millis() {
            return self;
        }
        let start = width.start_of(now);
        if start == self.start + width.millis() {
            Self { start, used: 0, previous: self.used }
        } else {
            Self { start, used: 0, previous: 0 }
        }
    }

    #[inline]
    fn outcome(&self, quota: Quota, width: Width, cost: Cost, now: Millis) -> Outcome {
        let counted = self.used + carried(self.previous, now.since(self.start), width);
        let free = quota.get().saturating_sub(counted);
        let end = self.start + width.millis();
        weigh(cost.get(), quota.get(), free, end, || self.fits_at(quota, width, cost))
    }

    /// When `cost` (at most the quota) fits, if nobody else spends: in this window once enough of
    /// the previous one has faded, else in the next, where this window is the fading one. Never inlined: what divides would
    /// take the registers of those who have room.
    #[inline(never)]
    fn fits_at(&self, quota: Quota, width: Width, cost: Cost) -> Millis {
        let room_next = quota.get() - cost.get();
        let in_this =
            room_next.checked_sub(self.used).and_then(|room| faded_to(room, self.previous, width));
        if let Some(elapsed) = in_this {
            return self.start + elapsed;
        }
        let next = self.start + width.millis();
        // Where even the next window has no room before its end, the one after it has all.
        next + faded_to(room_next, self.used, width).unwrap_or(width.millis())
    }
}

/// What is left of `previous` after `elapsed` of the current window, rounded up.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the result is at most `previous`")]
fn carried(previous: u64, elapsed: u64, width: Width) -> u64 {
    if previous == 0 {
        return 0;
    }
    let faded = (elapsed.min(width.millis()) << STEPS_LOG2) / width.millis();
    let left = u128::from(previous) * u128::from(STEPS - faded);
    ((left + u128::from(STEPS - 1)) >> STEPS_LOG2) as u64
}

/// The least elapsed time at which no more than `room` of `previous` is left;
/// `None` when that needs the whole window.
fn faded_to(room: u64, previous: u64, width: Width) -> Option<u64> {
    if previous <= room {
        return Some(0);
    }
    let steps = STEPS - share(room, previous);
    let elapsed = (steps * width.millis()).div_ceil(STEPS);
    (elapsed < width.millis()).then_some(elapsed)
}

/// How many steps of `previous` are left when no more than `room` of it is, which is less. All but absurd amounts fit into 64
/// bits, where a division is one instruction and no call.
#[allow(clippy::cast_possible_truncation, reason = "the result is below the steps of all")]
fn share(room: u64, previous: u64) -> u64 {
    match room.checked_mul(STEPS) {
        Some(steps) => steps / previous,
        None => ((u128::from(room) << STEPS_LOG2) / u128::from(previous)) as u64,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::AMOUNT_MAX;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn the_short_step_is_the_long_one_wherever_a_window_goes_on_and_nothing_elsewhere(
            (start, used, previous) in (0..50_u64, 0..30_u64, 0..30_u64),
            (quota, cost, now) in (0..60_u64, 0..12_u64, 0..5_000_u64),
        ) {
            let width = Width::from_millis(100).unwrap();
            let (quota, cost) = (Quota::new(quota).unwrap(), Cost::new(cost).unwrap());
            let before = SlidingWindow { start: Millis(start * 100), used, previous };
            let now = Millis(now);
            let (outcome, next) = before.spend(quota, width, cost, now);
            let mut window = before;
            if let Some(stepped) = window.go_on(quota, width, cost, now) {
                prop_assert_eq!((stepped, window), (outcome, next));
            } else {
                prop_assert_eq!(window, before);
                prop_assert!(now >= before.start + width.millis());
            }
        }

        #[test]
        fn what_is_left_of_a_window_is_divided_alike_in_few_bits_and_in_many(
            room in 0..AMOUNT_MAX,
            more in 1..AMOUNT_MAX,
            small in 0..60_u32,
        ) {
            let (room, more) = (room >> small, (more >> small).max(1));
            let previous = (room + more).min(AMOUNT_MAX);
            prop_assume!(room < previous);
            let exact = (u128::from(room) << STEPS_LOG2) / u128::from(previous);
            prop_assert_eq!(u128::from(share(room, previous)), exact);
        }
    }
}
