//! Header fields that tell a client where it stands: `X-RateLimit-*`, `Retry-After`, and the IETF draft's
//! `RateLimit` and `RateLimit-Policy`. Each dialect of the draft is a writer of its own; today that is draft 11.

use tollkeeper_core::{Algorithm, Limit, Millis, Outcome, Window, Written};
use tollkeeper_decide::{LimitedOne, VerifiedLimit};

/// Where one limit stands, in the units that headers speak.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    pub policy: &'a str,
    pub outcome: &'a Outcome,
    /// The most that can remain: of a bucket its capacity.
    pub quota: u64,
    /// The time in which that comes back, where it is whole seconds.
    pub width_s: Option<u64>,
    pub now: Millis,
}

// === impl Standing ===

impl<'a> Standing<'a> {
    pub fn new(policy: &'a str, one: &'a LimitedOne, now: Millis) -> Self {
        Self::of(policy, &one.outcome, &one.limit, now)
    }

    pub fn of(policy: &'a str, outcome: &'a Outcome, limit: &Limit, now: Millis) -> Self {
        let (quota, width_ms) = match limit.algorithm {
            Algorithm::TokenBucket { width, .. } => {
                (outcome.limit, refilled_ms(outcome.limit, limit.quota.get(), width.millis()))
            }
            other => (limit.quota.get(), width_ms(other)),
        };
        Self { policy, outcome, quota, width_s: width_ms.and_then(whole_s), now }
    }

    /// With the window that its rule names, however it is counted.
    pub fn verified(one: &'a VerifiedLimit, now: Millis) -> Self {
        let counted = Self::of(&one.terms.name, &one.outcome, &one.limit, now);
        match one.written {
            Some(Written { quota, width }) if quota.get() == one.outcome.limit => {
                Self { width_s: whole_s(width.millis()), ..counted }
            }
            _ => counted,
        }
    }

    /// Whole seconds, rounded up, and only on a denial that time can heal.
    pub fn retry_after_s(&self) -> Option<u64> {
        self.outcome.retry_after_ms(self.now).map(|ms| ms.div_ceil(1000).max(1))
    }

    /// `RateLimit-Policy` of draft 11: the limit, and the window where it is whole seconds. Of a bucket that holds more or
    /// less than flows back per window it is its capacity and the time in which that flows back: the same rate, and
    /// never less than what remains.
    pub fn write_policy(&self, out: &mut Vec<u8>) {
        write_name(self.policy, out);
        out.extend_from_slice(b";q=");
        write_integer(self.quota, out);
        if let Some(width_s) = self.width_s {
            out.extend_from_slice(b";w=");
            write_integer(width_s, out);
        }
    }

    /// `RateLimit` of draft 11: what is left, and for how long that has to do. Behind a denial it is
    /// the time to wait, so that it never contradicts `Retry-After`.
    pub fn write_state(&self, out: &mut Vec<u8>) {
        write_name(self.policy, out);
        out.extend_from_slice(b";r=");
        write_integer(self.outcome.remaining, out);
        out.extend_from_slice(b";t=");
        let until_reset = self.outcome.reset.since(self.now).div_ceil(1000);
        write_integer(self.retry_after_s().unwrap_or(until_reset), out);
    }
}

/// Sub-second windows cannot be said in the draft's whole seconds, and months have no fixed length.
fn width_ms(algorithm: Algorithm) -> Option<u64> {
    match algorithm {
        Algorithm::FixedWindow(Window::Aligned(width))
        | Algorithm::SlidingWindow(width)
        | Algorithm::SlidingLog(width)
        | Algorithm::TokenBucket { width, .. } => Some(width.millis()),
        Algorithm::FixedWindow(Window::Day) => Some(86_400_000),
        Algorithm::FixedWindow(Window::Month) => None,
    }
}

/// The time in which `limit` comes back where `quota` does per window. `None` where that is no whole number.
fn refilled_ms(limit: u64, quota: u64, width_ms: u64) -> Option<u64> {
    if limit == quota {
        return Some(width_ms);
    }
    let ms = u128::from(limit) * u128::from(width_ms);
    let whole = quota > 0 && ms.is_multiple_of(u128::from(quota));
    whole.then(|| u64::try_from(ms / u128::from(quota)).ok()).flatten()
}

fn whole_s(ms: u64) -> Option<u64> {
    ms.is_multiple_of(1000).then_some(ms / 1000)
}

/// A structured-field string: printable ASCII in quotes. Anything else becomes `?`, so that no
/// namespace can break out of its header.
fn write_name(name: &str, out: &mut Vec<u8>) {
    /// A policy's name is a label; the whole name stands in the request.
    const NAME_MAX: usize = 64;
    out.push(b'"');
    for c in name.chars().take(NAME_MAX) {
        match c {
            '"' | '\\' => out.extend([b'\\', c as u8]),
            ' '..='~' => out.push(c as u8),
            _ => out.push(b'?'),
        }
    }
    out.push(b'"');
}

/// An integer of a structured field has fifteen digits at most: a larger one would make the whole field unreadable.
fn write_integer(number: u64, out: &mut Vec<u8>) {
    write_number(number.min(999_999_999_999_999), out);
}

pub fn write_number(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use tollkeeper_core::{Admission, Quota, Width};

    use super::*;

    fn standing(policy: &str, admission: Admission) -> (String, String, Option<u64>) {
        let limit =
            Limit::sliding_window(Quota::new(100).unwrap(), Width::from_millis(60_000).unwrap());
        let outcome = Outcome { admission, limit: 100, remaining: 7, reset: Millis(61_500) };
        let standing = Standing::of(policy, &outcome, &limit, Millis(30_000));
        let (mut quota, mut state) = (Vec::new(), Vec::new());
        standing.write_policy(&mut quota);
        standing.write_state(&mut state);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(quota), text(state), standing.retry_after_s())
    }

    #[test]
    fn no_number_of_a_structured_field_has_more_than_fifteen_digits() {
        let most = 9_007_199_254_740_991;
        let limit =
            Limit::sliding_window(Quota::new(most).unwrap(), Width::from_millis(60_000).unwrap());
        let admission = Admission::NotUntil(Millis(u64::MAX));
        let outcome = Outcome { admission, limit: most, remaining: most, reset: Millis(u64::MAX) };
        let standing = Standing::of("api", &outcome, &limit, Millis(0));
        let mut out = Vec::new();
        standing.write_policy(&mut out);
        standing.write_state(&mut out);
        let text = String::from_utf8(out).unwrap();
        let digits = text.split(|c: char| !c.is_ascii_digit()).map(str::len).max();
        assert_eq!(digits, Some(15), "{text}");
    }

    #[test]
    fn an_admitted_request_learns_what_is_left_until_the_reset() {
        let (policy, state, retry) = standing("api", Admission::Admitted);
        assert_eq!(
            (policy.as_str(), state.as_str(), retry),
            (r#""api";q=100;w=60"#, r#""api";r=7;t=32"#, None)
        );
    }

    #[test]
    fn a_denied_request_learns_when_to_come_back_and_nothing_contradicts_it() {
        let (_, state, retry) = standing("api", Admission::NotUntil(Millis(32_001)));
        assert_eq!((state.as_str(), retry), (r#""api";r=7;t=3"#, Some(3)));
        assert_eq!(standing("api", Admission::Never).2, None);
    }

    #[test]
    fn a_bucket_names_its_capacity_and_the_time_in_which_that_flows_back() {
        let policy = |quota, burst| {
            let width = Width::from_millis(60_000).unwrap();
            let limit = Limit::token_bucket(Quota::new(quota).unwrap(), width, Quota::new(burst));
            let outcome = Outcome {
                admission: Admission::Admitted,
                limit: burst,
                remaining: burst - 1,
                reset: Millis(61_500),
            };
            let mut out = Vec::new();
            Standing::of("api", &outcome, &limit, Millis(0)).write_policy(&mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(policy(5, 10), r#""api";q=10;w=120"#);
        assert_eq!(policy(10, 5), r#""api";q=5;w=30"#);
        assert_eq!(policy(10, 10), r#""api";q=10;w=60"#);
        assert_eq!(policy(7, 10), r#""api";q=10"#, "there is no whole second for it");
    }

    #[test]
    fn no_namespace_breaks_out_of_its_header() {
        let (policy, _, _) = standing("a\"b\\c\r\nX: y\u{e9}", Admission::Admitted);
        assert_eq!(policy, "\"a\\\"b\\\\c??X: y?\";q=100;w=60");
    }
}
