//! A calendar month in UTC, as partitions and archives are cut by it.

use std::fmt;

use crate::Millis;
use crate::calendar::{DAY_MS, days_before, next_month, year_and_month};

/// Printed as `202611`, which sorts as it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month {
    year: u64,
    month: u64,
}

// === impl Month ===

impl Month {
    /// The month that holds this moment.
    pub fn of(now: Millis) -> Self {
        let (year, month) = year_and_month(now.0 / DAY_MS);
        Self { year, month }
    }

    /// From how it is printed; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_digit());
        let (year, month) = (text.get(..4)?.parse().ok()?, text.get(4..)?.parse().ok()?);
        (digits && year >= 1970 && (1..=12).contains(&month)).then_some(Self { year, month })
    }

    pub fn year(self) -> u64 {
        self.year
    }

    /// From 1 to 12.
    pub fn month(self) -> u64 {
        self.month
    }

    #[must_use]
    pub fn next(self) -> Self {
        let (year, month) = next_month(self.year, self.month);
        Self { year, month }
    }

    /// Its first millisecond.
    pub fn start(self) -> Millis {
        Millis(days_before(self.year, self.month) * DAY_MS)
    }

    /// The first millisecond after it.
    pub fn end(self) -> Millis {
        self.next().start()
    }
}

impl fmt::Display for Month {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:04}{:02}", self.year, self.month)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_is_in_the_month_that_is_printed_for_it() {
        for (at, printed) in [
            (0, "197001"),
            (1_709_251_199_999, "202402"),
            (1_709_251_200_000, "202403"),
            (1_798_761_599_999, "202612"),
            (1_798_761_600_000, "202701"),
        ] {
            let month = Month::of(Millis(at));
            assert_eq!(month.to_string(), printed);
            assert!(month.start().0 <= at && at < month.end().0, "{at}");
            assert_eq!(Month::parse(printed), Some(month));
        }
    }

    #[test]
    fn what_is_no_month_is_not_read_as_one() {
        for text in ["", "20261", "202613", "202600", "2026-1", "+20261", "0202611", "196912"] {
            assert_eq!(Month::parse(text), None, "{text}");
        }
    }
}
