//! What the proxy is told: 200 with whose key it was, or the refusal that it hands to the end user.

use http::StatusCode;
use http::header::HeaderName;
use tollkeeper_decide::tier_of;
use tollkeeper_wire as wire;

use crate::http::{Call, Reply, Sheet, code, stand};
use crate::hush::tell;
use crate::status::{Refusal, Ruling, TYPE_BASE, shown};

static KEY_ID: HeaderName = HeaderName::from_static("x-tollkeeper-key-id");
static IDENTITY: HeaderName = HeaderName::from_static("x-tollkeeper-identity");
static TIER: HeaderName = HeaderName::from_static("x-tollkeeper-tier");

/// The three are there on every success, empty where there is nothing to say: a proxy that copies only what it finds
/// would otherwise let a client's own pass for ours.
pub fn passed(ruling: &Ruling<'_>) -> Reply {
    let made = ruling.made();
    let key_id = made.key.as_ref().map_or("", |key| &key.record.id);
    let identity = made.identity().map_or("", |identity| &identity.external_id);
    let tier = tier_of(made.key.as_deref(), made.identity(), None);
    let mut sheet = Sheet::new();
    for (name, value) in [(&KEY_ID, key_id), (&IDENTITY, identity), (&TIER, tier)] {
        sheet.header(name, |out| write_plain(value, out));
    }
    stand(&mut sheet, ruling);
    sheet.empty(StatusCode::OK)
}

pub fn denied(call: &Call<'_>, ruling: &Ruling<'_>) -> Reply {
    let made = ruling.made();
    let status = ruling.status();
    let mut sheet = Sheet::new();
    stand(&mut sheet, ruling);
    sheet.challenge(status);
    sheet.problem(
        status,
        &wire::Denial {
            kind: format!("{TYPE_BASE}{}", ruling.kind()).into(),
            title: status.canonical_reason().unwrap_or("Denied").into(),
            status: status.as_u16().into(),
            detail: ruling.detail(),
            code: Some(code(made.verdict)),
            rule: made.rule.as_ref().map(|rule| shown(&rule.name).into()),
            limit: made.in_the_way().map(|limit| shown(&limit.terms.name).into()),
            retry_after_ms: ruling.retry_after_ms(),
            violated_policies: ruling
                .violated()
                .map(|limit| shown(&limit.terms.name).into())
                .collect(),
            request_id: call.id.as_str().into(),
        },
    )
}

/// There was no decision.
pub fn refused(call: &Call<'_>, refusal: Refusal) -> Reply {
    tell(call.id, &refusal);
    let (status, retry_after_s) = (refusal.status(), refusal.retry_after_s());
    let problem = refusal.into_problem();
    let mut sheet = Sheet::new();
    sheet.retry_after(retry_after_s);
    sheet.challenge(status);
    sheet.problem(
        status,
        &wire::Denial {
            kind: problem.kind,
            title: problem.title,
            status: status.as_u16().into(),
            detail: problem.detail,
            code: None,
            rule: None,
            limit: None,
            retry_after_ms: retry_after_s.map(|seconds| seconds * 1_000),
            violated_policies: Vec::new(),
            request_id: call.id.as_str().into(),
        },
    )
}

/// Without anything that could end the header or the value: a header that cannot be written would be missing.
fn write_plain(value: &str, out: &mut Vec<u8>) {
    out.extend(value.bytes().map(|byte| if byte.is_ascii_graphic() { byte } else { b'?' }));
}
