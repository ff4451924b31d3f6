//! How much of a cell this node uses: what decides how large a lease it asks for.

/// Spending by windows, the current one and the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pace {
    win: u64,
    spent: u64,
    before: u64,
}

// === impl Pace ===

impl Pace {
    pub(super) fn spend(&mut self, units: u64) {
        self.spent = self.spent.saturating_add(units);
    }

    pub(super) fn turn_to(&mut self, win: u64, width: u64) {
        if win <= self.win {
            return;
        }
        let next = win - self.win <= width;
        (self.before, self.spent) = (if next { self.spent } else { 0 }, 0);
        self.win = win;
    }

    /// What it will soon want: as much again as it used so far, so that leases double.
    pub(super) fn demand(&self) -> u64 {
        self.spent.max(self.before / 20)
    }

    /// The more of the two windows.
    pub(super) fn most(&self) -> u64 {
        self.spent.max(self.before)
    }

    /// What it uses in 50 ms, about.
    pub(super) fn in_50_ms(&self, width: u64) -> u64 {
        self.most().saturating_mul(50) / width.max(50)
    }
}
