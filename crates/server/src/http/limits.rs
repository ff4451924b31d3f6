//! `limits.peek` and `limits.reset`: look at a counter without spending, and set counters back.

use tollkeeper_account::Kind;
use tollkeeper_core::{Cost, Limit, Override, Sharing};
use tollkeeper_decide::{LimitCheck, Namespace, Warm};
use tollkeeper_wire as wire;

use super::call::{Call, permit};
use super::fields::Standing;
use super::overrides::existing;
use super::ratelimit::limit_of;
use super::reply::{Reply, Sheet};
use crate::status::Refusal;

pub async fn peek(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::PeekRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "limits", "*", "peek")?;
    let namespace = existing(call, &caller, &request.namespace).await?;
    let limit = asked_or_overridden(&request, &namespace)?;
    let check = LimitCheck {
        namespace: &request.namespace,
        identifier: &request.identifier,
        limit,
        cost: Cost::PEEK,
        sharing: Sharing::default(),
    };
    let warm = Warm::peek(&call.app.decider, &caller.tenant.id, &namespace, &check).await?;
    let decided = call.app.decider.limit(warm, call.now);
    let answer = call.app.ledger.record(Kind::Peek, decided);
    let Some(one) = answer.made().limits.first() else {
        return Err(Refusal::Unexpected("a peek without an outcome".into()));
    };
    let mut sheet = Sheet::new();
    sheet.standing(&Standing::new(&request.namespace, one, answer.at()));
    sheet.timing(&call.timing);
    let outcome = &one.outcome;
    let used = outcome.limit - outcome.remaining.min(outcome.limit);
    let (limit, remaining, reset) = (outcome.limit, outcome.remaining, outcome.reset.0);
    Ok(sheet.success(call.id, wire::PeekReply { limit, used, remaining, reset }))
}

pub async fn reset(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::ResetRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "limits", "*", "reset")?;
    let namespace = existing(call, &caller, &request.namespace).await?;
    let cells = call.app.decider.reset(&namespace.tag, request.identifier.as_deref()).await?;
    let mut sheet = Sheet::new();
    sheet.timing(&call.timing);
    Ok(sheet.success(call.id, wire::ResetReply { cells }))
}

/// The limit to look at: the request's own, or the override's where the request names none.
fn asked_or_overridden(
    request: &wire::PeekRequest<'_>,
    namespace: &Namespace,
) -> Result<Limit, Refusal> {
    let algorithm = request.algorithm.unwrap_or_default();
    let found = namespace.overrides.find(&request.identifier);
    let amount = request.limit.or_else(|| found.map(|one: &Override| one.quota.get()));
    let duration = request.duration.or_else(|| found.map(|one| one.width.millis()));
    match (found, amount, duration) {
        // As a request would meet it, also where the algorithm cannot take the override's numbers.
        (Some(one), ..) => {
            let asked = limit_of(1, one.width.millis(), algorithm, request.burst)?;
            Ok(asked.overridden(one.quota, one.width))
        }
        (None, Some(amount), Some(duration)) => {
            limit_of(amount, duration, algorithm, request.burst)
        }
        _ => Err(Refusal::Fields(missing(amount, duration))),
    }
}

fn missing(amount: Option<u64>, duration: Option<u64>) -> Vec<wire::FieldError> {
    let given = [("body.limit", amount), ("body.duration", duration)];
    let absent = given.into_iter().filter(|(_, value)| value.is_none());
    let fault = |(location, _)| {
        let fix = "Send it, or set an override for this identifier.";
        wire::FieldError::new(location, "Is missing, and no override says it.", fix)
    };
    absent.map(fault).collect()
}
