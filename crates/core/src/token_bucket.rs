//! Token bucket: a capacity that is spent and flows back at a steady rate.
//! Kept as what is missing, in whole tokens and a fraction, so that no refill is ever rounded away.
//! Pure arithmetic. It never reads a clock; `now` comes in, the new state goes out.

use crate::outcome::weigh;
use crate::{Admission, Cost, Millis, Outcome};

/// `tokens` flow back every `per_ms`, up to `capacity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refill {
    pub capacity: u64,
    pub tokens: u64,
    pub per_ms: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBucket {
    /// Whole tokens that are gone.
    pub missing: u64,
    /// And this many 1/`per_ms` of one more.
    pub fraction: u64,
    /// The newest moment this bucket has seen.
    pub at: Millis,
}

// === impl TokenBucket ===

impl TokenBucket {
    pub fn spend(self, refill: Refill, cost: Cost, now: Millis) -> (Outcome, Self) {
        let refilled = self.refilled(refill, now);
        let outcome = refilled.outcome(refill, cost);
        if !outcome.admitted() || cost == Cost::PEEK {
            // An ask that spends nothing leaves no trace: it may have come with another rate than the next one.
            return (Outcome { reset: refilled.whole_at(refill), ..outcome }, self);
        }
        let spent = Self { missing: refilled.missing + cost.get(), ..refilled };
        (Outcome { reset: spent.whole_at(refill), ..outcome }, spent)
    }

    /// [`TokenBucket::spend`] where it is shortest: there is room for more than nothing, and no amount is absurd. `None` says
    /// neither yes nor no, and changes nothing.
    #[inline]
    pub fn admit(&mut self, refill: Refill, cost: Cost, now: Millis) -> Option<Outcome> {
        let Refill { capacity, tokens, per_ms } = refill;
        if cost == Cost::PEEK {
            return None;
        }
        let deficit = self.missing.checked_mul(per_ms)?.checked_add(self.fraction)?;
        let elapsed = now.since(self.at);
        let (left, missing, fraction) = if elapsed == 0 {
            (deficit, self.missing, self.fraction)
        } else {
            let left = deficit.saturating_sub(elapsed.saturating_mul(tokens));
            (left, left / per_ms, left % per_ms)
        };
        let gone = missing + u64::from(fraction > 0);
        let remaining = capacity.checked_sub(gone)?.checked_sub(cost.get())?;
        let owed = left.checked_add(cost.get().checked_mul(per_ms)?)?;
        let at = self.at.max(now);
        *self = Self { missing: missing + cost.get(), fraction, at };
        let reset = (at + owed.div_ceil(tokens.max(1))).min(Millis::LAST);
        Some(Outcome { admission: Admission::Admitted, limit: capacity, remaining, reset })
    }

    pub fn probe(&self, refill: Refill, cost: Cost, now: Millis) -> Outcome {
        (*self).spend(refill, cost, now).0
    }

    /// The moment from which this state is no different from a fresh one.
    pub fn idle_at(&self, refill: Refill) -> Millis {
        self.whole_at(refill)
    }

    #[allow(clippy::cast_possible_truncation, reason = "the deficit only shrinks")]
    pub(crate) fn refilled(self, refill: Refill, now: Millis) -> Self {
        // Zero when the clock went back: nothing is refilled twice.
        let elapsed = now.since(self.at);
        if elapsed == 0 {
            return self;
        }
        let gained = u128::from(elapsed) * u128::from(refill.tokens);
        let left = self.deficit(refill).saturating_sub(gained);
        let (missing, fraction) = divide(left, refill.per_ms);
        Self { missing: missing as u64, fraction, at: self.at.max(now) }
    }

    fn outcome(&self, refill: Refill, cost: Cost) -> Outcome {
        let gone = self.missing.saturating_add(u64::from(self.fraction > 0));
        let free = refill.capacity.saturating_sub(gone);
        weigh(cost.get(), refill.capacity, free, self.at, || self.fits_at(refill, cost))
    }

    fn fits_at(&self, refill: Refill, cost: Cost) -> Millis {
        let kept = u128::from(refill.capacity - cost.get()) * u128::from(refill.per_ms);
        self.flowed_back(self.deficit(refill).saturating_sub(kept), refill)
    }

    fn whole_at(&self, refill: Refill) -> Millis {
        self.flowed_back(self.deficit(refill), refill)
    }

    /// When `units` of 1/`per_ms` token have come back, or [`Millis::LAST`]. Never inlined: the registers of a division would
    /// be taken from the other algorithms, which stand beside this one.
    #[inline(never)]
    fn flowed_back(&self, units: u128, refill: Refill) -> Millis {
        let (ms, rest) = divide(units, refill.tokens.max(1));
        let ms = u64::try_from(ms).unwrap_or(u64::MAX).saturating_add(u64::from(rest > 0));
        (self.at + ms).min(Millis::LAST)
    }

    /// All that is missing, in 1/`per_ms` of a token.
    fn deficit(&self, refill: Refill) -> u128 {
        u128::from(self.missing) * u128::from(refill.per_ms) + u128::from(self.fraction)
    }
}

/// All but absurd amounts fit into 64 bits, where a division is one instruction and no call.
#[allow(clippy::cast_possible_truncation, reason = "a remainder is below what divides")]
fn divide(units: u128, by: u64) -> (u128, u64) {
    match u64::try_from(units) {
        Ok(units) => (u128::from(units / by), units % by),
        Err(_) => (units / u128::from(by), (units % u128::from(by)) as u64),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::AMOUNT_MAX;

    /// Mostly small, now and then as large as there are.
    fn amount() -> impl Strategy<Value = u64> {
        prop_oneof![4 => 0..50_u64, 1 => 0..=AMOUNT_MAX]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn the_short_step_is_the_long_one_or_none_and_is_taken_wherever_there_is_room(
            (missing, fraction, at) in (amount(), 0..7_u64, 0..2_000_u64),
            (capacity, tokens, per_ms) in (amount(), amount(), 7..5_000_u64),
            (cost, now) in (0..12_u64, prop_oneof![4 => 0..4_000_u64, 1 => 0..=AMOUNT_MAX]),
        ) {
            let refill = Refill { capacity, tokens, per_ms };
            let (cost, now) = (Cost::new(cost).unwrap(), Millis(now));
            let before = TokenBucket { missing, fraction, at: Millis(at) };
            let (outcome, next) = before.spend(refill, cost, now);
            let mut bucket = before;
            if let Some(admitted) = bucket.admit(refill, cost, now) {
                prop_assert_eq!((admitted, bucket), (outcome, next));
            } else {
                prop_assert_eq!(bucket, before);
                let absurd = missing > u64::from(u32::MAX);
                prop_assert!(absurd || !outcome.admitted() || cost == Cost::PEEK);
            }
        }
    }
}
