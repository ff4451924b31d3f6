//! How long to wait before connecting again: full jitter, so that a fleet does not come back in step.
//! It never waits itself.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);

/// Far less than a server without history learns for: whoever has something to tell it is there before that is over. A
/// server that is away is asked some eight times a second by each node.
const CAP: Duration = Duration::from_millis(250);

#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failed: u32,
}

// === impl Backoff ===

impl Backoff {
    /// Nothing before the first attempt; then a random share of 50 ms, 100 ms and so on up to a quarter of a second.
    pub(crate) fn next(&mut self) -> Duration {
        let ceiling = ceiling(self.failed);
        self.failed = self.failed.saturating_add(1);
        ceiling.mul_f64(share())
    }

    pub(crate) fn worked(&mut self) {
        self.failed = 0;
    }
}

fn ceiling(failed: u32) -> Duration {
    match failed.checked_sub(1) {
        None => Duration::ZERO,
        Some(doublings) => FIRST.saturating_mul(1 << doublings.min(10)).min(CAP),
    }
}

/// Between 0 and 1. Without randomness half is as good as any.
fn share() -> f64 {
    getrandom::u32().map_or(0.5, |bits| f64::from(bits) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_doubles_up_to_a_quarter_of_a_second_and_starts_over_when_it_worked() {
        let ms: Vec<_> = (0..8).map(|failed| ceiling(failed).as_millis()).collect();
        assert_eq!(ms, [0, 50, 100, 200, 250, 250, 250, 250]);
        assert_eq!(ceiling(u32::MAX), CAP);
        let mut backoff = Backoff { failed: 9 };
        assert!(backoff.next() <= CAP);
        backoff.worked();
        assert_eq!(backoff.next(), Duration::ZERO);
    }
}
