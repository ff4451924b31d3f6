//! `stats.query`: decisions added up by the minute, hour or day.

use tollkeeper_account::quantile_us;
use tollkeeper_core::{Grain, Millis};
use tollkeeper_store::{StatsFilter, StatsRow};
use tollkeeper_wire as wire;

use super::call::{Call, permit};
use super::desk;
use super::reply::Reply;
use super::stored::{bad_cursor, owned, page_reply, page_rows};
use crate::status::Refusal;

pub async fn query(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::QueryStatsRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "stats", "*", "query")?;
    let filter = StatsFilter {
        from: Millis(request.from),
        to: Millis(request.to),
        external_id: owned(request.external_id.as_ref()),
        endpoint: owned(request.endpoint.as_ref()),
        region: owned(request.region.as_ref()),
    };
    let grain = match request.by.unwrap_or(wire::StatsGrain::Minute) {
        wire::StatsGrain::Minute => Grain::Minute,
        wire::StatsGrain::Hour => Grain::Hour,
        wire::StatsGrain::Day => Grain::Day,
    };
    let cursor = request.cursor.as_deref().map(|text| text.parse().map_err(|_| bad_cursor()));
    let cursor = cursor.transpose()?.map(Millis);
    let (tenant_id, rows) = (caller.tenant.id.to_string(), page_rows(request.limit));
    let (auditor, now) = (call.app.auditor.clone(), call.now);
    let page = desk::read(call, |store| async move {
        // What this node decided a moment ago is in the sums too.
        let _ = auditor.add_up(&store).await;
        if grain != Grain::Minute {
            let _ = store.roll_up(now).await;
        }
        store.query_stats(&tenant_id, grain, &filter, cursor, rows).await
    });
    let page = page.await?;
    Ok(page_reply(call, &page, shown))
}

fn shown(row: &StatsRow) -> wire::StatsLine {
    let counts = &row.counts;
    let quantile = |thousandths| quantile_us(&counts.latency, thousandths);
    wire::StatsLine {
        time: row.time.0,
        total: counts.total(),
        allowed: counts.allowed,
        throttled: counts.throttled,
        blocked: counts.blocked,
        p50_us: quantile(500),
        p95_us: quantile(950),
        p99_us: quantile(990),
        cache_hits: counts.cache_hits,
        cache_misses: counts.cache_misses,
    }
}
