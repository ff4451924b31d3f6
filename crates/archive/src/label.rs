//! A month as people write it, in arguments, lists and messages.

use tollkeeper_core::Month;

/// A month as people write it: `2026-07`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label(pub Month);

// === impl Label ===

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04}-{:02}", self.0.year(), self.0.month())
    }
}

impl std::str::FromStr for Label {
    type Err = String;

    /// `2026-07`, or `202607` as partitions are named.
    fn from_str(text: &str) -> Result<Self, String> {
        let bare = match text.split_once('-') {
            Some((year, month)) if year.len() == 4 => format!("{year}{month}"),
            _ => text.to_owned(),
        };
        Month::parse(&bare).map(Self).ok_or_else(|| "expected a month such as 2026-07".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_read_as_it_is_written() {
        for text in ["2026-07", "202607"] {
            assert_eq!(
                text.parse::<Label>().map(|label| label.to_string()),
                Ok("2026-07".to_owned())
            );
        }
        for text in ["", "2026", "2026-13", "26-07", "2026-7", "2026-07-01"] {
            assert!(text.parse::<Label>().is_err(), "{text}");
        }
    }
}
