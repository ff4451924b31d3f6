//! When credits come back: every day at midnight UTC, or every month on a day, the last one where a month is shorter.
//! Pure calendar; who refills and when is somebody else's part.

use crate::Millis;
use crate::calendar::{DAY_MS, days_before, next_month, year_and_month};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefillEvery {
    Day,
    /// On this day of the month, 1 to 31.
    Month {
        on: u8,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditRefill {
    pub every: RefillEvery,
    /// What the balance is brought up to.
    pub amount: u64,
}

// === impl RefillEvery ===

impl RefillEvery {
    /// The last moment at or before `now` at which credits were due.
    pub fn last_due(self, now: Millis) -> Millis {
        match self {
            Self::Day => Millis(now.0 - now.0 % DAY_MS),
            Self::Month { on } => {
                let (year, month) = year_and_month(now.0 / DAY_MS);
                let this = due_in(year, month, on);
                if this <= now {
                    return this;
                }
                let (year, month) = if month == 1 { (year - 1, 12) } else { (year, month - 1) };
                due_in(year, month, on)
            }
        }
    }
}

fn due_in(year: u64, month: u64, on: u8) -> Millis {
    let (next_year, next) = next_month(year, month);
    let first = days_before(year, month);
    let length = days_before(next_year, next) - first;
    Millis((first + u64::from(on.max(1)).min(length) - 1) * DAY_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2024-02-29 12:00 UTC.
    const LEAP_NOON: u64 = 1_709_208_000_000;

    #[test]
    fn a_day_is_due_at_midnight() {
        assert_eq!(RefillEvery::Day.last_due(Millis(LEAP_NOON)).0, LEAP_NOON - DAY_MS / 2);
    }

    #[test]
    fn a_shorter_month_is_due_on_its_last_day() {
        let month = RefillEvery::Month { on: 31 };
        assert_eq!(month.last_due(Millis(LEAP_NOON)).0, LEAP_NOON - DAY_MS / 2);
        // The day before, January's 31st was the last.
        assert_eq!(
            month.last_due(Millis(LEAP_NOON - DAY_MS)).0,
            LEAP_NOON - DAY_MS / 2 - 29 * DAY_MS
        );
    }

    #[test]
    fn what_was_due_is_never_in_the_future_and_never_more_than_31_days_ago() {
        for on in [1, 15, 28, 29, 30, 31] {
            for day in 0..3000_u64 {
                let now = Millis(LEAP_NOON + day * DAY_MS);
                let due = RefillEvery::Month { on }.last_due(now);
                assert!(due <= now && now.since(due) <= 31 * DAY_MS, "{on} {day}");
            }
        }
    }
}
