//! `ratelimit.limit` and `ratelimit.multiLimit`: the hot path. Each handler is the life of its request.

use smallvec::SmallVec;
use tollkeeper_account::{Answer, Kind};
use tollkeeper_core::{Cost, Limit, Quota, Sharing, Width, Window};
use tollkeeper_decide::{LimitAsk, LimitCheck, Limited, LimitedOne, Missing, Warm};
use tollkeeper_wire as wire;

use super::call::Call;
use super::fields::Standing;
use super::idempotency::{self, Once, with_key_fault};
use super::noting::note_limited;
use super::reply::Reply;
use super::sheet::Sheet;
use crate::status::Refusal;

pub async fn limit(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::LimitRequest<'_> =
        call.request().map_err(|refusal| with_key_fault(call.headers, refusal))?;
    let key = idempotency::key_of(call.headers)?;
    let ask = ask(call, SmallVec::from_iter([check(&request)?]), key).await?;
    let warm = warm(call, &ask).await?;
    once(call, &ask, "/v2/ratelimit.limit", key, || {
        let answer = decide(call, Kind::Limit, warm);
        note_limited(call, &ask, &answer);
        limit_reply(call, &request, &answer)
    })
}

pub async fn multi_limit(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::MultiLimitRequest<'_> =
        call.request().map_err(|refusal| with_key_fault(call.headers, refusal))?;
    let key = idempotency::key_of(call.headers)?;
    let ask = ask(call, request.0.iter().map(check).collect::<Result<_, _>>()?, key).await?;
    let warm = warm(call, &ask).await?;
    once(call, &ask, "/v2/ratelimit.multiLimit", key, || {
        let answer = decide(call, Kind::MultiLimit, warm);
        note_limited(call, &ask, &answer);
        multi_limit_reply(call, &request, &answer)
    })
}

async fn ask<'a>(
    call: &mut Call<'_>,
    checks: SmallVec<[LimitCheck<'a>; 1]>,
    key: Option<&[u8]>,
) -> Result<LimitAsk<'a>, Refusal> {
    let caller = call.caller().await?;
    let once = key.is_some();
    Ok(LimitAsk { caller, action: "limit", missing: Missing::Create, once, checks })
}

async fn warm(call: &mut Call<'_>, ask: &LimitAsk<'_>) -> Result<Warm, Refusal> {
    let (app, timing, tally) = (call.app, &mut call.timing, call.app.ledger.page());
    let mut see = |cache, freshness| timing.note(tally, cache, freshness);
    Ok(app.decider.warm(ask, call.now, &mut see).await?)
}

/// Nothing comes between deciding and recording.
fn decide(call: &Call<'_>, kind: Kind, warm: Warm) -> Answer<Limited> {
    let decided = call.app.decider.limit(warm, call.now);
    call.app.ledger.record(kind, decided)
}

/// Decides now, or repeats the answer that this request's `Idempotency-Key` already has.
fn once(
    call: &Call<'_>,
    ask: &LimitAsk<'_>,
    route: &'static str,
    key: Option<&[u8]>,
    answer: impl FnOnce() -> Reply,
) -> Result<Reply, Refusal> {
    let Some(key) = key else { return Ok(answer()) };
    let root_key_id = &ask.caller.id;
    call.app
        .idempotency
        .answer(Once { root_key_id, route, key, body: call.body, now: call.now }, answer)
}

fn limit_reply(
    call: &Call<'_>,
    request: &wire::LimitRequest<'_>,
    answer: &Answer<Limited>,
) -> Reply {
    let mut sheet = Sheet::new();
    let made = answer.made();
    let reply = made.limits.first().map(|one| {
        sheet.standing(&Standing::new(&request.namespace, one, answer.at()));
        wire::LimitReply {
            success: made.passed,
            limit: one.outcome.limit,
            remaining: one.outcome.remaining,
            reset: one.outcome.reset.0,
            override_id: one.override_id.as_deref().map(Into::into),
            retry_after_ms: one.outcome.retry_after_ms(answer.at()),
            degraded: one.degraded,
        }
    });
    sheet.timing(&call.timing);
    sheet.success(call.id, reply)
}

fn multi_limit_reply(
    call: &Call<'_>,
    request: &wire::MultiLimitRequest<'_>,
    answer: &Answer<Limited>,
) -> Reply {
    let mut sheet = Sheet::new();
    let made = answer.made();
    if let Some((at, tightest)) = made.tightest() {
        let policy = request.0.get(at).map_or("", |asked| &asked.namespace);
        sheet.standing(&Standing::new(policy, tightest, answer.at()));
    }
    sheet.timing(&call.timing);
    let lines = request.0.iter().zip(&made.limits).map(|(asked, one)| line(asked, one, answer));
    sheet.success(call.id, wire::MultiLimitReply { passed: made.passed, limits: lines.collect() })
}

fn check<'a>(request: &'a wire::LimitRequest<'_>) -> Result<LimitCheck<'a>, Refusal> {
    let cost = Cost::new(request.cost).ok_or_else(out_of_bounds)?;
    let limit = limit_of(request.limit, request.duration, request.algorithm, request.burst)?;
    let sharing = sharing_of(request.consistency, request.on_outage);
    let (namespace, identifier) = (&*request.namespace, &*request.identifier);
    Ok(LimitCheck { namespace, identifier, limit, cost, sharing })
}

/// What a request says about how its limit is shared.
pub fn sharing_of(
    consistency: Option<wire::Consistency>,
    on_outage: Option<wire::OnOutage>,
) -> Sharing {
    Sharing::from_words(
        consistency.map(wire::Consistency::as_str),
        on_outage.map(wire::OnOutage::as_str),
    )
}

/// The wire has checked every bound already; a number that still does not fit is our own mistake.
pub fn limit_of(
    amount: u64,
    duration_ms: u64,
    algorithm: wire::Algorithm,
    burst: Option<u64>,
) -> Result<Limit, Refusal> {
    let quota = Quota::new(amount).ok_or_else(out_of_bounds)?;
    let width = Width::from_millis(duration_ms).ok_or_else(out_of_bounds)?;
    let burst = burst.map(|burst| Quota::new(burst).ok_or_else(out_of_bounds)).transpose()?;
    match algorithm {
        wire::Algorithm::SlidingWindow => Ok(Limit::sliding_window(quota, width)),
        wire::Algorithm::FixedWindow => Ok(Limit::fixed_window(quota, Window::Aligned(width))),
        wire::Algorithm::TokenBucket => Ok(Limit::token_bucket(quota, width, burst)),
        wire::Algorithm::SlidingLog => Limit::sliding_log(quota, width).ok_or_else(out_of_bounds),
    }
}

fn out_of_bounds() -> Refusal {
    Refusal::Unexpected("a checked request holds a number out of bounds".into())
}

fn line<'a>(
    asked: &'a wire::LimitRequest<'_>,
    one: &'a LimitedOne,
    answer: &Answer<Limited>,
) -> wire::MultiLimitLine<'a> {
    wire::MultiLimitLine {
        namespace: asked.namespace.as_ref().into(),
        identifier: asked.identifier.as_ref().into(),
        limit: one.outcome.limit,
        remaining: one.outcome.remaining,
        reset: one.outcome.reset.0,
        passed: one.outcome.admitted(),
        override_id: one.override_id.as_deref().map(Into::into),
        retry_after_ms: one.outcome.retry_after_ms(answer.at()),
        degraded: one.degraded,
    }
}
