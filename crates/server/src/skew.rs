//! Whether this machine's clock is wrong, measured by those of Redis. Shared limits are counted by Redis' clock and do not
//! care; whoever reads times that this machine wrote does. It changes nothing, it only says so.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tollkeeper_decide::Origin as _;
use tollkeeper_redis::RedisOrigin;

use crate::clock::Clock;

/// Further apart than this is worth a word: machines that follow a time server are within a tenth of it.
const APART_MS: u64 = 1_000;

/// And over when it is so little again, so that a clock close to the bound is not told of again and again.
const CLOSE_MS: u64 = 500;

const LOOK: Duration = Duration::from_secs(1);

/// How far this machine's clock is ahead of that of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    pub ahead_ms: i64,
}

/// Says it once.
#[derive(Debug, Default)]
struct Teller {
    told: bool,
}

/// Looks for as long as the node lives.
pub async fn watch(origin: RedisOrigin) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut teller = Teller::default();
    loop {
        ticks.tick().await;
        let Some(skew) = Skew::largest(&origin) else { continue };
        match teller.hear(skew) {
            Some(true) => tracing::warn!(
                "this machine's clock is {} redis': limits that are shared go by redis', but keys end, and the audit \
                 and this log are written, by this machine's. Let it follow a time server",
                skew.words()
            ),
            Some(false) => tracing::info!("this machine's clock and redis' agree again"),
            None => {}
        }
    }
}

// === impl Skew ===

impl Skew {
    /// `None` while the server's clock was not read lately.
    #[allow(clippy::cast_possible_wrap, reason = "milliseconds since 1970 are far below 2^63")]
    pub fn of(origin: &RedisOrigin, server: usize) -> Option<Self> {
        let theirs = origin.time_of(server)?;
        Some(Self { ahead_ms: Clock::wall().0 as i64 - theirs.0 as i64 })
    }

    /// Of the server that it is furthest from.
    pub fn largest(origin: &RedisOrigin) -> Option<Self> {
        let all = (0..origin.servers()).filter_map(|server| Self::of(origin, server));
        all.max_by_key(|skew| skew.ahead_ms.unsigned_abs())
    }

    pub fn matters(self) -> bool {
        self.ahead_ms.unsigned_abs() > APART_MS
    }

    #[allow(clippy::cast_precision_loss, reason = "a metric is read by people")]
    pub fn seconds(self) -> f64 {
        self.ahead_ms as f64 / 1e3
    }

    fn words(self) -> String {
        let which = if self.ahead_ms < 0 { "behind" } else { "ahead of" };
        format!("{:.1} s {which}", self.seconds().abs())
    }
}

// === impl Teller ===

impl Teller {
    /// Whether it is worth a word now: that it is wrong, or that it is right again.
    fn hear(&mut self, skew: Skew) -> Option<bool> {
        let close = skew.ahead_ms.unsigned_abs() <= CLOSE_MS;
        let turns = if self.told { close } else { skew.matters() };
        if !turns {
            return None;
        }
        self.told = !self.told;
        Some(self.told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_wrong_is_told_of_once_and_once_when_it_is_right_again() {
        let mut teller = Teller::default();
        let told: Vec<_> = [0, 900, 1_001, 3_600_000, -3_600_000, 700, -500, 600, -1_000, -1_500]
            .map(|ahead_ms| teller.hear(Skew { ahead_ms }))
            .into();
        let (wrong, right) = (Some(true), Some(false));
        assert_eq!(
            told,
            [None, None, wrong, None, None, None, right, None, None, wrong],
            "{told:?}"
        );
    }

    #[test]
    fn it_is_said_in_which_direction() {
        assert_eq!(Skew { ahead_ms: -3_600_040 }.words(), "3600.0 s behind");
        assert_eq!(Skew { ahead_ms: 1_250 }.words(), "1.2 s ahead of");
        assert!(Skew { ahead_ms: -1_001 }.matters() && !Skew { ahead_ms: 1_000 }.matters());
    }
}
