//! What a front tells the audit of a decision, the same for all of them. The audit keeps every denial and a share of the
//! rest.

use std::net::IpAddr;
use std::sync::Arc;

use tollkeeper_account::{Answer, Whose};
use tollkeeper_core::{Cost, Decision, Outcome};
use tollkeeper_decide::{LimitAsk, Limited};
use tollkeeper_wire::Code;

use super::call::Call;
use super::verify::code;
use crate::audit::{Facts, LimitFacts, Moment, cleaned, ending};
use crate::status::Ruling;

/// What the front knows of the request.
#[derive(Clone, Copy, Debug)]
pub struct Noted<'a> {
    pub tenant_id: &'a Arc<str>,
    /// As it came; never kept.
    pub key_text: Option<&'a str>,
    /// As the request names it; a stored one goes before.
    pub external_id: Option<&'a str>,
    pub ip: Option<IpAddr>,
    pub method: Option<&'a str>,
    pub path: Option<&'a str>,
}

pub fn note(call: &Call<'_>, noted: Noted<'_>, ruling: &Ruling<'_>) {
    let made = ruling.made();
    if made.dry {
        return;
    }
    let code = code(made.verdict);
    let limit = ruling.tightest().map(|one| LimitFacts {
        name: &one.terms.name,
        count: used(&one.outcome),
        retry_after_ms: one.outcome.retry_after_ms(ruling.at()),
    });
    let stored = made.identity().map(|identity| Whose::Stored(&identity.external_id));
    let facts = Facts {
        tenant_id: noted.tenant_id,
        decision: ending(code).0,
        code: code.as_str(),
        status: ruling.status().as_u16(),
        key_id: made.key.as_ref().map(|key| &key.record.id),
        whose: stored.or(noted.external_id.map(Whose::Told)),
        key_text: noted.key_text,
        ip: noted.ip,
        method: noted.method,
        path: noted.path,
        endpoint: made.endpoint.as_ref(),
        rule: made.rule.as_ref().map(|rule| &rule.name),
        limit,
        cache: call.timing.key_sight(),
        degraded: made.is_degraded(),
    };
    call.app.auditor.note(moment(call), &facts);
}

/// What `ratelimit.*` decided. It is in no sum of requests: who limits a request so has mostly had its key verified
/// too, and counts of limits have their own place. So an allowed one that is not sampled costs one look at its id.
pub fn note_limited(call: &Call<'_>, ask: &LimitAsk<'_>, answer: &Answer<Limited>) {
    let decision = if answer.made().passed { Decision::Allowed } else { Decision::Throttled };
    if !is_look(ask, decision) && call.app.auditor.keeps(decision, call.id) {
        keep_limited(call, ask, answer);
    }
}

/// Whoever spends nothing has had nothing decided. Should it ever be denied, that is kept all the same.
fn is_look(ask: &LimitAsk<'_>, decision: Decision) -> bool {
    decision == Decision::Allowed && ask.checks.iter().all(|check| check.cost == Cost::PEEK)
}

/// One row for the call, about the limit that stands most in its way. Whom it counts is the row's identity, so that a
/// user is found by the same name whatever denied them.
#[cold]
fn keep_limited(call: &Call<'_>, ask: &LimitAsk<'_>, answer: &Answer<Limited>) {
    let made = answer.made();
    let Some((place, tightest)) = made.tightest() else { return };
    let Some(check) = ask.checks.get(place) else { return };
    let code = if made.passed { Code::Valid } else { Code::RateLimited };
    let (decision, status) = ending(code);
    let identifier = cleaned(check.identifier, None);
    let facts = Facts {
        tenant_id: &ask.caller.tenant.id,
        decision,
        code: code.as_str(),
        status,
        key_id: None,
        whose: Some(Whose::Told(&identifier)),
        key_text: None,
        ip: None,
        method: None,
        path: None,
        endpoint: None,
        rule: None,
        limit: Some(LimitFacts {
            name: check.namespace,
            count: used(&tightest.outcome),
            retry_after_ms: tightest.outcome.retry_after_ms(answer.at()),
        }),
        cache: None,
        degraded: made.limits.iter().any(|one| one.degraded),
    };
    call.app.auditor.keep(moment(call), &facts);
}

fn used(outcome: &Outcome) -> u64 {
    outcome.limit - outcome.remaining.min(outcome.limit)
}

fn moment(call: &Call<'_>) -> Moment {
    Moment { request_id: call.id, now: call.now, start: call.start }
}
