//! What every request of a bad minute would say is said by one of them: a line in five seconds at most, with how many kept
//! quiet meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::Stamp;
use crate::ids::RequestId;
use crate::status::Refusal;

/// Often enough to see that it goes on, and seventeen thousand lines in a day.
const PAUSE_MS: u64 = 5_000;

struct Hush {
    /// When something was last said, and one more, so that zero is never.
    said_ms: AtomicU64,
    quiet: AtomicU64,
}

/// What only the log may know of a refusal. A fault of ours is always told; of a database that is away one request speaks for
/// many.
pub fn tell(id: RequestId, refusal: &Refusal) {
    static AWAY: Hush = Hush::new();
    let Some(internal) = refusal.internal() else { return };
    let quiet = match refusal {
        Refusal::Unexpected(_) => Some(0),
        _ => AWAY.may_speak(Stamp::now().machine_ms()),
    };
    match quiet {
        None => {}
        Some(0) => tracing::error!(request_id = id.as_str(), "{internal}"),
        Some(quiet) => tracing::error!(
            request_id = id.as_str(),
            "{internal} ({quiet} more requests were refused since this was last said)"
        ),
    }
}

// === impl Hush ===

impl Hush {
    const fn new() -> Self {
        Self { said_ms: AtomicU64::new(0), quiet: AtomicU64::new(0) }
    }

    /// Whether to say it; then with how many others did not since the last time.
    fn may_speak(&self, now_ms: u64) -> Option<u64> {
        let said = self.said_ms.load(Ordering::Relaxed);
        let now = now_ms.saturating_add(1);
        let is_due = said == 0 || now.saturating_sub(said) >= PAUSE_MS;
        let swap =
            |to| self.said_ms.compare_exchange(said, to, Ordering::Relaxed, Ordering::Relaxed);
        if is_due && swap(now).is_ok() {
            return Some(self.quiet.swap(0, Ordering::Relaxed));
        }
        self.quiet.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_one_line_in_five_seconds_and_none_of_it_is_uncounted() {
        let hush = Hush::new();
        let said: Vec<_> = (0..20_000).filter_map(|ms| hush.may_speak(ms)).collect();
        assert_eq!(said, [0, 4_999, 4_999, 4_999]);
        assert_eq!(hush.may_speak(100_000), Some(4_999));
        assert_eq!(hush.may_speak(200_000), Some(0));
    }
}
