//! Usage as it is counted: four totals of one process for one key in one minute. Totals only grow, so of two reports about
//! the same minute the larger one is the newer one, and hearing one twice changes nothing.
//! Pure arithmetic. It knows no store, no Redis and no clock.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::Millis;
use crate::calendar::{DAY_MS, day_of, year_month_day};

const MINUTE_MS: u64 = 60_000;

/// A minute of UTC, counted from 1970: what usage is counted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Minute(pub u32);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Usage {
    /// Admitted ones.
    pub requests: u64,
    pub denied: u64,
    pub bytes: u64,
    pub credits: u64,
}

/// What one process says of one key and minute, in total. An empty key id stands for all keys of the project for which
/// there was no room of their own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Component {
    pub minute: Minute,
    pub boot: [u8; 16],
    pub project_id: Arc<str>,
    pub key_id: Arc<str>,
    pub usage: Usage,
}

// === impl Minute ===

impl Minute {
    pub fn of(now: Millis) -> Self {
        Self(u32::try_from(now.0 / MINUTE_MS).unwrap_or(u32::MAX))
    }

    pub fn start(self) -> Millis {
        Millis(u64::from(self.0) * MINUTE_MS)
    }

    pub fn end(self) -> Millis {
        self.start() + MINUTE_MS
    }

    /// `YYYY-MM-DD`, UTC.
    pub fn date(self) -> String {
        date_text(self.start())
    }

    /// `YYYYMMDDHHmm`, UTC: as buckets are named.
    pub fn name(self) -> String {
        let (year, month, day) = year_month_day(self.start().0 / DAY_MS);
        let of_day = self.0 % 1_440;
        format!("{year:04}{month:02}{day:02}{:02}{:02}", of_day / 60, of_day % 60)
    }
}

/// `YYYY-MM-DD`, UTC.
pub fn date_text(at: Millis) -> String {
    let (year, month, day) = year_month_day(at.0 / DAY_MS);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The start of a day that is spelled `YYYY-MM-DD`.
pub fn date_start(text: &str) -> Option<Millis> {
    let mut parts = text.split('-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let sane = (1970..=9999).contains(&year) && (1..=12).contains(&month) && parts.next().is_none();
    let start = sane.then(|| Millis(day_of(year, month, day.max(1)) * DAY_MS))?;
    (date_text(start) == text).then_some(start)
}

// === impl Usage ===

impl Usage {
    pub fn request() -> Self {
        Self { requests: 1, ..Self::default() }
    }

    pub fn denial() -> Self {
        Self { denied: 1, ..Self::default() }
    }

    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The larger of each.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            requests: self.requests.max(other.requests),
            denied: self.denied.max(other.denied),
            bytes: self.bytes.max(other.bytes),
            credits: self.credits.max(other.credits),
        }
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            denied: self.denied.saturating_add(other.denied),
            bytes: self.bytes.saturating_add(other.bytes),
            credits: self.credits.saturating_add(other.credits),
        }
    }

    /// At least as much of each.
    pub fn covers(&self, other: &Self) -> bool {
        self.max(*other) == *self
    }
}

// === impl Component ===

impl Component {
    /// Whose it is: reports of the same minute, process and key are about the same thing.
    pub fn is_about(&self, other: &Self) -> bool {
        self.minute == other.minute
            && self.boot == other.boot
            && self.project_id == other.project_id
            && self.key_id == other.key_id
    }

    pub fn boot_text(&self) -> String {
        boot_text(self.boot)
    }
}

/// A process' id as 32 hex digits.
pub fn boot_text(boot: [u8; 16]) -> String {
    boot.iter().fold(String::with_capacity(32), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The inverse of [`boot_text`].
pub fn boot_of_text(text: &str) -> Option<[u8; 16]> {
    let sane = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = sane.then(|| u128::from_str_radix(text, 16).ok()).flatten()?;
    Some(number.to_be_bytes())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_minute_is_named_by_its_moment_in_utc() {
        for (at, name, date) in [
            (0, "197001010000", "1970-01-01"),
            (951_868_799_999, "200002292359", "2000-02-29"),
            (1_700_000_000_000, "202311142213", "2023-11-14"),
            (4_102_444_800_000, "210001010000", "2100-01-01"),
        ] {
            let minute = Minute::of(Millis(at));
            assert_eq!((minute.name().as_str(), minute.date().as_str()), (name, date));
            assert!(minute.start().0 <= at && at < minute.end().0);
        }
    }

    #[test]
    fn every_date_is_read_back_and_nothing_else_is_a_date() {
        for day in 0..60_000 {
            let start = Millis(day * DAY_MS);
            assert_eq!(date_start(&date_text(start)), Some(start));
        }
        for wrong in ["", "2026-13-01", "2026-02-30", "2026-1-1", "1969-12-31", "2026-01-01-", "x"]
        {
            assert_eq!(date_start(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_boot_is_read_back_as_it_was_written() {
        for boot in [[0; 16], [255; 16], [7; 16]] {
            assert_eq!(boot_of_text(&boot_text(boot)), Some(boot));
        }
        assert_eq!(boot_of_text("+0000000000000000000000000000000"), None);
    }

    #[test]
    fn the_larger_of_two_totals_covers_both() {
        let (a, b) = (Usage { requests: 3, denied: 1, ..Usage::default() }, Usage::request());
        assert!(a.max(b).covers(&a) && a.max(b).covers(&b));
        assert!(a.covers(&b) && !b.covers(&a));
    }
}
