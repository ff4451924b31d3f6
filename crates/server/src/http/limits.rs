//! `limits.*`: look at a counter without spending, set counters back, and tell how often limits were met.

use serde_json::json;
use tollkeeper_account::Kind;
use tollkeeper_core::{Cost, Limit, Millis, Override, RuleScope, Sharing, identifier_of};
use tollkeeper_decide::{Counted, LimitCheck, Namespace, RootKey, Warm, owner};
use tollkeeper_store::{StatsOf, StoreError, Thing};
use tollkeeper_wire as wire;

use super::call::{Call, permit};
use super::desk::{self, Author};
use super::fields::Standing;
use super::overrides::existing;
use super::ratelimit::limit_of;
use super::reply::Reply;
use super::sheet::Sheet;
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
    let degraded = one.degraded;
    Ok(sheet.success(call.id, wire::PeekReply { limit, used, remaining, reset, degraded }))
}

pub async fn reset(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::ResetRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "limits", "*", "reset")?;
    let cells = match &request.namespace {
        Some(called) => {
            let namespace = existing(call, &caller, called).await?;
            let what = match &request.identifier {
                Some(one) => json!({ "namespace": *namespace.name, "identifier": **one }),
                None => json!({ "namespace": *namespace.name }),
            };
            noted(call, &caller, &namespace.id, what).await?;
            call.app
                .decider
                .reset(&caller.tenant.id, &namespace.tag, request.identifier.as_deref())
                .await?
        }
        None => reset_owner(call, &caller, &request).await?,
    };
    let mut sheet = Sheet::new();
    sheet.timing(&call.timing);
    Ok(sheet.success(call.id, wire::ResetReply { cells }))
}

/// All counters of a key, or of an identity: its own limits, its quota, and those of rules that count by it alone. Where
/// a rule counts by several things together, its counters belong to all of them and stay.
async fn reset_owner(
    call: &Call<'_>,
    caller: &RootKey,
    request: &wire::ResetRequest<'_>,
) -> Result<u64, Refusal> {
    let (tenant, now) = (&caller.tenant, call.now);
    let (what, scope, named) = match (&request.key_id, &request.external_id) {
        (Some(key_id), _) => (Thing::Key, RuleScope::Key, &**key_id),
        (None, external_id) => {
            (Thing::Identity, RuleScope::User, external_id.as_deref().unwrap_or(""))
        }
    };
    let found = {
        let (tenant_id, named) = (tenant.id.clone(), named.to_owned());
        desk::read(call, move |store| async move {
            Ok(match what {
                Thing::Key => store.key_view(&tenant_id, &named, now).await?.map(|key| key.id),
                _ => store.identity(&tenant_id, &named).await?.map(|identity| identity.id),
            })
        })
        .await?
    };
    let decider = &call.app.decider;
    let book = decider.rules().of(&tenant.id);
    let tags: Vec<_> = book.iter().flat_map(|book| book.counted_by(scope)).collect();
    let missing = || Refusal::from(&StoreError::NotFound { what, named: named.to_owned() });
    // Rules count users that nobody stored.
    if found.is_none() && tags.is_empty() {
        return Err(missing());
    }
    let field = if what == Thing::Key { "keyId" } else { "externalId" };
    let target = found.as_deref().unwrap_or(named);
    noted(call, caller, target, json!({ field: named })).await?;
    let own = found.iter().flat_map(|id| [id.clone(), format!("quota:{id}")]);
    let own: Vec<_> = own.map(|id| owner(decider.hasher(), &tenant.slug, &id)).collect();
    let identifier = identifier_of(named);
    let of_rules = tags.into_iter().map(|tag| (tag, Some(&*identifier)));
    let counters: Vec<_> = own.iter().map(|tag| (tag, None)).chain(of_rules).collect();
    let cells = decider.reset_all(&tenant.id, &counters).await?;
    if found.is_none() && cells == 0 { Err(missing()) } else { Ok(cells) }
}

/// Writes down who is about to set back what; without that nothing is set back.
async fn noted(
    call: &Call<'_>,
    caller: &RootKey,
    target: &str,
    what: serde_json::Value,
) -> Result<(), Refusal> {
    let (author, target) = (Author::new(call, caller), target.to_owned());
    desk::read(call, |store| async move { store.note_reset(author.by(), &target, what).await })
        .await
}

/// A namespace is counted by its id, so that it is asked for by name or id like everywhere.
pub async fn stats(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::StatsRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "limits", "*", "stats")?;
    let (from, to) = (Millis(request.from), Millis(request.to));
    let namespace = match &request.namespace {
        Some(called) => Some(existing(call, &caller, called).await?),
        None => None,
    };
    let subject = match (&namespace, &request.rule, &request.key_id) {
        (Some(namespace), ..) => Some((Counted::Namespace, namespace.id.to_string())),
        (None, Some(rule), _) => Some((Counted::Rule, rule.to_string())),
        (None, None, Some(key_id)) => Some((Counted::Key, key_id.to_string())),
        (None, None, None) => None,
    };
    let tenant = caller.tenant.id.clone();
    let sums = desk::read(call, |store| async move {
        let of = subject.as_ref().map_or(StatsOf::All, |(kind, name)| StatsOf::One(*kind, name));
        let sums = store.limit_stats(&tenant, of, from, to).await?;
        // What was counted for a rule that was deleted since is still told.
        if let (Some((Counted::Rule, named)), []) = (&subject, &sums[..]) {
            let found = store.rule(&tenant, named).await?;
            let missing = || StoreError::NotFound { what: Thing::Rule, named: named.clone() };
            found.ok_or_else(missing)?;
        }
        Ok(sums)
    })
    .await?;
    let row = |sum: &tollkeeper_store::StatSum| wire::StatsReply {
        name: sum.name.clone().into(),
        kind: match sum.kind {
            Counted::Namespace => wire::StatKind::Namespace,
            Counted::Rule => wire::StatKind::Rule,
            Counted::Key | Counted::Identity => wire::StatKind::Key,
        },
        hits: sum.hits,
        denied: sum.denied,
        shadow: sum.shadow,
    };
    Ok(desk::reply(call, sums.iter().map(row).collect::<Vec<_>>()))
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
