//! Points in the past as people write them: `2h` ago, or unix milliseconds.

use crate::moment;
use crate::window::length_ms;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Since(u64);

impl Since {
    pub(crate) fn unix_ms(self) -> u64 {
        self.0
    }
}

impl std::str::FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected a time ago, such as 2h or 30d, or unix milliseconds";
        if let Ok(at) = text.parse::<u64>() {
            return Ok(Self(at));
        }
        let ago = length_ms(text).map_err(|_| EXPECTED)?.ok_or(EXPECTED)?;
        Ok(Self(moment::now_ms().saturating_sub(ago)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_ago_and_unix_milliseconds_are_both_understood() {
        let hour: Since = "1h".parse().unwrap_or(Since(0));
        assert!(hour.unix_ms().abs_diff(moment::now_ms() - 3_600_000) < 60_000);
        assert_eq!("1700000000000".parse(), Ok(Since(1_700_000_000_000)));
        for refused in ["", "yesterday", "-1d", "1y"] {
            assert!(refused.parse::<Since>().is_err(), "{refused}");
        }
    }
}
