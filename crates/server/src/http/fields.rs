//! Header fields that tell a client where it stands: `X-RateLimit-*`, `Retry-After`, and the IETF draft's
//! `RateLimit` and `RateLimit-Policy`. Each dialect of the draft is a writer of its own; today that is draft 11.

use tollkeeper_core::{Algorithm, Limit, Millis, Outcome, Window, Written};
use tollkeeper_decide::{LimitedOne, VerifiedLimit};

/// Where one limit stands, in the units that headers speak.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    pub policy: &'a str,
    pub outcome: &'a Outcome,
    /// What comes back per window; a bucket's capacity is another matter.
    pub quota: u64,
    pub width_s: Option<u64>,
    pub now: Millis,
}

// === impl Standing ===

impl<'a> Standing<'a> {
    pub fn new(policy: &'a str, one: &'a LimitedOne, now: Millis) -> Self {
        Self::of(policy, &one.outcome, &one.limit, now)
    }

    pub fn of(policy: &'a str, outcome: &'a Outcome, limit: &Limit, now: Millis) -> Self {
        let (quota, width_s) = (limit.quota.get(), width_s(limit.algorithm));
        Self { policy, outcome, quota, width_s, now }
    }

    /// With the limit and the window that its rule names, however it is counted.
    pub fn verified(one: &'a VerifiedLimit, now: Millis) -> Self {
        let counted = Self::of(&one.name, &one.outcome, &one.limit, now);
        match one.written {
            None => counted,
            Some(Written { quota, width }) => {
                Self { quota: quota.get(), width_s: whole_s(width.millis()), ..counted }
            }
        }
    }

    /// Whole seconds, rounded up, and only on a denial that time can heal.
    pub fn retry_after_s(&self) -> Option<u64> {
        self.outcome.retry_after_ms(self.now).map(|ms| ms.div_ceil(1000).max(1))
    }

    /// `RateLimit-Policy` of draft 11: the quota, and the window where it is whole seconds.
    pub fn write_policy(&self, out: &mut Vec<u8>) {
        write_name(self.policy, out);
        out.extend_from_slice(b";q=");
        write_number(self.quota, out);
        if let Some(width_s) = self.width_s {
            out.extend_from_slice(b";w=");
            write_number(width_s, out);
        }
    }

    /// `RateLimit` of draft 11: what is left, and for how long that has to do. Behind a denial it is
    /// the time to wait, so that it never contradicts `Retry-After`.
    pub fn write_state(&self, out: &mut Vec<u8>) {
        write_name(self.policy, out);
        out.extend_from_slice(b";r=");
        write_number(self.outcome.remaining, out);
        out.extend_from_slice(b";t=");
        let until_reset = self.outcome.reset.since(self.now).div_ceil(1000);
        write_number(self.retry_after_s().unwrap_or(until_reset), out);
    }
}

/// Sub-second windows cannot be said in the draft's whole seconds, and months have no fixed length.
fn width_s(algorithm: Algorithm) -> Option<u64> {
    let ms = match algorithm {
        Algorithm::FixedWindow(Window::Aligned(width))
        | Algorithm::SlidingWindow(width)
        | Algorithm::SlidingLog(width)
        | Algorithm::TokenBucket { width, .. } => width.millis(),
        Algorithm::FixedWindow(Window::Day) => 86_400_000,
        Algorithm::FixedWindow(Window::Month) => return None,
    };
    whole_s(ms)
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
    fn no_namespace_breaks_out_of_its_header() {
        let (policy, _, _) = standing("a\"b\\c\r\nX: y\u{e9}", Admission::Admitted);
        assert_eq!(policy, "\"a\\\"b\\\\c??X: y?\";q=100;w=60");
    }
}
