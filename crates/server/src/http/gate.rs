//! `gate.check` and `gate.explain`: one question about a whole request. Each handler is the life of its request.

mod lines;

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use smallvec::SmallVec;
use tollkeeper_account::Kind;
use tollkeeper_core::{Cost, Millis, PermissionQuery, RequestPath, Signature, Use};
use tollkeeper_decide::{AskedLimit, Purpose, Reach, RootKey, Told, VerifyAsk, WarmKey, tier_of};
use tollkeeper_wire as wire;

use super::call::{Call, permit};
use super::fields::Standing;
use super::idempotency::{self, Once, with_key_fault};
use super::noting::{Noted, note};
use super::reply::Reply;
use super::sheet::Sheet;
use super::verify;
use crate::app::App;
use crate::signing::SignedRequest;
use crate::status::{Refusal, Ruling};

const CHECK: &str = "/v2/gate.check";

pub async fn check(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let mut request: Box<wire::CheckRequest<'_>> = call.request().map_err(|refusal| {
        with_key_fault(call.headers, verify::with_query_fault(call.body, refusal))
    })?;
    upper_case(&mut request);
    let retried = idempotency::key_of(call.headers)?;
    let purpose = if request.dry_run { Purpose::Look } else { Purpose::Spend };
    let signature = signature(call.app, &request);
    let (wanted, limits) = asked(&request, signature.as_deref())?;
    let caller = call.caller().await?;
    permit(&caller, "gate", "*", "check")?;
    let mut ask = ask(call, &request, caller, wanted, limits);
    (ask.purpose, ask.once) = (purpose, retried.is_some());
    let warm = warm(call, &ask).await?;
    let answer = |warm| {
        call.app.ledger.expect(&warm, call.now);
        let decided = call.app.decider.verify(warm, call.now);
        let answer = call.app.ledger.record_verified(Kind::Gate, decided);
        let ruling = Ruling::of(&answer);
        note(call, noted(&ask, &request), &ruling);
        checked(call, &ruling, &ask.told)
    };
    match retried {
        None => Ok(answer(warm)),
        Some(key) => {
            let root_key_id = &ask.caller.id;
            let once = Once { root_key_id, route: CHECK, key, body: call.body, now: call.now };
            call.app.idempotency.answer(once, || answer(warm))
        }
    }
}

pub async fn explain(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::ExplainRequest<'_> =
        call.request().map_err(|refusal| verify::with_query_fault(call.body, refusal))?;
    let at = moment_of(request.at, call.now)?;
    let mut request = request.into_check();
    upper_case(&mut request);
    let signature = signature(call.app, &request);
    let (wanted, limits) = asked(&request, signature.as_deref())?;
    let caller = call.caller().await?;
    permit(&caller, "gate", "*", "explain")?;
    let mut ask = ask(call, &request, caller, wanted, limits);
    (ask.purpose, ask.at) = (Purpose::Explain, Some(at));
    let warm = warm(call, &ask).await?;
    let decided = call.app.decider.verify(warm, at);
    let answer = call.app.ledger.record_verified(Kind::Gate, decided);
    Ok(explained(call, &Ruling::of(&answer), &ask.told))
}

/// Nothing that was counted since could be taken back, so the past is not to be had. Who asks for now by a clock of its
/// own is answered for now.
fn moment_of(at: Option<u64>, now: Millis) -> Result<Millis, Refusal> {
    /// A request under way, and clocks that are kept by NTP, badly.
    const NOW_MS: u64 = 5_000;
    let at = at.map_or(now, Millis);
    if now.since(at) <= NOW_MS {
        return Ok(at.max(now));
    }
    let fix = "Send a moment from now on, in unix milliseconds, or leave it out.";
    Err(Refusal::Fields(vec![wire::FieldError::new("body.at", "Is in the past.", fix)]))
}

/// A proxy that spells a method its own way must not walk around the rules for it.
fn upper_case(request: &mut wire::CheckRequest<'_>) {
    if let Some(method) = &mut request.method
        && let Cow::Owned(upper) = verify::upper(method)
    {
        *method = upper.into();
    }
}

fn signature<'a>(
    app: &'a App,
    request: &'a wire::CheckRequest<'_>,
) -> Option<Box<SignedRequest<'a>>> {
    let (given, path) = (request.signature.as_deref(), request.path.as_deref());
    SignedRequest::told(&app.keyring, given, request.method.as_deref(), path)
}

/// What the request asks for by itself. Looked at before the caller is, as the contract has it.
fn asked<'a>(
    request: &'a wire::CheckRequest<'_>,
    signature: Option<&'a SignedRequest<'_>>,
) -> Result<(Use<'a>, Vec<AskedLimit<'a>>), Refusal> {
    Ok((wanted(request, signature)?, verify::limits(request.ratelimits.as_deref())?))
}

/// Not async: it is large, and is made where it stays.
fn ask<'a>(
    call: &Call<'_>,
    request: &'a wire::CheckRequest<'_>,
    caller: Arc<RootKey>,
    wanted: Use<'a>,
    limits: Vec<AskedLimit<'a>>,
) -> VerifyAsk<'a> {
    let hashed = |text: &str| verify::key_text(call, text, &caller.tenant);
    let key = request.key.as_ref().map(|key| hashed(key.reveal()));
    VerifyAsk {
        caller,
        reach: Reach::Tenant,
        key,
        wanted,
        told: Told {
            tier: request.tier.as_deref(),
            external_id: request.external_id.as_deref(),
            method: request.method.as_deref(),
            path: request.path.as_deref().map(RequestPath::new),
        },
        projects: SmallVec::new(),
        limits,
        // The wire has checked its bounds.
        cost: request.cost.and_then(Cost::new).unwrap_or(Cost::ONE),
        credits: request.credits.as_ref().map_or(1, |credits| credits.cost),
        bytes: request.bytes.unwrap_or(0),
        purpose: Purpose::Spend,
        once: false,
        at: None,
        waiting: None,
    }
}

fn noted<'a>(ask: &'a VerifyAsk<'_>, request: &'a wire::CheckRequest<'_>) -> Noted<'a> {
    Noted {
        tenant_id: &ask.caller.tenant.id,
        key_text: request.key.as_ref().map(wire::KeyText::reveal),
        external_id: ask.told.external_id,
        ip: ask.wanted.ip,
        method: request.method.as_deref(),
        path: request.path.as_deref(),
    }
}

fn wanted<'a>(
    request: &'a wire::CheckRequest<'_>,
    signature: Option<&'a SignedRequest<'_>>,
) -> Result<Use<'a>, Refusal> {
    let query = request.permissions.as_deref().map(PermissionQuery::parse).transpose();
    Ok(Use {
        ip: request.ip.as_deref().and_then(|ip| ip.parse::<IpAddr>().ok()),
        referer: request.referer.as_deref(),
        source: request.source.as_deref(),
        signature: signature.map(|given| given as &dyn Signature),
        permissions: query.map_err(Refusal::PermissionQuery)?,
    })
}

pub async fn warm(call: &mut Call<'_>, ask: &VerifyAsk<'_>) -> Result<WarmKey, Refusal> {
    let (app, timing, tally) = (call.app, &mut call.timing, call.app.ledger.page());
    let mut see = |cache, freshness| timing.note(tally, cache, freshness);
    Ok(app.decider.warm_key(ask, call.now, &mut see).await?)
}

/// Where the request stands, in the headers that every front sends. `Retry-After` belongs to the whole of it.
pub fn stand(sheet: &mut Sheet, ruling: &Ruling<'_>) {
    let retry_after_s = ruling.retry_after_ms().map(|ms| ms.div_ceil(1_000).max(1));
    match ruling.tightest() {
        Some(tightest) => {
            sheet.standing_until(&Standing::verified(tightest, ruling.at()), retry_after_s);
        }
        None => sheet.retry_after(retry_after_s),
    }
}

fn checked(call: &Call<'_>, ruling: &Ruling<'_>, told: &Told<'_>) -> Reply {
    let (made, at) = (ruling.made(), ruling.at());
    let mut sheet = Sheet::for_limits(made.limits.len());
    stand(&mut sheet, ruling);
    sheet.timing(&call.timing);
    sheet.written(
        call.id,
        wire::CheckReply {
            allowed: made.passed(),
            code: verify::code(made.verdict),
            status: ruling.status().as_u16().into(),
            rule: made.rule.as_ref().map(|rule| (&*rule.name).into()),
            message: ruling.message().map(Into::into),
            delay_ms: ruling.delay_ms(),
            retry_after_ms: ruling.retry_after_ms(),
            key_id: made.key.as_ref().map(|key| (&*key.record.id).into()),
            identity: made.identity().map(verify::identity),
            credits: made.credits.map(|taken| taken.balance),
            limits: lines::limits(made, told, at),
            degraded: made.is_degraded(),
        },
    )
}

fn explained(call: &Call<'_>, ruling: &Ruling<'_>, told: &Told<'_>) -> Reply {
    let (made, at) = (ruling.made(), ruling.at());
    let mut sheet = Sheet::for_limits(made.limits.len());
    stand(&mut sheet, ruling);
    sheet.timing(&call.timing);
    sheet.success(
        call.id,
        wire::ExplainReply {
            allowed: made.passed(),
            code: verify::code(made.verdict),
            status: ruling.status().as_u16().into(),
            reason: ruling.detail(),
            tier: tier_of(made.key.as_deref(), made.identity(), told.tier).into(),
            rule: made.rule.as_ref().map(|rule| (&*rule.name).into()),
            delay_ms: ruling.delay_ms(),
            retry_after_ms: ruling.retry_after_ms(),
            matched: lines::matched(made),
            unmatched: lines::unmatched(made),
            limits: lines::limits(made, told, at),
        },
    )
}
