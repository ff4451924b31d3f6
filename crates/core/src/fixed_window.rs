//! Fixed window: one counter that starts again at every window's start.
//! Pure arithmetic. It never reads a clock; `now` comes in, the new state goes out.

use crate::outcome::weigh;
use crate::{Cost, Millis, Outcome, Quota, Window};

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
