//! Windows as people write them: `500ms`, `10s`, `1m`, `1h`, `30d`. Exact integers only, never fractions.

use tollkeeper_client::wire::ratelimit::DURATION_MS;

/// A length of time in milliseconds, within what the API takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window(u64);

impl Window {
    pub(crate) fn millis(self) -> u64 {
        self.0
    }
}

impl std::str::FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let millis = length_ms(text)?.filter(|millis| DURATION_MS.holds(*millis));
        millis.map(Self).ok_or_else(|| "expected a window from 1s to 30d".to_owned())
    }
}

/// A length of time as people write it, in milliseconds; nothing where it is too long to count.
pub(crate) fn length_ms(text: &str) -> Result<Option<u64>, String> {
    let expected = "expected an integer and a unit (ms, s, m, h, d), such as 30s, 1m or 24h";
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).ok_or(expected)?;
    let (count, unit) = text.split_at(unit_at);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(expected.to_owned()),
    };
    let count: u64 = if count.is_empty() { None } else { count.parse().ok() }.ok_or(expected)?;
    Ok(count.checked_mul(unit_ms))
}

/// A length of time as people read it, in its two largest units.
pub(crate) fn spoken(millis: u64) -> String {
    const UNITS: [(u64, &str); 5] =
        [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")];
    let Some(first) = UNITS.iter().position(|(size, _)| millis >= *size) else {
        return "0ms".to_owned();
    };
    let mut rest = millis;
    let mut parts = Vec::new();
    for (size, unit) in UNITS.iter().skip(first).take(2) {
        if rest >= *size {
            parts.push(format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::{Window, spoken};

    #[test]
    fn every_unit_is_understood() {
        let cases = [
            ("1000ms", 1_000),
            ("1s", 1_000),
            ("1m", 60_000),
            ("1h", 3_600_000),
            ("30d", 2_592_000_000),
        ];
        for (text, millis) in cases {
            assert_eq!(text.parse::<Window>().map(Window::millis), Ok(millis), "{text}");
        }
    }

    #[test]
    fn what_is_not_an_exact_window_in_range_is_refused() {
        for text in [
            "",
            "1",
            "m",
            "1.5h",
            "-1s",
            "1 m",
            "1mo",
            "1M",
            "0s",
            "999ms",
            "31d",
            "99999999999999999999d",
            "213503982335d",
            "1s ",
            "１s",
        ] {
            assert!(text.parse::<Window>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn lengths_are_spoken_in_two_units() {
        let cases = [
            (0, "0ms"),
            (250, "250ms"),
            (1_500, "1s 500ms"),
            (60_000, "1m"),
            (90_061_001, "1d 1h"),
            (86_400_500, "1d"),
        ];
        for (millis, words) in cases {
            assert_eq!(spoken(millis), words);
        }
    }
}
