//! Time as plain integers: unix milliseconds, microseconds and window widths.
//! Never read from a clock here; `now` always comes in as an argument.

use std::num::NonZeroU64;
use std::ops::Add;

use crate::AMOUNT_MAX;

/// A moment, in unix milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

/// A moment, in unix microseconds: where what happens within a millisecond has an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(pub u64);

/// Ten years: the longest window anyone has asked for, and far below the 2^43 ms
/// at which the fading arithmetic of the sliding window would leave 64 bits.
pub const WIDTH_MS_MAX: u64 = 10 * 366 * 86_400_000;

/// The width of a rolling window: never zero, at most [`WIDTH_MS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Width(NonZeroU64);

// === impl Millis ===

impl Millis {
    /// The last moment that answers can name: later ones would be read as others by whoever keeps numbers as JSON does.
    /// What comes later comes in some 285,000 years, which is never.
    pub const LAST: Self = Self(AMOUNT_MAX);

    /// How long after `earlier` this is; zero when it is not after it, so a clock
    /// that steps backwards never looks like time gone by.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Whole unix seconds, rounded up: the earliest second at which this moment has passed.
    pub fn seconds_up(self) -> u64 {
        self.0.div_ceil(1000)
    }
}

impl Add<u64> for Millis {
    type Output = Self;

    fn add(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

// === impl Micros ===

impl Micros {
    /// The millisecond that it is in.
    pub fn millis(self) -> Millis {
        Millis(self.0 / 1000)
    }

    /// The last moment of a millisecond.
    pub fn last_of(ms: Millis) -> Self {
        Self(Self::from(ms).0.saturating_add(999))
    }
}

impl From<Millis> for Micros {
    /// The first moment of that millisecond.
    fn from(ms: Millis) -> Self {
        Self(ms.0.saturating_mul(1000))
    }
}

// === impl Width ===

impl Width {
    pub const MIN: Self = Self(NonZeroU64::MIN);

    pub const fn from_millis(ms: u64) -> Option<Self> {
        match NonZeroU64::new(ms) {
            Some(width) if ms <= WIDTH_MS_MAX => Some(Self(width)),
            _ => None,
        }
    }

    pub fn millis(self) -> u64 {
        self.0.get()
    }

    /// The start of the epoch-aligned window that holds `now`.
    pub fn start_of(self, now: Millis) -> Millis {
        Millis(now.0 - now.0 % self.0)
    }
}
