//! What a verdict means to whoever answers the end user: status, kind and words, the same for every front.
//! What stands here may be read by anybody, so no key, address or id is ever in it.

use std::borrow::Cow;

use http::StatusCode;
use tollkeeper_account::Answer;
use tollkeeper_core::{Millis, RuleResponse, Unsigned, Verdict};
use tollkeeper_decide::{Verified, VerifiedLimit};

use super::shown;

/// One decision, read for an answer.
#[derive(Clone, Copy, Debug)]
pub struct Ruling<'a> {
    made: &'a Verified,
    at: Millis,
    tightest: Option<&'a VerifiedLimit>,
}

/// When shared state is away: long enough for a breaker to look again.
const AWAY_RETRY_MS: u64 = 1_000;

/// The status of every verdict. A rule may have one of its own, see [`Ruling::status`].
pub fn status_of(verdict: Verdict) -> StatusCode {
    match verdict {
        Verdict::Valid => StatusCode::OK,
        Verdict::NotFound | Verdict::Expired | Verdict::Revoked { .. } => StatusCode::UNAUTHORIZED,
        Verdict::Disabled
        | Verdict::Forbidden
        | Verdict::Unsigned(_)
        | Verdict::InsufficientPermissions
        | Verdict::Blocked => StatusCode::FORBIDDEN,
        Verdict::RateLimited | Verdict::UsageExceeded => StatusCode::TOO_MANY_REQUESTS,
        Verdict::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}

// === impl Ruling ===

impl<'a> Ruling<'a> {
    pub fn of(answer: &'a Answer<Box<Verified>>) -> Self {
        let (made, at) = (answer.made(), answer.at());
        let counting = made.limits.iter().filter(|one| !one.is_shadow());
        Self { made, at, tightest: counting.min_by_key(|one| one.outcome.tightness()) }
    }

    pub fn made(&self) -> &'a Verified {
        self.made
    }

    /// The moment that it speaks of.
    pub fn at(&self) -> Millis {
        self.at
    }

    /// A rule's own status stands in the place of 403 and 429, which are the two that a rule can lead to.
    pub fn status(&self) -> StatusCode {
        let usual = status_of(self.made.verdict);
        if usual != StatusCode::FORBIDDEN && usual != StatusCode::TOO_MANY_REQUESTS {
            return usual;
        }
        let own = self.response().and_then(|response| response.status);
        own.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(usual)
    }

    /// What the rule wants to be said with a denial.
    pub fn message(&self) -> Option<&'a str> {
        self.response()?.message.as_deref()
    }

    /// With a denial: as the rule says, else the true time until everything fits.
    pub fn retry_after_ms(&self) -> Option<u64> {
        let told = self.response().and_then(|response| response.retry_after_seconds);
        match told {
            Some(seconds) => Some(u64::from(seconds) * 1_000),
            None if self.made.verdict == Verdict::Unavailable => Some(AWAY_RETRY_MS),
            None => self.made.retry_after_ms(self.at),
        }
    }

    pub fn delay_ms(&self) -> Option<u64> {
        (self.made.passed() && self.made.delay_ms > 0).then_some(self.made.delay_ms)
    }

    /// What headers speak of: of the limits that deny the one that does so longest, else the one that leaves least. One
    /// that only watches is never it.
    pub fn tightest(&self) -> Option<&'a VerifiedLimit> {
        self.tightest
    }

    /// The limits without room.
    pub fn violated(&self) -> impl Iterator<Item = &'a VerifiedLimit> + use<'a> {
        self.made.limits.iter().filter(|one| one.denies())
    }

    /// The last part of the problem's type.
    pub fn kind(&self) -> String {
        format!("gate/denied/{}", self.made.verdict.code().to_lowercase())
    }

    /// The verdict in a sentence or two: what is wrong, and what to do about it.
    pub fn detail(&self) -> Cow<'a, str> {
        if let Some(message) = self.message() {
            return message.into();
        }
        match self.made.verdict {
            Verdict::Valid => match self.delay_ms() {
                Some(ms) => format!("The request may pass after waiting {ms} ms.").into(),
                None => "The request may pass.".into(),
            },
            Verdict::NotFound => "This key is not known here. Check that it is complete, and that it is one for this API.".into(),
            Verdict::Expired => "This key has expired. Ask for a new one.".into(),
            Verdict::Revoked { .. } => "This key was revoked. Ask for a new one.".into(),
            Verdict::Disabled => "This key is switched off. Ask whoever gave it to you.".into(),
            Verdict::Forbidden if self.of_a_tenant_switched_off() => "The account that this key belongs to is switched off. Ask whoever runs this API.".into(),
            Verdict::Forbidden => "This key may not be used from this address, page or site. Use it from where it was given out for.".into(),
            Verdict::Unsigned(why) => unsigned(why).into(),
            Verdict::InsufficientPermissions => "This key lacks a permission that the request needs. Ask for it, or use another key.".into(),
            Verdict::UsageExceeded => "This key has not enough credits left for the request. Fill them up, or wait until they are.".into(),
            Verdict::Unavailable => "Limits cannot be counted at the moment, and nothing may pass uncounted. Try again in a moment.".into(),
            Verdict::Blocked => match &self.made.rule {
                Some(rule) => format!("The rule `{}` lets no such request pass.", shown(&rule.name)).into(),
                None => "Requests of this user are blocked. Ask whoever runs this API.".into(),
            },
            Verdict::RateLimited => self.used_up(),
        }
    }

    fn of_a_tenant_switched_off(&self) -> bool {
        self.made.key.as_ref().is_some_and(|key| !key.record.tenant_enabled)
    }

    fn used_up(&self) -> Cow<'a, str> {
        let Some(used_up) = self.made.in_the_way() else { return "A limit is used up.".into() };
        let (name, units) = (shown(&used_up.terms.name), used_up.outcome.limit);
        let by_rule = used_up.rule().map(|rule| format!(" of the rule `{}`", shown(&rule.name)));
        let limit = format!("The limit `{name}`{}", by_rule.unwrap_or_default());
        match self.retry_after_ms() {
            Some(ms) => {
                let seconds = ms.div_ceil(1_000).max(1);
                format!("{limit} has no room left in its {units} units. Try again in {seconds} s.")
            }
            None if units == 0 => {
                format!("{limit} lets nothing pass. Ask whoever runs this API.")
            }
            None => format!(
                "{limit} has {units} units, and the request needs more. Ask for less at once."
            ),
        }
        .into()
    }

    /// What the rule that denied says instead of the usual.
    fn response(&self) -> Option<&'a RuleResponse> {
        if self.made.passed() {
            return None;
        }
        self.made.rule.as_ref()?.response.as_ref()
    }
}

fn unsigned(why: Unsigned) -> &'static str {
    match why {
        Unsigned::Absent => {
            "This key is for signed requests only, and the request has no signature. Sign it with the key's signing secret."
        }
        Unsigned::OutOfTime => {
            "The signature's time is more than five minutes from now. Set the clock right, and sign the request anew."
        }
        Unsigned::Wrong => {
            "The signature does not fit the request. Check the signing secret, and that method, path and body are signed as they are sent."
        }
        Unsigned::Repeated => {
            "This signature was used before. Sign every request anew, with a time of its own."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verdict_has_the_status_that_the_contract_says() {
        for (status, verdicts) in [
            (200, &[Verdict::Valid][..]),
            (401, &[Verdict::NotFound, Verdict::Expired, Verdict::Revoked { at: Millis(1) }]),
            (
                403,
                &[
                    Verdict::Disabled,
                    Verdict::Forbidden,
                    Verdict::Unsigned(Unsigned::Wrong),
                    Verdict::InsufficientPermissions,
                    Verdict::Blocked,
                ],
            ),
            (429, &[Verdict::RateLimited, Verdict::UsageExceeded]),
            (503, &[Verdict::Unavailable]),
        ] {
            for verdict in verdicts {
                assert_eq!(status_of(*verdict).as_u16(), status, "{verdict:?}");
            }
        }
    }
}
