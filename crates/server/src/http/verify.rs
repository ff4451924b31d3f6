//! `keys.verifyKey`: key, permissions, limits and credits in one call. The handler is the life of its request.

use std::borrow::Cow;
use std::net::IpAddr;

use tollkeeper_account::Kind;
use tollkeeper_core::{
    Algorithm, Cost, Millis, PermissionQuery, RequestPath, Signature, Use, Verdict, Window,
    key_is_intact,
};
use tollkeeper_decide::{AskedLimit, KeyText, LoadedKey, Purpose, Reach, Tenant, Told, VerifyAsk};
use tollkeeper_wire as wire;

use super::call::Call;
use super::gate;
use super::idempotency::{self, Once, with_key_fault};
use super::noting::{Noted, note};
use super::ratelimit::{limit_of, sharing_of};
use super::reply::Reply;
use super::sheet::Sheet;
use crate::keyring::Keyring;
use crate::signing::SignedRequest;
use crate::status::{Refusal, Ruling};

const ROUTE: &str = "/v2/keys.verifyKey";

pub async fn verify(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::VerifyKeyRequest<'_> = call
        .request()
        .map_err(|refusal| with_key_fault(call.headers, with_query_fault(call.body, refusal)))?;
    let retried = idempotency::key_of(call.headers)?;
    let method = request.method.as_deref().map(upper);
    let (given, path) = (request.signature.as_deref(), request.path.as_deref());
    let signature = SignedRequest::told(&call.app.keyring, given, method.as_deref(), path);
    let wanted = wanted(&request, signature.as_deref())?;
    let limits = limits(request.ratelimits.as_deref())?;
    let caller = call.caller().await?;
    let ask = VerifyAsk {
        key: Some(key_text(call, request.key.reveal(), &caller.tenant)),
        caller,
        reach: Reach::Verify,
        wanted,
        told: Told {
            method: method.as_deref(),
            path: request.path.as_deref().map(RequestPath::new),
            ..Told::default()
        },
        projects: request.keyspaces.iter().flatten().map(AsRef::as_ref).collect(),
        limits,
        cost: Cost::ONE,
        credits: request.credits.as_ref().map_or(1, |credits| credits.cost),
        purpose: Purpose::Spend,
        bytes: 0,
        once: retried.is_some(),
        at: None,
        waiting: None,
    };
    let (app, timing, tally) = (call.app, &mut call.timing, call.app.ledger.page());
    let mut see = |cache, freshness| timing.note(tally, cache, freshness);
    let warm = app.decider.warm_key(&ask, call.now, &mut see).await?;
    let answer = |warm| {
        let decided = app.decider.verify(warm, call.now);
        let answer = app.ledger.record_verified(Kind::Verify, decided);
        let noted = Noted {
            tenant_id: &ask.caller.tenant.id,
            key_text: Some(request.key.reveal()),
            external_id: ask.told.external_id,
            ip: ask.wanted.ip,
            method: request.method.as_deref(),
            path: request.path.as_deref(),
        };
        let ruling = Ruling::of(&answer);
        note(call, noted, &ruling);
        render(call, &ruling)
    };
    match retried {
        None => Ok(answer(warm)),
        Some(key) => {
            let root_key_id = &ask.caller.id;
            let once = Once { root_key_id, route: ROUTE, key, body: call.body, now: call.now };
            app.idempotency.answer(once, || answer(warm))
        }
    }
}

/// A body that is refused for its fields may hold a bad permission query too: that is said at once.
#[cold]
pub fn with_query_fault(body: &[u8], refusal: Refusal) -> Refusal {
    const PLACE: &str = "body.permissions";
    let Refusal::Fields(mut errors) = refusal else { return refusal };
    let body: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let query = body.as_ref().and_then(|body| body.get("permissions")?.as_str());
    let fault = query.and_then(|query| PermissionQuery::parse(query).err());
    if let Some(fault) = fault.filter(|_| !errors.iter().any(|error| error.location == PLACE)) {
        let wrong = format!("Is wrong at character {}: found {}.", fault.at + 1, fault.found);
        let fix = format!("Expected there: {}.", fault.expected);
        errors.push(wire::FieldError::new(PLACE, wrong, fix));
    }
    Refusal::Fields(errors)
}

/// Rules write methods in upper case; people who fill in a field by hand do not always.
pub fn upper(method: &str) -> Cow<'_, str> {
    if method.bytes().any(|byte| byte.is_ascii_lowercase()) {
        return method.to_ascii_uppercase().into();
    }
    method.into()
}

/// The text is hashed here and goes no further.
pub fn key_text(call: &Call<'_>, text: &str, tenant: &Tenant) -> KeyText {
    let ours = call.app.keyring.hash(text.as_bytes());
    let imported =
        if tenant.has_imports { Keyring::imported_hash(&tenant.id, text.as_bytes()) } else { ours };
    KeyText { ours, imported, intact: key_is_intact(text) }
}

fn wanted<'a>(
    request: &'a wire::VerifyKeyRequest<'_>,
    signature: Option<&'a SignedRequest<'_>>,
) -> Result<Use<'a>, Refusal> {
    let query = request.permissions.as_deref().map(PermissionQuery::parse).transpose();
    Ok(Use {
        // The wire has checked its spelling.
        ip: request.ip.as_deref().and_then(|ip| ip.parse::<IpAddr>().ok()),
        referer: request.referer.as_deref(),
        source: request.source.as_deref(),
        signature: signature.map(|given| given as &dyn Signature),
        permissions: query.map_err(Refusal::PermissionQuery)?,
    })
}

pub fn limits<'a>(
    asked: Option<&'a [wire::VerifyRatelimit<'_>]>,
) -> Result<Vec<AskedLimit<'a>>, Refusal> {
    let asked = asked.unwrap_or_default().iter().map(|asked| {
        let own = match (asked.limit, asked.duration) {
            (Some(limit), Some(duration)) => {
                Some(limit_of(limit, duration, asked.algorithm.unwrap_or_default(), asked.burst)?)
            }
            _ => None,
        };
        let cost = Cost::new(asked.cost.unwrap_or(1)).unwrap_or(Cost::ONE);
        let sharing = sharing_of(asked.consistency, asked.on_outage);
        Ok(AskedLimit { name: &asked.name, cost, own, sharing })
    });
    asked.collect()
}

fn render(call: &Call<'_>, ruling: &Ruling<'_>) -> Reply {
    let made = ruling.made();
    let mut sheet = Sheet::for_limits(made.limits.len());
    gate::stand(&mut sheet, ruling);
    sheet.timing(&call.timing);
    match &made.key {
        None => sheet.success(call.id, wire::VerifyKeyReply::bare(wire::Code::NotFound)),
        Some(key) => sheet.success(call.id, full(ruling, key)),
    }
}

fn full<'a>(ruling: &Ruling<'a>, key: &'a LoadedKey) -> wire::VerifyKeyReply<'a> {
    let (made, record) = (ruling.made(), &key.record);
    let counted = made.limits.iter().filter(|one| !one.is_shadow());
    let limits: Vec<_> = counted.map(|one| limit_line(one, ruling.at())).collect();
    wire::VerifyKeyReply {
        key_id: Some(record.id.as_ref().into()),
        keyspace_id: Some(record.project.id.as_ref().into()),
        name: record.name.as_deref().map(Into::into),
        meta: record.meta.as_deref().and_then(wire::Metadata::stored),
        expires: record.expires.map(|at| at.0),
        credits: made.credits.map(|taken| taken.balance),
        enabled: Some(record.enabled),
        permissions: record.permissions.as_slice().into(),
        roles: record.roles.as_slice().into(),
        identity: record.identity.as_ref().map(identity),
        ratelimits: limits.into(),
        delay_ms: ruling.delay_ms(),
        revoked_at: match made.verdict {
            Verdict::Revoked { at } => Some(at.0),
            _ => None,
        },
        ..wire::VerifyKeyReply::bare(code(made.verdict))
    }
}

fn limit_line(one: &tollkeeper_decide::VerifiedLimit, now: Millis) -> wire::VerifiedLimit<'_> {
    let counted = duration_ms(one.limit.algorithm);
    wire::VerifiedLimit {
        id: one.terms.id.as_ref().into(),
        name: one.terms.name.as_ref().into(),
        // What `remaining` counts down from: of a bucket its capacity, as everywhere.
        limit: one.outcome.limit,
        duration: one.written.map_or(counted, |written| written.width.millis()),
        reset: one.outcome.reset.0,
        remaining: one.outcome.remaining,
        exceeded: one.denies(),
        auto_apply: one.terms.auto_apply,
        retry_after_ms: one.outcome.retry_after_ms(now),
        degraded: one.degraded,
    }
}

pub fn identity(identity: &tollkeeper_core::IdentityRecord) -> wire::Identity<'_> {
    let limits: Vec<_> = identity.limits.iter().map(stored_limit).collect();
    wire::Identity {
        id: identity.id.as_ref().into(),
        external_id: identity.external_id.as_ref().into(),
        meta: identity.meta.as_deref().and_then(wire::Metadata::stored),
        ratelimits: limits.into(),
    }
}

fn stored_limit(one: &tollkeeper_core::StoredLimit) -> wire::RatelimitReply<'_> {
    wire::RatelimitReply {
        id: one.id.as_ref().into(),
        name: one.name.as_ref().into(),
        limit: one.limit.quota.get(),
        duration: duration_ms(one.limit.algorithm),
        auto_apply: one.auto_apply,
        algorithm: None,
        burst: None,
        consistency: None,
        on_outage: None,
    }
}

/// Stored limits have a width; a calendar month has none, and no key limit is one.
pub fn duration_ms(algorithm: Algorithm) -> u64 {
    match algorithm {
        Algorithm::FixedWindow(Window::Aligned(width))
        | Algorithm::SlidingWindow(width)
        | Algorithm::SlidingLog(width)
        | Algorithm::TokenBucket { width, .. } => width.millis(),
        Algorithm::FixedWindow(Window::Day) => 86_400_000,
        Algorithm::FixedWindow(Window::Month) => 31 * 86_400_000,
    }
}

pub fn code(verdict: Verdict) -> wire::Code {
    match verdict {
        Verdict::Valid => wire::Code::Valid,
        Verdict::NotFound => wire::Code::NotFound,
        Verdict::Forbidden | Verdict::Unsigned(_) => wire::Code::Forbidden,
        Verdict::InsufficientPermissions => wire::Code::InsufficientPermissions,
        Verdict::UsageExceeded => wire::Code::UsageExceeded,
        Verdict::RateLimited => wire::Code::RateLimited,
        Verdict::Unavailable => wire::Code::Unavailable,
        Verdict::Disabled => wire::Code::Disabled,
        Verdict::Revoked { .. } => wire::Code::Revoked,
        Verdict::Expired => wire::Code::Expired,
        Verdict::Blocked => wire::Code::Blocked,
    }
}
