//! The limits that are measured: so wide that nothing is denied, or so narrow that everything is.

use tollkeeper_core::{Limit, Quota, Width, Window};

use crate::failure::Failure;

/// Far more than any run spends.
pub(crate) const AMPLE: u64 = 1_000_000_000;
const MINUTE_MS: u64 = 60_000;
/// Longer than any run lasts on its own clock.
const DAYS_30_MS: u64 = 30 * 86_400_000;

pub(crate) fn sliding_window() -> Result<Limit, Failure> {
    Ok(Limit::sliding_window(quota(AMPLE)?, width(MINUTE_MS)?))
}

pub(crate) fn fixed_window() -> Result<Limit, Failure> {
    Ok(Limit::fixed_window(quota(AMPLE)?, Window::Aligned(width(MINUTE_MS)?)))
}

pub(crate) fn token_bucket() -> Result<Limit, Failure> {
    Ok(Limit::token_bucket(quota(AMPLE)?, width(MINUTE_MS)?, None))
}

/// Denies every identifier's second request.
pub(crate) fn once() -> Result<Limit, Failure> {
    Ok(Limit::sliding_window(quota(1)?, width(DAYS_30_MS)?))
}

pub(crate) fn quota(amount: u64) -> Result<Quota, Failure> {
    Quota::new(amount).ok_or_else(|| Failure::Invalid(format!("a quota of {amount}")))
}

pub(crate) fn width(ms: u64) -> Result<Width, Failure> {
    Width::from_millis(ms).ok_or_else(|| Failure::Invalid(format!("a width of {ms} ms")))
}
