//! A page of SQLite's rows in one value. The driver hands rows over one by one, between two threads, which for a page
//! takes many times as long as reading it; so SQLite packs a page into one text, and it is unpacked here.
//! JSON holds all that a row may: texts of any signs, whole numbers to the last digit, and nothing apart from empty.

use sqlx::AssertSqlSafe;

use crate::db::Pools;
use crate::{Bind, Fault, StoreError};

use super::{PastDecision, ROWS};

/// A flag is a number in SQLite and has to become one of JSON's.
const PACK: &str = "SELECT json_group_array(json_array(tenant_id, at, request_id, decision, code, status, key_id,
        external_id, ip, method, endpoint, path, rule, limit_name, count, retry_after_ms, node, region, latency_us,
        iif(degraded, json('true'), json('false'))))";

/// What [`ROWS`] finds.
pub(super) async fn rows(
    from: Pools<'_>,
    binds: &[Bind<'_>],
) -> Result<Vec<PastDecision>, StoreError> {
    let (page,): (String,) =
        from.one(AssertSqlSafe(format!("{PACK} FROM ({ROWS})")), binds).await?;
    let mut rows: Vec<PastDecision> =
        serde_json::from_str(&page).map_err(|_| Fault::Unreadable("decision"))?;
    // They come in the order of the rows within, but SQLite does not promise it; looking costs next to nothing.
    rows.sort_unstable();
    Ok(rows)
}
