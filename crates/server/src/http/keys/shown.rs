//! Keys and their credits as the wire shows them. A key's text is added by whoever may see it.

use tollkeeper_core::RefillEvery;
use tollkeeper_store::{Credits, KeyView};
use tollkeeper_wire as wire;

use super::super::identities;
use super::super::limit_terms::shown_limits;

pub fn key<'a>(view: &'a KeyView, plaintext: Option<wire::KeyText<'a>>) -> wire::Key<'a> {
    let boxed = |texts: &[String]| texts.iter().map(|text| text.as_str().into()).collect();
    let (permissions, roles): (Vec<Box<str>>, Vec<Box<str>>) =
        (boxed(&view.permissions), boxed(&view.roles));
    let ranges: Vec<Box<str>> =
        view.ip_allowlist.iter().map(|range| range.to_string().into()).collect();
    wire::Key {
        key_id: view.id.as_str().into(),
        start: view.start.as_str().into(),
        enabled: view.enabled,
        created_at: view.created_at.0,
        name: view.name.as_deref().map(Into::into),
        meta: view.meta.as_deref().and_then(wire::Metadata::stored),
        updated_at: view.updated_at.map(|at| at.0),
        last_used_at: view.last_used_at.map(|at| at.0),
        expires: view.expires.map(|at| at.0),
        permissions: permissions.into(),
        roles: roles.into(),
        credits: view.credits.map(|own| credits(Some(own))),
        identity: view.identity.as_ref().map(identities::shown),
        plaintext,
        ratelimits: shown_limits(&view.limits).into(),
        tier: view.tier.as_deref().map(Into::into),
        ip_allowlist: ranges.into(),
        signing: view.signing.is_some(),
        revoked_at: view.revoked_at.map(|at| at.0),
        revoked_reason: view.revoked_reason.as_deref().map(Into::into),
    }
}

/// Without any limit on them, `remaining` is null.
pub fn credits(credits: Option<Credits>) -> wire::CreditsReply {
    let refill = credits.and_then(|credits| credits.refill).map(|refill| {
        let (interval, refill_day) = match refill.every {
            RefillEvery::Day => (wire::RefillInterval::Daily, None),
            RefillEvery::Month { on } => (wire::RefillInterval::Monthly, Some(u64::from(on))),
        };
        wire::RefillReply { interval, amount: refill.amount, refill_day }
    });
    wire::CreditsReply { remaining: credits.map(|credits| credits.remaining), refill }
}
