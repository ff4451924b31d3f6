//! Windows as people write them: `500ms`, `10s`, `1m`, `1h`, `30d`, and `1mo` for the calendar month in UTC.
//! Exact integers only, never fractions.

use std::fmt;
use std::str::FromStr;

use crate::{Width, Window};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowText {
    Width(Width),
    Month,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAWindow;

/// The largest first, as windows are spoken of.
const UNITS: [(u64, &str); 5] =
    [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")];

// === impl WindowText ===

impl WindowText {
    /// `None` for the month, which has no width of its own.
    pub fn width(self) -> Option<Width> {
        match self {
            Self::Width(width) => Some(width),
            Self::Month => None,
        }
    }

    /// As a fixed window counts it.
    pub fn window(self) -> Window {
        match self {
            Self::Width(width) => Window::Aligned(width),
            Self::Month => Window::Month,
        }
    }
}

impl FromStr for WindowText {
    type Err = NotAWindow;

    fn from_str(text: &str) -> Result<Self, NotAWindow> {
        if text == "1mo" {
            return Ok(Self::Month);
        }
        let unit_at = text.find(|c: char| !c.is_ascii_digit()).ok_or(NotAWindow)?;
        let (count, unit) = text.split_at(unit_at);
        let (size, _) = UNITS.iter().find(|(_, known)| *known == unit).ok_or(NotAWindow)?;
        let count: u64 = count.parse().map_err(|_| NotAWindow)?;
        let width = count.checked_mul(*size).and_then(Width::from_millis);
        width.map(Self::Width).ok_or(NotAWindow)
    }
}

/// In the largest unit that it is a whole number of: one window has one text, however it was written.
impl fmt::Display for WindowText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Width(width) = self else { return f.write_str("1mo") };
        let ms = width.millis();
        let whole = UNITS.iter().find(|(size, _)| ms.is_multiple_of(*size));
        let (size, unit) = whole.copied().unwrap_or((1, "ms"));
        write!(f, "{}{unit}", ms / size)
    }
}

impl fmt::Display for NotAWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "expected an integer and a unit (ms, s, m, h, d) of at most 10 years, such as 30s, 1m or 24h, or 1mo",
        )
    }
}

impl std::error::Error for NotAWindow {}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(text: &str) -> Option<u64> {
        text.parse::<WindowText>().ok()?.width().map(Width::millis)
    }

    #[test]
    fn every_unit_is_understood() {
        for (text, expected) in [
            ("250ms", 250),
            ("1s", 1_000),
            ("90s", 90_000),
            ("1m", 60_000),
            ("1h", 3_600_000),
            ("30d", 2_592_000_000),
            ("007s", 7_000),
        ] {
            assert_eq!(millis(text), Some(expected), "{text}");
        }
        assert_eq!("1mo".parse(), Ok(WindowText::Month));
    }

    #[test]
    fn what_is_not_an_exact_window_is_refused() {
        for text in [
            "",
            "1",
            "m",
            "0s",
            "1.5h",
            "-1s",
            "+1s",
            "1 m",
            " 1m",
            "1m ",
            "2mo",
            "01mo",
            "1M",
            "1w",
            "１s",
            "4000d",
            "99999999999999999999d",
            "213503982335d",
        ] {
            assert_eq!(text.parse::<WindowText>(), Err(NotAWindow), "{text:?}");
        }
    }

    #[test]
    fn one_window_has_one_text_and_reads_back_as_itself() {
        for (text, shown) in [
            ("60s", "1m"),
            ("60000ms", "1m"),
            ("90s", "90s"),
            ("24h", "1d"),
            ("1500ms", "1500ms"),
            ("1mo", "1mo"),
        ] {
            let window = text.parse::<WindowText>();
            assert_eq!(window.map(|window| window.to_string()), Ok(shown.to_owned()));
            assert_eq!(shown.parse(), window);
        }
    }
}
