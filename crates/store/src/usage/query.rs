//! Usage as it is asked for: sums by minute, hour, day or month, page by page. Reading changes nothing.

use tollkeeper_core::{Millis, Usage, Window, date_start, date_text};

use crate::bind::{binds, signed, unsigned};
use crate::db::Purpose;
use crate::{Fault, Page, Store, StoreError};

const HOUR_MS: u64 = 3_600_000;
const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 86_400_000;

/// The most buckets that are looked at in one go: all minutes since 1970 are some forty looks.
const SLICE_MAX: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageBy {
    Minute,
    Hour,
    Day,
    Month,
}

#[derive(Clone, Debug)]
pub struct UsageQuery {
    pub project_id: Option<String>,
    pub key_id: Option<String>,
    /// Of all keys that belong to this identity now.
    pub external_id: Option<String>,
    /// The bucket that holds this moment is the first.
    pub from: Millis,
    /// The bucket that begins at or after this moment is not in it.
    pub to: Millis,
    pub by: UsageBy,
    pub cursor: Option<String>,
    pub limit: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// Start of the bucket, UTC.
    pub time: Millis,
    pub project_id: String,
    /// Empty: keys that had no room of their own.
    pub key_id: String,
    pub usage: Usage,
}

/// What an identity's keys were used for. Sums of the ledger's own tables, so billing and quotas read one truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdentityTotals {
    pub today: Usage,
    pub month: Usage,
    /// When one of its keys was last used, to the half minute.
    pub last_request_at: Option<Millis>,
}

/// `at` is a text whose order is that of time: a date, a month, or unix milliseconds of thirteen digits.
#[derive(sqlx::FromRow)]
struct Row {
    at: String,
    project_id: String,
    key_id: String,
    requests: i64,
    denied: i64,
    bytes: i64,
    credits: i64,
}

/// The rows of one table that this tenant may see, in buckets, from the cursor on.
macro_rules! page_of {
    ($table:literal, $time:literal, $bucket:literal) => {
        concat!(
            "SELECT at, project_id, key_id, requests, denied, bytes, credits FROM (
                SELECT ",
            $bucket,
            " AS at, u.project_id AS project_id, u.key_id AS key_id,
                    CAST(SUM(u.requests) AS BIGINT) AS requests, CAST(SUM(u.denied) AS BIGINT) AS denied,
                    CAST(SUM(u.bytes) AS BIGINT) AS bytes, CAST(SUM(u.credits) AS BIGINT) AS credits
                FROM ",
            $table,
            " u
                WHERE u.project_id IN (SELECT p.id FROM projects p WHERE p.tenant_id = $1)
                    AND (CAST($2 AS TEXT) IS NULL OR u.project_id = $2)
                    AND (CAST($3 AS TEXT) IS NULL OR u.key_id = $3)
                    AND (CAST($4 AS TEXT) IS NULL OR u.key_id IN (
                        SELECT k.id FROM keys k JOIN identities o ON o.id = k.identity_id
                        WHERE k.tenant_id = $1 AND o.tenant_id = $1 AND o.external_id = $4))
                    AND u.",
            $time,
            " >= $5 AND u.",
            $time,
            " < $6
                GROUP BY 1, 2, 3) r
            WHERE (at, key_id, project_id) >= ($7, $8, $9)
            ORDER BY at, key_id, project_id LIMIT $10"
        )
    };
}

// === impl Store ===

impl Store {
    /// In the order of time, key and project. Read in slices of time from the cursor on, so that a page costs what is in it
    /// and not what the whole range holds.
    pub async fn usage(
        &self,
        tenant_id: &str,
        query: &UsageQuery,
    ) -> Result<Page<UsageRow>, StoreError> {
        let cursor = Cursor::read(query.cursor.as_deref());
        let most = query.limit as usize + 1;
        let (first, end) = query.bounds();
        let mut from = first.max(cursor.time().unwrap_or(first));
        let mut buckets = 1;
        let mut rows: Vec<Row> = Vec::new();
        while from < end && rows.len() < most {
            let until = query.by.after(from, buckets).min(end);
            let room = i64::from(query.limit) + 1 - signed(rows.len() as u64);
            rows.extend(self.usage_between(tenant_id, query, from, until, &cursor, room).await?);
            from = until;
            // Where little is, the next slice may be wider; where much is, the page is full soon.
            buckets = (buckets * 2).min(SLICE_MAX);
        }
        let page = Page::cut(rows, query.limit, |row| Cursor::of(row).write());
        Ok(page.try_map(UsageRow::try_from)?)
    }

    /// `from` and `until` are bounds of buckets.
    async fn usage_between(
        &self,
        tenant_id: &str,
        query: &UsageQuery,
        from: Millis,
        until: Millis,
        cursor: &Cursor,
        most: i64,
    ) -> Result<Vec<Row>, StoreError> {
        const MINUTES: &str = page_of!("usage_minute", "minute", "CAST(u.minute AS TEXT)");
        const HOURS: &str =
            page_of!("usage_minute", "minute", "CAST(u.minute - u.minute % 3600000 AS TEXT)");
        const DAYS: &str = page_of!("usage_record", "date", "u.date");
        const MONTHS: &str = page_of!("usage_record", "date", "SUBSTR(u.date, 1, 7) || '-01'");
        let (at, key_id, project_id) = (&cursor.at, &cursor.key_id, &cursor.project_id);
        let (project, key, external) = (&query.project_id, &query.key_id, &query.external_id);
        // Not a replica: whoever has flushed asks next, and nothing tells how far behind it is.
        let read = self.db.read(Purpose::Admin);
        let sql = match query.by {
            UsageBy::Minute => MINUTES,
            UsageBy::Hour => HOURS,
            UsageBy::Day => DAYS,
            UsageBy::Month => MONTHS,
        };
        match query.by {
            UsageBy::Minute | UsageBy::Hour => {
                let binds = binds![
                    tenant_id, project, key, external, from, until, at, key_id, project_id, most
                ];
                read.all(sql, binds).await
            }
            UsageBy::Day | UsageBy::Month => {
                let (from, until) = (date_text(from), date_text(until));
                let binds = binds![
                    tenant_id, project, key, external, &from, &until, at, key_id, project_id, most
                ];
                read.all(sql, binds).await
            }
        }
    }

    /// `None`: this tenant has no such identity.
    pub async fn identity_totals(
        &self,
        tenant_id: &str,
        external_id: &str,
        now: Millis,
    ) -> Result<Option<IdentityTotals>, StoreError> {
        const LAST: &str = "SELECT o.id, MAX(k.last_used_at) FROM identities o
            LEFT JOIN keys k ON k.identity_id = o.id AND k.tenant_id = $1
            WHERE o.tenant_id = $1 AND o.external_id = $2 GROUP BY o.id";
        const SUMS: &str = "SELECT u.date AS at, '' AS project_id, '' AS key_id,
                CAST(SUM(u.requests) AS BIGINT) AS requests, CAST(SUM(u.denied) AS BIGINT) AS denied,
                CAST(SUM(u.bytes) AS BIGINT) AS bytes, CAST(SUM(u.credits) AS BIGINT) AS credits
            FROM usage_record u JOIN keys k ON k.id = u.key_id AND k.project_id = u.project_id
            WHERE k.tenant_id = $1 AND k.identity_id = $2 AND u.date >= $3 GROUP BY u.date";
        let from = self.db.read(Purpose::Admin);
        let last: Option<(String, Option<i64>)> =
            from.optional(LAST, binds![tenant_id, external_id]).await?;
        let Some((identity_id, last)) = last else { return Ok(None) };
        let first = date_text(Window::Month.bounds(now).0);
        let rows: Vec<Row> = from.all(SUMS, binds![tenant_id, &identity_id, &first]).await?;
        let today = date_text(now);
        let mut totals = IdentityTotals {
            last_request_at: crate::bind::moment(last),
            ..IdentityTotals::default()
        };
        for row in rows {
            let usage = row.usage();
            totals.month = totals.month.plus(usage);
            if row.at == today {
                totals.today = usage;
            }
        }
        Ok(Some(totals))
    }
}

// === impl UsageQuery ===

impl UsageQuery {
    /// Whole buckets: one that begins before `to` is in it to its end.
    fn bounds(&self) -> (Millis, Millis) {
        let (first, _) = self.by.bucket(self.from);
        let (start, next) = self.by.bucket(self.to);
        (first, if start == self.to { start } else { next })
    }
}

// === impl UsageBy ===

impl UsageBy {
    fn bucket(self, at: Millis) -> (Millis, Millis) {
        let aligned = |width| {
            let start = at.0 - at.0 % width;
            (Millis(start), Millis(start.saturating_add(width)))
        };
        match self {
            Self::Minute => aligned(MINUTE_MS),
            Self::Hour => aligned(HOUR_MS),
            Self::Day => Window::Day.bounds(at),
            Self::Month => Window::Month.bounds(at),
        }
    }

    /// The end of so many buckets from this start of one.
    fn after(self, start: Millis, buckets: u64) -> Millis {
        let widths = |width: u64| Millis(start.0.saturating_add(width.saturating_mul(buckets)));
        match self {
            Self::Minute => widths(MINUTE_MS),
            Self::Hour => widths(HOUR_MS),
            Self::Day => widths(DAY_MS),
            Self::Month => (0..buckets).fold(start, |at, _| Window::Month.bounds(at).1),
        }
    }
}

// === impl Row ===

impl Row {
    fn usage(&self) -> Usage {
        Usage {
            requests: unsigned(self.requests),
            denied: unsigned(self.denied),
            bytes: unsigned(self.bytes),
            credits: unsigned(self.credits),
        }
    }
}

impl TryFrom<Row> for UsageRow {
    type Error = Fault;

    fn try_from(row: Row) -> Result<Self, Fault> {
        let time = date_start(&row.at).or_else(|| row.at.parse().ok().map(Millis));
        Ok(Self {
            time: time.ok_or(Fault::Unreadable("usage"))?,
            usage: row.usage(),
            project_id: row.project_id,
            key_id: row.key_id,
        })
    }
}

/// Where a page begins. Ids hold no bar, so the parts are told apart; a text that is none begins at the start.
#[derive(Debug, Default, PartialEq, Eq)]
struct Cursor {
    at: String,
    key_id: String,
    project_id: String,
}

// === impl Cursor ===

impl Cursor {
    fn of(row: &Row) -> Self {
        Self { at: row.at.clone(), key_id: row.key_id.clone(), project_id: row.project_id.clone() }
    }

    fn write(&self) -> String {
        format!("{}|{}|{}", self.at, self.key_id, self.project_id)
    }

    /// The start of the bucket that it points into.
    fn time(&self) -> Option<Millis> {
        date_start(&self.at).or_else(|| self.at.parse().ok().map(Millis))
    }

    fn read(text: Option<&str>) -> Self {
        let mut parts = text.unwrap_or_default().splitn(3, '|').map(str::to_owned);
        let mut part = || parts.next().unwrap_or_default();
        Self { at: part(), key_id: part(), project_id: part() }
    }
}
