//! Fixed window: one counter that starts again at every window's start.
//! Pure arithmetic. It never reads a clock; `now` comes in, the new state goes out.

use crate::outcome::weigh;
use crate::{Cost, Millis, Outcome, Quota, Width, Window};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedWindow {
    pub start: Millis,
    pub used: u64,
}

// === impl FixedWindow ===

impl FixedWindow {
    pub fn spend(self, quota: Quota, window: Window, cost: Cost, now: Millis) -> (Outcome, Self) {
        let rolled = self.rolled(window, now);
        let outcome = rolled.outcome(quota, window, cost);
        let used = rolled.used + if outcome.admitted() { cost.get() } else { 0 };
        (outcome, Self { used, ..rolled })
    }

    /// [`FixedWindow::spend`] where it is shortest: a window of this width goes on. `None` where it does not, and nothing is
    /// changed.
    #[inline]
    pub fn go_on(
        &mut self,
        quota: Quota,
        width: Width,
        cost: Cost,
        now: Millis,
    ) -> Option<Outcome> {
        let end = self.start + width.millis();
        if now >= end {
            return None;
        }
        let free = quota.get().saturating_sub(self.used);
        let outcome = weigh(cost.get(), quota.get(), free, end, || end);
        if outcome.admitted() {
            self.used += cost.get();
        }
        Some(outcome)
    }

    pub fn probe(&self, quota: Quota, window: Window, cost: Cost, now: Millis) -> Outcome {
        self.rolled(window, now).outcome(quota, window, cost)
    }

    /// The moment from which this state is no different from a fresh one.
    pub fn idle_at(&self, window: Window) -> Millis {
        if self.used == 0 { self.start } else { window.bounds(self.start).1 }
    }

    fn rolled(self, window: Window, now: Millis) -> Self {
        let (start, _) = window.bounds(now);
        // A clock behind the newest window it has shown stays in that window: going back refills nothing.
        if start <= self.start { self } else { Self { start, used: 0 } }
    }

    fn outcome(&self, quota: Quota, window: Window, cost: Cost) -> Outcome {
        let (_, end) = window.bounds(self.start);
        let free = quota.get().saturating_sub(self.used);
        weigh(cost.get(), quota.get(), free, end, || end)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn the_short_step_is_the_long_one_wherever_a_window_goes_on_and_nothing_elsewhere(
            (start, used) in (0..50_u64, 0..70_u64),
            (quota, cost, now) in (0..60_u64, 0..12_u64, 0..5_000_u64),
        ) {
            let width = Width::from_millis(100).unwrap();
            let (quota, cost) = (Quota::new(quota).unwrap(), Cost::new(cost).unwrap());
            let before = FixedWindow { start: Millis(start * 100), used };
            let now = Millis(now);
            let (outcome, next) = before.spend(quota, Window::Aligned(width), cost, now);
            let mut window = before;
            if let Some(stepped) = window.go_on(quota, width, cost, now) {
                prop_assert_eq!((stepped, window), (outcome, next));
            } else {
                prop_assert_eq!(window, before);
                prop_assert!(now >= before.start + width.millis());
            }
        }
    }
}
