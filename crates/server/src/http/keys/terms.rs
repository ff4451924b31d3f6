//! From what a caller asks of a key to what the store keeps. The wire has checked every bound and spelling already.

use tollkeeper_core::{Cidr, CreditRefill, Millis, RefillEvery, SealedSecret};
use tollkeeper_store::{Credits, CreditsPatch, KeyPatch, KeyTerms, Patch};
use tollkeeper_wire as wire;

use super::super::limit_terms::limit_terms;
use super::super::stored::{self, owned, texts};
use crate::keyring::Keyring;
use crate::signing;
use crate::status::Refusal;

/// A new key and one that comes from elsewhere spell their terms alike.
macro_rules! key_terms {
    ($asked:expr, $signing:expr) => {{
        let asked = $asked;
        Ok(KeyTerms {
            name: owned(asked.name.as_ref()),
            meta: asked.meta.as_ref().map(|meta| meta.as_str().to_owned()),
            enabled: asked.enabled.unwrap_or(true),
            expires: asked.expires.map(Millis),
            ip_allowlist: ranges(asked.ip_allowlist.as_deref().unwrap_or_default())?,
            tier: owned(asked.tier.as_ref()),
            signing: $signing,
            external_id: owned(asked.external_id.as_ref()),
            credits: asked.credits.as_ref().and_then(credits),
            limits: limit_terms(asked.ratelimits.as_deref().unwrap_or_default())?,
            permissions: texts(asked.permissions.as_deref().unwrap_or_default()),
            roles: texts(asked.roles.as_deref().unwrap_or_default()),
        })
    }};
}

/// For the key of this id, which is what its secret is sealed for.
pub fn of_new(
    keyring: &Keyring,
    key_id: &str,
    asked: &wire::CreateKeyRequest<'_>,
) -> Result<KeyTerms, Refusal> {
    key_terms!(asked, sealed(keyring, key_id, asked.signing.as_ref())?)
}

pub fn of_foreign(
    keyring: &Keyring,
    key_id: &str,
    asked: &wire::MigratingKey<'_>,
) -> Result<KeyTerms, Refusal> {
    key_terms!(asked, sealed(keyring, key_id, asked.signing.as_ref())?)
}

pub fn patch(
    keyring: &Keyring,
    key_id: &str,
    asked: wire::UpdateKeyRequest<'_>,
) -> Result<KeyPatch, Refusal> {
    Ok(KeyPatch {
        name: stored::patch(asked.name, String::from),
        external_id: stored::patch(asked.external_id, String::from),
        meta: stored::patch(asked.meta, |meta| meta.as_str().to_owned()),
        expires: stored::patch(asked.expires, Millis),
        enabled: asked.enabled,
        tier: stored::patch(asked.tier, String::from),
        ip_allowlist: match asked.ip_allowlist {
            wire::Patch::Keep => None,
            wire::Patch::Clear => Some(Vec::new()),
            wire::Patch::Set(asked) => Some(ranges(&asked)?),
        },
        signing: match &asked.signing {
            wire::Patch::Keep => Patch::Keep,
            wire::Patch::Clear => Patch::Clear,
            wire::Patch::Set(secret) => {
                Patch::Set(signing::seal(keyring, key_id, secret.reveal())?)
            }
        },
        credits: stored::patch(asked.credits, credits_patch),
        limits: match asked.ratelimits {
            wire::Patch::Keep => Patch::Keep,
            wire::Patch::Clear => Patch::Clear,
            wire::Patch::Set(asked) => Patch::Set(limit_terms(&asked)?),
        },
        permissions: asked.permissions.as_deref().map(texts),
        roles: asked.roles.as_deref().map(texts),
    })
}

fn sealed(
    keyring: &Keyring,
    key_id: &str,
    secret: Option<&wire::KeyText<'_>>,
) -> Result<Option<SealedSecret>, Refusal> {
    secret.map(|secret| signing::seal(keyring, key_id, secret.reveal())).transpose()
}

fn credits(asked: &wire::Credits) -> Option<Credits> {
    let refill = asked.refill.as_ref().map(refill);
    asked.remaining.map(|remaining| Credits { remaining, refill })
}

fn credits_patch(asked: wire::CreditsPatch) -> CreditsPatch {
    CreditsPatch {
        remaining: stored::patch(asked.remaining, |remaining| remaining),
        refill: stored::patch(asked.refill, |asked| refill(&asked)),
    }
}

fn refill(asked: &wire::Refill) -> CreditRefill {
    let day = asked.refill_day.and_then(|day| u8::try_from(day).ok());
    let every = match asked.interval {
        wire::RefillInterval::Daily => RefillEvery::Day,
        wire::RefillInterval::Monthly => RefillEvery::Month { on: day.unwrap_or(1) },
    };
    CreditRefill { every, amount: asked.amount }
}

fn ranges(asked: &[wire::Text<'_>]) -> Result<Vec<Cidr>, Refusal> {
    let misread = |_| Refusal::Unexpected("a checked address range cannot be read".into());
    asked.iter().map(|range| range.parse().map_err(misread)).collect()
}
