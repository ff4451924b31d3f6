//! Limits as keys, identities and projects carry them: rows of their owner, or a list inside a project's row.
//! Whether a limit applies to a request is not decided here.

use serde_json::{Value, json};
use tollkeeper_core::{Algorithm, Limit, Quota, Sharing, StoredLimit, Width, Window};

use crate::bind::{binds, signed};
use crate::change::Change;
use crate::db::Pools;
use crate::each::{listed, places};
use crate::{Bind, Fault, StoreError, Thing, ids};

/// A limit as somebody asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitTerms {
    pub name: String,
    pub limit: Limit,
    pub auto_apply: bool,
    /// `exact`, `fast` or `local`.
    pub consistency: Option<String>,
    /// `share`, `allow` or `deny`.
    pub on_outage: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitRow {
    pub id: String,
    pub terms: LimitTerms,
}

#[derive(sqlx::FromRow)]
struct StoredRow {
    id: String,
    owner_id: String,
    name: String,
    quota: i64,
    duration_ms: i64,
    auto_apply: bool,
    algorithm: String,
    burst: Option<i64>,
    consistency: Option<String>,
    on_outage: Option<String>,
}

/// Calendar windows have no width of their own; what stands in its place is for people who read the table.
const DAY_MS: i64 = 86_400_000;
const MONTH_MS: i64 = 30 * DAY_MS;

/// Owners asked for in one statement: a page of a list.
const OWNERS_MAX: usize = 1000;

/// All limits of these owners, each with its owner's id, by name.
pub(crate) async fn limits_of(
    from: Pools<'_>,
    owners: &[&str],
) -> Result<Vec<(String, LimitRow)>, StoreError> {
    let mut found = Vec::new();
    for chunk in owners.chunks(OWNERS_MAX) {
        let binds: Vec<_> = chunk.iter().map(|owner| Bind::from(*owner)).collect();
        let list = listed(
            "SELECT id, owner_id, name, quota, duration_ms, auto_apply, algorithm, burst,
                consistency, on_outage FROM limits WHERE owner_id IN ({}) ORDER BY owner_id, name",
            &places(0, binds.len()),
        );
        let rows: Vec<StoredRow> = from.all(list, &binds).await?;
        for row in rows {
            found.push((row.owner_id.clone(), LimitRow::try_from(row)?));
        }
    }
    Ok(found)
}

/// Those of one owner, by name, as they stand within a change.
pub(crate) async fn own_limits(
    change: &mut Change<'_>,
    owner_id: &str,
) -> Result<Vec<LimitTerms>, StoreError> {
    const LIST: &str = "SELECT id, owner_id, name, quota, duration_ms, auto_apply, algorithm,
            burst, consistency, on_outage FROM limits WHERE owner_id = $1 ORDER BY name";
    let rows: Vec<StoredRow> = change.sql().all(LIST, binds![owner_id]).await?;
    rows.into_iter().map(|row| Ok(LimitRow::try_from(row)?.terms)).collect()
}

/// One limit per name: a name that stays keeps its id, and what is not in the list goes.
pub(crate) async fn replace_limits(
    change: &mut Change<'_>,
    tenant_id: &str,
    owner_id: &str,
    limits: &[LimitTerms],
) -> Result<(), StoreError> {
    const LIST: &str = "SELECT id, name FROM limits WHERE owner_id = $1";
    const DROP: &str = "DELETE FROM limits WHERE id = $1";
    const PUT: &str = "INSERT INTO limits (id, tenant_id, owner_id, name, quota, duration_ms,
            auto_apply, algorithm, burst, consistency, on_outage)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        ON CONFLICT (owner_id, name) DO UPDATE SET quota = excluded.quota,
            duration_ms = excluded.duration_ms, auto_apply = excluded.auto_apply,
            algorithm = excluded.algorithm, burst = excluded.burst,
            consistency = excluded.consistency, on_outage = excluded.on_outage";
    for (at, terms) in limits.iter().enumerate() {
        if limits[..at].iter().any(|before| before.name == terms.name) {
            return Err(StoreError::Taken { what: Thing::Limit });
        }
    }
    let there: Vec<(String, String)> = change.sql().all(LIST, binds![owner_id]).await?;
    for (id, name) in there {
        if !limits.iter().any(|terms| terms.name == name) {
            change.sql().run(DROP, binds![&id]).await?;
        }
    }
    for terms in limits {
        let id = ids::fresh(ids::LIMIT)?;
        let Columns { algorithm, quota, duration_ms, burst } = Columns::of(terms.limit);
        let binds = binds![
            &id,
            tenant_id,
            owner_id,
            &terms.name,
            quota,
            duration_ms,
            terms.auto_apply,
            algorithm,
            burst,
            &terms.consistency,
            &terms.on_outage,
        ];
        change.sql().run(PUT, binds).await?;
    }
    Ok(())
}

pub(crate) async fn drop_limits(change: &mut Change<'_>, owner_id: &str) -> Result<(), StoreError> {
    const DROP: &str = "DELETE FROM limits WHERE owner_id = $1";
    change.sql().run(DROP, binds![owner_id]).await?;
    Ok(())
}

/// A limit as columns.
pub(crate) struct Columns<'a> {
    pub(crate) algorithm: &'a str,
    pub(crate) quota: i64,
    pub(crate) duration_ms: i64,
    pub(crate) burst: Option<i64>,
}

// === impl Columns ===

impl Columns<'_> {
    fn of(limit: Limit) -> Self {
        let ms = |width: Width| signed(width.millis());
        let (algorithm, duration_ms, burst) = match limit.algorithm {
            Algorithm::SlidingWindow(width) => ("sliding_window", ms(width), None),
            Algorithm::SlidingLog(width) => ("sliding_log", ms(width), None),
            Algorithm::FixedWindow(Window::Aligned(width)) => ("fixed_window", ms(width), None),
            Algorithm::FixedWindow(Window::Day) => ("calendar_day", DAY_MS, None),
            Algorithm::FixedWindow(Window::Month) => ("calendar_month", MONTH_MS, None),
            Algorithm::TokenBucket { width, capacity } => {
                ("token_bucket", ms(width), Some(signed(capacity.get())))
            }
        };
        Self { algorithm, quota: signed(limit.quota.get()), duration_ms, burst }
    }

    pub(crate) fn limit(&self) -> Option<Limit> {
        let quota = Quota::new(u64::try_from(self.quota).ok()?)?;
        let width = || Width::from_millis(u64::try_from(self.duration_ms).ok()?);
        Some(match self.algorithm {
            "sliding_window" => Limit::sliding_window(quota, width()?),
            "sliding_log" => Limit::sliding_log(quota, width()?)?,
            "fixed_window" => Limit::fixed_window(quota, Window::Aligned(width()?)),
            "calendar_day" => Limit::fixed_window(quota, Window::Day),
            "calendar_month" => Limit::fixed_window(quota, Window::Month),
            "token_bucket" => {
                let burst = Quota::new(u64::try_from(self.burst?).ok()?)?;
                Limit::token_bucket(quota, width()?, Some(burst))
            }
            _ => return None,
        })
    }
}

// === impl LimitTerms ===

impl LimitTerms {
    pub(crate) fn to_json(&self) -> Value {
        let Columns { algorithm, quota, duration_ms, burst } = Columns::of(self.limit);
        json!({
            "name": self.name, "limit": quota, "duration": duration_ms, "autoApply": self.auto_apply,
            "algorithm": algorithm, "burst": burst, "consistency": self.consistency,
            "onOutage": self.on_outage,
        })
    }

    fn from_json(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let number = |name: &str| value.get(name).and_then(Value::as_i64);
        let columns = Columns {
            algorithm: value.get("algorithm")?.as_str()?,
            quota: number("limit")?,
            duration_ms: number("duration")?,
            burst: number("burst"),
        };
        Some(Self {
            name: text("name")?,
            limit: columns.limit()?,
            auto_apply: value.get("autoApply")?.as_bool()?,
            consistency: text("consistency"),
            on_outage: text("onOutage"),
        })
    }
}

pub(crate) fn list_to_json(limits: &[LimitTerms]) -> Value {
    limits.iter().map(LimitTerms::to_json).collect()
}

pub(crate) fn list_from_json(text: &str) -> Result<Vec<LimitTerms>, Fault> {
    let unreadable = || Fault::Unreadable("list of limits");
    let list: Vec<Value> = serde_json::from_str(text).map_err(|_| unreadable())?;
    list.iter().map(|one| LimitTerms::from_json(one).ok_or_else(unreadable)).collect()
}

impl LimitTerms {
    /// Without an id of its own.
    pub(crate) fn to_stored(&self) -> StoredLimit {
        StoredLimit {
            id: "".into(),
            name: self.name.as_str().into(),
            limit: self.limit,
            auto_apply: self.auto_apply,
            sharing: Sharing::from_words(self.consistency.as_deref(), self.on_outage.as_deref()),
        }
    }
}

// === impl LimitRow ===

impl LimitRow {
    pub(crate) fn into_stored(self) -> StoredLimit {
        StoredLimit { id: self.id.into(), ..self.terms.to_stored() }
    }
}

impl TryFrom<StoredRow> for LimitRow {
    type Error = Fault;

    fn try_from(row: StoredRow) -> Result<Self, Fault> {
        let columns = Columns {
            algorithm: &row.algorithm,
            quota: row.quota,
            duration_ms: row.duration_ms,
            burst: row.burst,
        };
        let limit = columns.limit().ok_or(Fault::Unreadable("limit"))?;
        let terms = LimitTerms {
            name: row.name,
            limit,
            auto_apply: row.auto_apply,
            consistency: row.consistency,
            on_outage: row.on_outage,
        };
        Ok(Self { id: row.id, terms })
    }
}
