//! What an algorithm says about one cost at one moment. A denial is an outcome, not an error.

use crate::Millis;

/// May this cost pass?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Admitted,
    /// Not now. With no other traffic it passes at this moment and not a millisecond earlier; [`Millis::LAST`] says that it
    /// passes then or later.
    NotUntil(Millis),
    /// Not ever: the cost is larger than the limit itself.
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub admission: Admission,
    /// The most that could ever be spent at once: the quota, or a bucket's capacity.
    pub limit: u64,
    /// What could still be spent now, after this cost if it was admitted.
    pub remaining: u64,
    /// Windows: the end of the current one. Refilling cells: when they are whole again.
    pub reset: Millis,
}

// === impl Outcome ===

impl Outcome {
    pub fn admitted(&self) -> bool {
        self.admission == Admission::Admitted
    }

    /// Milliseconds until this cost fits: `None` when it fits now or never will.
    pub fn retry_after_ms(&self, now: Millis) -> Option<u64> {
        match self.admission {
            Admission::NotUntil(at) => Some(at.since(now)),
            Admission::Admitted | Admission::Never => None,
        }
    }

    /// Orders limits by how much they stand in the way: what never fits first, then what fits latest, then what leaves
    /// least.
    pub fn tightness(&self) -> (u8, u64) {
        match self.admission {
            Admission::Never => (0, 0),
            Admission::NotUntil(at) => (1, u64::MAX - at.0),
            Admission::Admitted => (2, self.remaining),
        }
    }

    /// The share of the limit that is used, in 1/65535: what eviction compares. Of a limit of nothing: all.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "amounts are below 2^53, where these are exact, and the last digit of a share is nobody's concern"
    )]
    #[inline]
    pub fn fill(&self) -> u16 {
        let used = self.limit.saturating_sub(self.remaining);
        if self.limit == 0 {
            return u16::MAX;
        }
        (used as i64 as f64 / self.limit as i64 as f64 * f64::from(u16::MAX)) as u16
    }
}

/// The outcome of a cost against `free` units, where `fits_at` says when it would fit otherwise.
pub(crate) fn weigh(
    cost: u64,
    limit: u64,
    free: u64,
    reset: Millis,
    fits_at: impl FnOnce() -> Millis,
) -> Outcome {
    let (admission, remaining) = if cost <= free {
        (Admission::Admitted, free - cost)
    } else if cost > limit {
        (Admission::Never, free)
    } else {
        (Admission::NotUntil(fits_at()), free)
    };
    Outcome { admission, limit, remaining, reset }
}
