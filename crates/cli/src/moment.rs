//! Points in time between people and the API: `30d` from now or unix milliseconds in, a date or a distance out.
//! Scripts always get unix milliseconds.

use tollkeeper_client::wire::keys::EXPIRES;

use crate::output;
use crate::window::{length_ms, spoken};

const DAY_MS: u64 = 86_400_000;

/// When something ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) fn unix_ms(self) -> u64 {
        self.0
    }
}

impl std::str::FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let at = match text.parse::<u64>() {
            Ok(at) => Some(at),
            Err(_) => length_ms(text)
                .map_err(|_| "expected a time from now, such as 12h or 30d, or unix milliseconds")?
                .and_then(|length| now_ms().checked_add(length)),
        };
        at.filter(|at| EXPIRES.holds(*at))
            .map(Self)
            .ok_or_else(|| "expected a time before the year 2100".to_owned())
    }
}

/// A point in time: the date for people, unix milliseconds for scripts, nothing where there is none.
pub(crate) fn shown(at_ms: Option<u64>) -> String {
    match at_ms {
        None => String::new(),
        Some(at) if output::is_terminal() => date(at),
        Some(at) => at.to_string(),
    }
}

/// The same to the second, for what happens many times a minute.
pub(crate) fn shown_exactly(at_ms: u64) -> String {
    if output::is_terminal() { date_and_second(at_ms) } else { at_ms.to_string() }
}

/// A point in time that matters by its distance.
pub(crate) fn ahead(at_ms: u64) -> String {
    if output::is_terminal() {
        format!("in {}", spoken(at_ms.saturating_sub(now_ms())))
    } else {
        at_ms.to_string()
    }
}

fn date(at_ms: u64) -> String {
    let (year, month, day) = civil(at_ms / DAY_MS);
    let minutes = at_ms % DAY_MS / 60_000;
    format!("{year}-{month:02}-{day:02} {:02}:{:02}Z", minutes / 60, minutes % 60)
}

fn date_and_second(at_ms: u64) -> String {
    let minute = date(at_ms);
    format!("{}:{:02}Z", minute.trim_end_matches('Z'), at_ms % 60_000 / 1_000)
}

/// The proleptic Gregorian date of a day since 1970, by eras of 400 years that begin in March.
fn civil(day: u64) -> (u64, u64, u64) {
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, of_month)
}

#[allow(
    clippy::disallowed_methods,
    reason = "only what a person writes or reads relative to now; nothing is decided by it"
)]
pub(crate) fn now_ms() -> u64 {
    let since =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Moment, date, date_and_second, now_ms};

    #[test]
    fn dates_hold_across_leap_years_and_centuries() {
        let cases = [
            (0, "1970-01-01 00:00Z"),
            (951_782_399_000, "2000-02-28 23:59Z"),
            (951_782_400_000, "2000-02-29 00:00Z"),
            (1_735_689_600_000, "2025-01-01 00:00Z"),
            (4_102_444_800_000, "2100-01-01 00:00Z"),
        ];
        for (at, text) in cases {
            assert_eq!(date(at), text);
        }
        assert_eq!(date_and_second(951_782_399_999), "2000-02-28 23:59:59Z");
        assert_eq!(date_and_second(5_000), "1970-01-01 00:00:05Z");
    }

    #[test]
    fn a_moment_is_a_distance_from_now_or_unix_milliseconds() {
        let soon: Moment = "1h".parse().unwrap_or(Moment(0));
        assert!(soon.unix_ms().abs_diff(now_ms() + 3_600_000) < 60_000);
        assert_eq!("1700000000000".parse(), Ok(Moment(1_700_000_000_000)));
        for refused in ["", "tomorrow", "-1d", "1y", "4102444800001", "99999999999999999999d"] {
            assert!(refused.parse::<Moment>().is_err(), "{refused}");
        }
    }
}
