//! The `Date` header: written once for each second. It never reads a clock.

use std::time::{Duration, SystemTime};

/// The second in words, as the `Date` header has it.
#[derive(Debug, Default)]
pub(super) struct Date {
    second: u64,
    text: String,
}

// === impl Date ===

impl Date {
    pub(super) fn at(&mut self, second: u64) -> &[u8] {
        if self.second != second {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            (self.second, self.text) = (second, httpdate::fmt_http_date(at));
        }
        self.text.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_that_of_the_second() {
        let mut date = Date { second: 0, text: String::new() };
        assert_eq!(date.at(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date.at(784_111_778), b"Sun, 06 Nov 1994 08:49:38 GMT");
    }
}
