//! `quotas.*`: what one identity may do, and whether it may do anything. In force on this node before a change is answered.

use tollkeeper_core::{Millis, Width};
use tollkeeper_store::{QuotaPatch, QuotaView, Thing};
use tollkeeper_wire as wire;
use wire::quotas::TIER_DEFAULT;

use super::call::{Call, permit};
use super::desk::{self, Author, reply};
use super::reply::Reply;
use super::route::QuotaCall;
use super::stored::{owned, patch};
use crate::status::Refusal;

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

pub async fn handle(which: QuotaCall, call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match which {
        QuotaCall::Get => get(call).await,
        QuotaCall::Set => set(call).await,
        QuotaCall::Block => block(call).await,
        QuotaCall::Unblock => unblock(call).await,
    }
}

async fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::GetQuotaRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "quotas", "*", "get")?;
    let (tenant, name) = (caller.tenant.id.clone(), request.external_id.to_string());
    let now = call.now;
    let (found, totals) = desk::read(call, |store| async move {
        let found = store.quota(&tenant, &name).await?;
        Ok((found, store.identity_totals(&tenant, &name, now).await?))
    })
    .await?;
    let missing = || Refusal::not_found(Thing::Identity, &request.external_id);
    let found = found.ok_or_else(missing)?;
    let totals = totals.map(|totals| wire::QuotaTotals {
        today: totals.today.requests,
        month: totals.month.requests,
    });
    Ok(reply(call, wire::QuotaReply { totals, ..shown(&found, now) }))
}

async fn set(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::SetQuotaRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "quotas", "*", "set")?;
    let (author, name) = (Author::new(call, &caller), request.external_id.to_string());
    let number = |given: wire::Patch<u64>| patch(given, |number| number);
    let change = QuotaPatch {
        tier: patch(request.tier, wire::Text::into_owned),
        per_second: number(request.per_second),
        per_minute: number(request.per_minute),
        per_hour: number(request.per_hour),
        per_day: number(request.per_day),
        burst: number(request.burst),
    };
    let quota =
        desk::write(call, |store| async move { store.set_quota(author.by(), &name, change).await })
            .await?;
    Ok(reply(call, shown(&quota, call.now)))
}

async fn block(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::BlockRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "quotas", "*", "block")?;
    let until = request.until.map(Millis);
    if until.is_some_and(|until| until <= call.now) {
        let fix = "Send a moment that is still to come, or none to block for good.";
        let fault =
            wire::FieldError::new("body.until", "Is in the past: nothing would be blocked.", fix);
        return Err(Refusal::Fields(vec![fault]));
    }
    let (author, name) = (Author::new(call, &caller), request.external_id.to_string());
    let reason = owned(request.reason.as_ref());
    let quota = desk::write(call, |store| async move {
        store.block_identity(author.by(), &name, reason.as_deref(), until).await
    })
    .await?;
    Ok(reply(call, shown(&quota, call.now)))
}

async fn unblock(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::UnblockRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "quotas", "*", "unblock")?;
    let (author, name) = (Author::new(call, &caller), request.external_id.to_string());
    let quota =
        desk::write(call, |store| async move { store.unblock_identity(author.by(), &name).await })
            .await?;
    Ok(reply(call, shown(&quota, call.now)))
}

/// A block that has run out is none.
fn shown(view: &QuotaView, now: Millis) -> wire::QuotaReply<'_> {
    let quota = &view.quota;
    let block = view.block.as_ref();
    let block = block.filter(|block| block.until.is_none_or(|until| now < until));
    wire::QuotaReply {
        external_id: view.external_id.as_str().into(),
        tier: view.tier.as_deref().unwrap_or(TIER_DEFAULT).into(),
        limits: wire::QuotaLimits {
            per_second: quota.per_second,
            per_minute: quota.per_minute,
            per_hour: quota.per_hour,
            per_day: quota.per_day,
            burst: quota.burst,
        },
        totals: None,
        last_request_at: view.last_request_at.map(|at| at.0),
        reset_at: reset_at(view, now).map(|at| at.0),
        exceeded_count: view.exceeded_count,
        blocked: block.is_some(),
        block_reason: block.and_then(|block| block.reason.as_deref()).map(Into::into),
        blocked_until: block.and_then(|block| block.until).map(|until| until.0),
    }
}

/// Where the widest of its own limits begins anew; windows are aligned to the epoch, and so a day ends at midnight UTC.
fn reset_at(view: &QuotaView, now: Millis) -> Option<Millis> {
    let quota = &view.quota;
    let widths = [
        (quota.per_day, DAY_MS),
        (quota.per_hour, HOUR_MS),
        (quota.per_minute, MINUTE_MS),
        (quota.per_second, SECOND_MS),
    ];
    let (_, width) = widths.into_iter().find(|(limit, _)| limit.is_some())?;
    Some(Width::from_millis(width)?.start_of(now) + width)
}
