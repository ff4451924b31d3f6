//! `audit.*`: searches what was decided, lists what was changed, and walks the chain of changes.

use tollkeeper_core::{AuditRow, Decision, Millis};
use tollkeeper_store::{AdminChange, ChainReport, ChangeFilter, DecisionFilter};
use tollkeeper_wire as wire;

use super::call::{Call, permit};
use super::desk::{self, reply};
use super::reply::Reply;
use super::route::AuditCall;
use super::stored::{bad_cursor, owned, page_reply, page_rows};
use crate::status::Refusal;

pub async fn handle(which: AuditCall, call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match which {
        AuditCall::Search => search(call).await,
        AuditCall::Changes => changes(call).await,
        AuditCall::Verify => verify(call).await,
    }
}

async fn search(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::SearchAuditRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "audit", "*", "search")?;
    let filter = DecisionFilter {
        from: request.from.map(Millis),
        to: request.to.map(Millis),
        key_id: owned(request.key_id.as_ref()),
        // An identifier may be any text; rows are kept without what no database stores.
        external_id: request.external_id.as_ref().map(|text| text.replace('\0', "")),
        decision: request.decision.map(decision),
        path: owned(request.path.as_ref()),
        text: owned(request.text.as_ref()),
    };
    let cursor = request.cursor.as_deref().map(decision_cursor).transpose()?;
    let (tenant_id, rows) = (caller.tenant.id.to_string(), page_rows(request.limit));
    let auditor = call.app.auditor.clone();
    let page = desk::read(call, |store| async move {
        // What this node decided a moment ago is found too; what cannot be written is told by the metrics.
        let _ = auditor.write_out(&store).await;
        let cursor = cursor.as_ref().map(|(at, request_id)| (*at, request_id.as_str()));
        store.search_decisions(&tenant_id, &filter, cursor, rows).await
    });
    let page = page.await?;
    Ok(page_reply(call, &page, shown_decision))
}

async fn changes(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::ListChangesRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "audit", "*", "changes")?;
    let filter = ChangeFilter {
        from: request.from.map(Millis),
        to: request.to.map(Millis),
        action: owned(request.action.as_ref()),
        target: owned(request.target.as_ref()),
        root_key_id: owned(request.root_key_id.as_ref()),
    };
    let cursor = request.cursor.as_deref().map(|text| text.parse().map_err(|_| bad_cursor()));
    let cursor = cursor.transpose()?;
    let (tenant_id, rows) = (caller.tenant.id.to_string(), page_rows(request.limit));
    let page = desk::read(call, |store| async move {
        store.list_changes(&tenant_id, &filter, cursor, rows).await
    });
    let page = page.await?;
    Ok(page_reply(call, &page, shown_change))
}

/// One's own chain; the operator's key has all of them looked at.
async fn verify(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let _: wire::VerifyAuditRequest = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "audit", "*", "verify")?;
    let (own, operator) = (caller.tenant.id.to_string(), caller.operator);
    let own_id = own.clone();
    let reports = desk::read(call, |store| async move {
        let mut tenants = if operator { store.chained_tenants().await? } else { Vec::new() };
        tenants.retain(|tenant_id| *tenant_id != own_id);
        tenants.insert(0, own_id);
        let mut reports = Vec::with_capacity(tenants.len());
        for tenant_id in tenants {
            let report = store.verify_changes(&tenant_id).await?;
            reports.push((tenant_id, report));
        }
        Ok(reports)
    });
    let reports = reports.await?;
    let bad = reports.iter().find_map(|(tenant_id, report)| Some((tenant_id, report.first_bad?)));
    let head = reports.iter().find(|(tenant_id, _)| *tenant_id == own);
    Ok(reply(
        call,
        wire::VerifyAuditReply {
            rows: reports.iter().map(|(_, report)| report.rows).sum(),
            ok: bad.is_none(),
            first_bad: bad.map(|(_, bad)| bad.position),
            reason: bad.map(|(_, bad)| bad.trouble.to_string().into()),
            tenant_id: bad.map(|(tenant_id, _)| tenant_id.as_str().into()),
            head: head.and_then(|(_, report)| head_text(report)).map(Into::into),
        },
    ))
}

/// `12:9f86d0…`
fn head_text(report: &ChainReport) -> Option<String> {
    let (position, hash) = report.head.as_ref()?;
    let digits: Vec<_> = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!("{position}:{}", digits.concat()))
}

fn decision_cursor(text: &str) -> Result<(Millis, String), Refusal> {
    let (at, request_id) = text.split_once('.').ok_or_else(bad_cursor)?;
    Ok((Millis(at.parse().map_err(|_| bad_cursor())?), request_id.to_owned()))
}

fn decision(asked: wire::Decision) -> Decision {
    match asked {
        wire::Decision::Allowed => Decision::Allowed,
        wire::Decision::Throttled => Decision::Throttled,
        wire::Decision::Blocked => Decision::Blocked,
    }
}

fn shown_decision(row: &AuditRow) -> wire::AuditedDecision<'_> {
    wire::AuditedDecision {
        at: row.at.0,
        request_id: row.request_id.as_ref().into(),
        decision: match row.decision {
            Decision::Allowed => wire::Decision::Allowed,
            Decision::Throttled => wire::Decision::Throttled,
            Decision::Blocked => wire::Decision::Blocked,
        },
        code: row.code.as_ref().into(),
        status: row.status.into(),
        key_id: row.key_id.as_deref().map(Into::into),
        external_id: row.external_id.as_deref().map(Into::into),
        ip: row.ip.as_deref().map(Into::into),
        method: row.method.as_deref().map(Into::into),
        endpoint: row.endpoint.as_deref().map(Into::into),
        path: row.path.as_deref().map(Into::into),
        rule: row.rule.as_deref().map(Into::into),
        limit: row.limit.as_deref().map(Into::into),
        count: row.count,
        retry_after_ms: row.retry_after_ms,
        node: row.node.as_ref().into(),
        region: row.region.as_deref().map(Into::into),
        latency_us: row.latency_us,
        degraded: row.degraded,
    }
}

fn shown_change(change: &AdminChange) -> wire::AdminChange<'_> {
    wire::AdminChange {
        position: change.position,
        at: change.at.0,
        root_key_id: change.root_key_id.as_deref().map(Into::into),
        action: change.action.as_str().into(),
        target: change.target.as_str().into(),
        before: change.before.as_deref().and_then(wire::Metadata::stored),
        after: change.after.as_deref().and_then(wire::Metadata::stored),
    }
}
