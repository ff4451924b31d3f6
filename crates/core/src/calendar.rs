//! Windows of a fixed-window limit: epoch-aligned widths, and calendar days and months in UTC.
//! No time zones, no leap seconds: unix time has neither.

use crate::{Millis, Width};

pub(crate) const DAY_MS: u64 = 86_400_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Window {
    Aligned(Width),
    /// 00:00 to 24:00 UTC.
    Day,
    /// The first to the last day of a month, UTC.
    Month,
}

// === impl Window ===

impl Window {
    /// Start (inclusive) and end (exclusive) of the window that holds `now`.
    pub fn bounds(self, now: Millis) -> (Millis, Millis) {
        match self {
            Self::Aligned(width) => {
                let start = width.start_of(now);
                (start, start + width.millis())
            }
            Self::Day => {
                let start = Millis(now.0 - now.0 % DAY_MS);
                (start, start + DAY_MS)
            }
            Self::Month => month_bounds(now),
        }
    }
}

fn month_bounds(now: Millis) -> (Millis, Millis) {
    let (year, month) = year_and_month(now.0 / DAY_MS);
    let (next_year, next) = next_month(year, month);
    let start = days_before(year, month) * DAY_MS;
    let end = days_before(next_year, next) * DAY_MS;
    (Millis(start), Millis(end))
}

pub(crate) fn next_month(year: u64, month: u64) -> (u64, u64) {
    if month == 12 { (year + 1, 1) } else { (year, month + 1) }
}

/// Days from 1970-01-01 to the first of this month. Years count from March, so that the
/// leap day is the last of its year and month lengths follow one line (153/5).
pub(crate) fn days_before(year: u64, month: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let leap_days = year / 4 - year / 100 + year / 400;
    year * 365 + leap_days + (153 * month_from_march + 2) / 5 - DAYS_TO_1970
}

/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: u64 = 719_468;

/// Days from 1970-01-01 to this date.
pub(crate) fn day_of(year: u64, month: u64, day: u64) -> u64 {
    days_before(year, month) + day - 1
}

pub(crate) fn year_month_day(day: u64) -> (u64, u64, u64) {
    let (year, month) = year_and_month(day);
    (year, month, day - days_before(year, month) + 1)
}

/// The inverse of [`days_before`], by eras of 400 years (146,097 days).
pub(crate) fn year_and_month(day: u64) -> (u64, u64) {
    let day = day + DAYS_TO_1970;
    let era = day / 146_097;
    let day_of_era = day % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length_of(year: u64, month: u64) -> u64 {
        let leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    #[test]
    fn every_month_from_1970_to_2100_starts_where_the_last_one_ended() {
        let mut start = 0;
        for year in 1970..=2100 {
            for month in 1..=12 {
                let end = start + length_of(year, month) * DAY_MS;
                for now in [start, start + DAY_MS, end - 1] {
                    assert_eq!(
                        Window::Month.bounds(Millis(now)),
                        (Millis(start), Millis(end)),
                        "{year}-{month}"
                    );
                }
                start = end;
            }
        }
    }

    #[test]
    fn a_day_runs_from_midnight_to_midnight_utc() {
        let noon = Millis(1_700_000_000_000);
        let (start, end) = Window::Day.bounds(noon);
        assert_eq!((start.0 % DAY_MS, end.since(start)), (0, DAY_MS));
        assert!(start <= noon && noon < end);
    }
}
