//! `usage.*`: sums of the ledger by time, an export in parts, and a flush on demand.

use std::fmt::Write as _;
use std::sync::Arc;

use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use tollkeeper_core::Millis;
use tollkeeper_store::{Page, UsageBy, UsageQuery, UsageRow};
use tollkeeper_wire as wire;
use wire::usage::EXPORT_ROWS_MAX;

use super::call::{Call, permit};
use super::desk::{self, reply};
use super::reply::{Reply, plain};
use super::route::{CSV, UsageCall};
use super::stored::{owned, page_reply, page_rows};
use crate::status::Refusal;
use crate::usage::Pace;

/// Where the next part of an export begins.
const CURSOR: HeaderName = HeaderName::from_static("x-tollkeeper-cursor");

pub async fn handle(which: UsageCall, call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match which {
        UsageCall::Query => query(call).await,
        UsageCall::Export => export(call).await,
        UsageCall::Flush => flush(call).await,
    }
}

async fn query(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::QueryUsageRequest<'_> = call.request()?;
    let asked = UsageQuery {
        project_id: owned(request.api_id.as_ref()),
        key_id: owned(request.key_id.as_ref()),
        external_id: owned(request.external_id.as_ref()),
        from: Millis(request.from),
        to: Millis(request.to),
        by: by_of(request.by),
        cursor: owned(request.cursor.as_ref()),
        limit: page_rows(request.limit),
    };
    let page = read(call, "query", asked).await?;
    Ok(page_reply(call, &page, shown))
}

async fn export(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::ExportUsageRequest<'_> = call.request()?;
    let format = request.format.unwrap_or(wire::UsageFormat::Ndjson);
    let first = request.cursor.is_none();
    let asked = UsageQuery {
        project_id: owned(request.api_id.as_ref()),
        key_id: owned(request.key_id.as_ref()),
        external_id: owned(request.external_id.as_ref()),
        from: Millis(request.from),
        to: Millis(request.to),
        by: by_of(request.by),
        cursor: owned(request.cursor.as_ref()),
        limit: page_rows(request.limit.or(Some(EXPORT_ROWS_MAX))),
    };
    let page = read(call, "export", asked).await?;
    let (kind, text) = match format {
        wire::UsageFormat::Csv => (CSV, csv(&page.rows, first)),
        wire::UsageFormat::Ndjson => ("application/x-ndjson", ndjson(&page.rows)),
    };
    let mut answer = plain(StatusCode::OK, kind, text);
    let next = page.next_cursor.as_deref().and_then(|next| HeaderValue::from_str(next).ok());
    if let Some(next) = next {
        answer.insert(CURSOR, next);
    }
    Ok(answer)
}

/// Answers when it is in the database.
async fn flush(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let _: wire::FlushUsageRequest = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "usage", "*", "flush")?;
    let usage = Arc::clone(&call.app.usage);
    let flushed = desk::read(call, |_| async move { usage.flush(Pace::Now).await }).await?;
    let (buckets, records) = (flushed.buckets(), flushed.records());
    Ok(reply(call, wire::FlushUsageReply { buckets, records }))
}

async fn read(
    call: &mut Call<'_>,
    action: &str,
    asked: UsageQuery,
) -> Result<Page<UsageRow>, Refusal> {
    let caller = call.caller().await?;
    permit(&caller, "usage", "*", action)?;
    let tenant_id = caller.tenant.id.to_string();
    desk::read(call, |store| async move { store.usage(&tenant_id, &asked).await }).await
}

fn by_of(by: Option<wire::UsageBy>) -> UsageBy {
    match by.unwrap_or(wire::UsageBy::Day) {
        wire::UsageBy::Minute => UsageBy::Minute,
        wire::UsageBy::Hour => UsageBy::Hour,
        wire::UsageBy::Day => UsageBy::Day,
        wire::UsageBy::Month => UsageBy::Month,
    }
}

fn shown(row: &UsageRow) -> wire::UsageRow<'_> {
    wire::UsageRow {
        time: row.time.0,
        api_id: row.project_id.as_str().into(),
        key_id: row.key_id.as_str().into(),
        requests: row.usage.requests,
        bytes: row.usage.bytes,
        denied: row.usage.denied,
        credits: row.usage.credits,
    }
}

/// The heading stands in the first part only, so that parts can simply be put together. Ids need no quotes.
fn csv(rows: &[UsageRow], first: bool) -> String {
    let heading = if first { "time,apiId,keyId,requests,bytes,denied,credits\n" } else { "" };
    rows.iter().fold(heading.to_owned(), |mut text, row| {
        let (time, used) = (row.time.0, &row.usage);
        let (project, key) = (&row.project_id, &row.key_id);
        let (requests, bytes) = (used.requests, used.bytes);
        let (denied, credits) = (used.denied, used.credits);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{time},{project},{key},{requests},{bytes},{denied},{credits}");
        text
    })
}

fn ndjson(rows: &[UsageRow]) -> String {
    rows.iter().fold(String::new(), |mut text, row| {
        text.push_str(&serde_json::to_string(&shown(row)).unwrap_or_default());
        text.push('\n');
        text
    })
}
