//! What a front tells the audit of a decision, the same for all of them. The audit keeps every denial and a share of the
//! rest.

use std::net::IpAddr;
use std::sync::Arc;

use tollkeeper_account::Answer;
use tollkeeper_decide::Verified;

use super::call::Call;
use super::verify::code;
use crate::audit::{Facts, LimitFacts, Moment, ending};
use crate::status::Ruling;

/// What the front knows of the request.
#[derive(Clone, Copy, Debug)]
pub struct Noted<'a> {
    pub tenant_id: &'a Arc<str>,
    /// As it came; never kept.
    pub key_text: Option<&'a str>,
    pub ip: Option<IpAddr>,
    pub method: Option<&'a str>,
    pub path: Option<&'a str>,
}

pub fn note(call: &Call<'_>, noted: Noted<'_>, answer: &Answer<Verified>) {
    let made = answer.made();
    if made.dry {
        return;
    }
    let ruling = Ruling::new(made, answer.at());
    let code = code(made.verdict);
    let limit = ruling.tightest().map(|one| LimitFacts {
        name: &one.name,
        count: one.outcome.limit - one.outcome.remaining.min(one.outcome.limit),
        retry_after_ms: one.outcome.retry_after_ms(answer.at()),
    });
    let facts = Facts {
        tenant_id: noted.tenant_id,
        decision: ending(code).0,
        code: code.as_str(),
        status: ruling.status().as_u16(),
        key_id: made.key.as_ref().map(|key| &key.record.id),
        external_id: made.identity().map(|identity| &identity.external_id),
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
    let moment = Moment { request_id: call.id, now: call.now, start: call.start };
    call.app.auditor.note(moment, &facts);
}
