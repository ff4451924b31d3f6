//! How much of a cell this node uses: what decides how large a lease it asks for.

/// Spending by windows, the current one and the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pace {
    pub(super) win: u64,
    pub(super) spent: u64,
    pub(super) before: u64,
}

// === impl Pace ===

impl Pace {
    pub(super) fn spend(&mut self, units: u64) {
        self.spent = self.spent.saturating_add(units);
    }

    /// Also back: a node whose clock is ahead takes a later window for this one until the origin has told it the time, and
    /// must not add up all windows until then.
    pub(super) fn turn_to(&mut self, win: u64, width: u64) {
        if win == self.win {
            return;
        }
        let next = win > self.win && win - self.win <= width;
        (self.before, self.spent) = (if next { self.spent } else { 0 }, 0);
        self.win = win;
    }

    /// What it will soon want: as much again as it used so far, so that leases double.
    pub(super) fn demand(&self) -> u64 {
        self.spent.max(self.before / 20)
    }

    /// Has it used so much in one of the two windows, and anything in this one?
    pub(super) fn is_at_least(&self, units: u64) -> bool {
        self.spent > 0 && self.most() >= units
    }

    /// Is what it uses in a window more than a guess?
    pub(super) fn is_known(&self) -> bool {
        self.before > 0
    }

    /// What it uses until the window ends, of which so much is left: by this window, or by the one before.
    pub(super) fn until_end(&self, left: u64, width: u64) -> u64 {
        let past = width.saturating_sub(left).max(1);
        let rate = |units: u64, per: u64| u128::from(units) * u128::from(left) / u128::from(per);
        let rest = rate(self.spent, past).max(rate(self.before, width.max(1)));
        u64::try_from(rest).unwrap_or(u64::MAX)
    }

    /// The more of the two windows.
    pub(super) fn most(&self) -> u64 {
        self.spent.max(self.before)
    }

    /// What it uses in so many milliseconds, about.
    pub(super) fn within(&self, ms: u64, width: u64) -> u64 {
        self.most().saturating_mul(ms) / width.max(ms)
    }
}
