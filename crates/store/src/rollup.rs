//! Decisions added up: minutes are added to as nodes report them, hours and days are made of them, again and again.
//! What is made again replaces what was there, so that doing it twice, or on two nodes, changes nothing.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use sqlx::AssertSqlSafe;
use tollkeeper_core::{BUCKETS, Grain, Millis, RollupCounts, RollupKey};

use crate::bind::{binds, signed, unsigned};
use crate::db::Purpose;
use crate::filter::Filter;
use crate::partitions::{DAYS, HOURS, MINUTES, Monthly, months};
use crate::patience::{IN_TRANSACTION, within};
use crate::{Bind, Each, Page, Store, StoreError};

/// How long each grain is kept: a week of minutes, three months of hours, five years of days.
const KEPT_DAYS: [(Monthly, u64); 3] = [(MINUTES, 7), (HOURS, 92), (DAYS, 1_830)];
const DAY_MS: u64 = 86_400_000;

/// Five counts and the buckets.
const COUNTS: usize = 5 + BUCKETS;
const COLUMNS: usize = 5 + COUNTS;

/// Twenty-seven values a row.
const BATCH: usize = 100;

/// So many hours and days before the newest are made again: a node that reports late does so within them. What comes
/// later still is only in the minutes.
const AGAIN: u64 = 2;

/// Held by the one node that adds up; the others have nothing to do then.
const TURN: &str = "SELECT pg_try_advisory_xact_lock(8400207314)";

/// What is counted, in the order of its columns.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let counts = ["allowed", "throttled", "blocked", "cache_hits", "cache_misses"];
    let buckets = (0..BUCKETS).map(|number| format!("l{number}"));
    counts.into_iter().map(str::to_owned).chain(buckets).collect()
});

/// What to look at; everything that is absent matches all.
#[derive(Clone, Debug, Default)]
pub struct StatsFilter {
    /// The first bucket is the one that holds this moment.
    pub from: Millis,
    /// Exclusive.
    pub to: Millis,
    pub external_id: Option<String>,
    pub endpoint: Option<String>,
    pub region: Option<String>,
}

/// The sum of one minute, hour or day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatsRow {
    pub time: Millis,
    pub counts: RollupCounts,
}

/// Its columns are too many to be named.
struct SumRow(Vec<i64>);

// === impl Store ===

impl Store {
    /// Adds to the minutes that these are of: all of it, or nothing.
    pub async fn add_minutes(
        &self,
        sums: &BTreeMap<RollupKey, RollupCounts>,
    ) -> Result<(), StoreError> {
        static ADD: LazyLock<String> = LazyLock::new(|| {
            let grown =
                each(", ", |name| format!("{name} = metric_minute.{name} + excluded.{name}"));
            format!("{} VALUES {{}} {CONFLICT} {grown}", insert(MINUTES))
        });
        if sums.is_empty() {
            return Ok(());
        }
        self.make_months(MINUTES, &months(sums.keys().map(|key| key.time))).await?;
        let mut begun = self.db.begin(Purpose::Background).await?;
        // In the order of names, as every node has them: none waits for another in a ring.
        let rows: Vec<_> = sums.iter().collect();
        for chunk in rows.chunks(BATCH) {
            let binds: Vec<_> = chunk.iter().flat_map(|(key, sum)| columns(key, sum)).collect();
            begun.conn().run_rows(&ADD, COLUMNS, &binds).await?;
        }
        begun.commit().await
    }

    /// Makes hours of minutes and days of hours, from a little before where the last one ended.
    pub async fn roll_up(&self, now: Millis) -> Result<(), StoreError> {
        self.make_of(MINUTES, HOURS, Grain::Hour, now).await?;
        self.make_of(HOURS, DAYS, Grain::Day, now).await
    }

    pub async fn prune_rollups(&self, now: Millis) -> Result<u64, StoreError> {
        let mut gone = 0;
        for (monthly, days) in KEPT_DAYS {
            // By whole days, so that none is ever made again of what is left of it.
            let before = Grain::Day.start_of(Millis(now.0.saturating_sub(days * DAY_MS)));
            gone += self.forget(monthly, before).await?;
        }
        Ok(gone)
    }

    /// Sums by time, oldest first. `cursor` is the moment to start at.
    pub async fn query_stats(
        &self,
        tenant_id: &str,
        grain: Grain,
        filter: &StatsFilter,
        cursor: Option<Millis>,
        limit: u32,
    ) -> Result<Page<StatsRow>, StoreError> {
        let from = cursor.unwrap_or(grain.start_of(filter.from));
        let select =
            format!("SELECT time, {} FROM {} WHERE tenant_id = $1", sums(), monthly(grain).table);
        let mut search = Filter::new(select, tenant_id);
        search.and("time >=", Some(Bind::from(from)));
        search.and("time <", Some(Bind::from(filter.to)));
        search.and("external_id =", filter.external_id.as_ref().map(Bind::from));
        search.and("endpoint =", filter.endpoint.as_ref().map(Bind::from));
        search.and("region =", filter.region.as_ref().map(Bind::from));
        search.grouped("time");
        let (sql, binds) = search.ordered("time", limit);
        let rows: Vec<SumRow> = self.db.read(Purpose::Admin).all(sql, &binds).await?;
        let rows = rows.iter().map(StatsRow::from).collect();
        Ok(Page::cut(rows, limit, |row: &StatsRow| row.time.0.to_string()))
    }

    /// All of it in one transaction: a round that ends half-way leaves no hole behind the newest hour, from which the
    /// next one goes on.
    async fn make_of(
        &self,
        from: Monthly,
        to: Monthly,
        grain: Grain,
        now: Millis,
    ) -> Result<(), StoreError> {
        let times = self.to_be_made(from, to, grain, now).await?;
        if times.is_empty() {
            return Ok(());
        }
        self.make_months(to, &months(times.iter().copied())).await?;
        let mut begun = self.db.begin(Purpose::Background).await?;
        if let Each::Pg(begun) = &mut begun {
            let turn = sqlx::query_scalar(TURN).fetch_one(&mut **begun);
            let turn: bool = within(IN_TRANSACTION, turn).await?;
            if !turn {
                return Ok(());
            }
        }
        let make = make(from, to);
        for time in times {
            // One hour or day of all tenants: one statement, within the time that one may take.
            let binds = binds![time, time + grain.millis()];
            begun.conn().run(AssertSqlSafe(make.clone()), binds).await?;
        }
        begun.commit().await
    }

    /// The hours or days to make, from a little before the newest to the last that there is something of.
    async fn to_be_made(
        &self,
        from: Monthly,
        to: Monthly,
        grain: Grain,
        now: Millis,
    ) -> Result<Vec<Millis>, StoreError> {
        let made = format!("SELECT COALESCE(MAX(time), 0) FROM {}", to.table);
        let there = format!("SELECT MIN(time), MAX(time) FROM {}", from.table);
        let read = self.db.read(Purpose::Background);
        let (made,): (i64,) = read.one(AssertSqlSafe(made), &[]).await?;
        let there: (Option<i64>, Option<i64>) = read.one(AssertSqlSafe(there), &[]).await?;
        let (Some(oldest), Some(newest)) = there else { return Ok(Vec::new()) };
        let again = unsigned(made).saturating_sub(AGAIN * grain.millis());
        let start = grain.start_of(Millis(again.max(unsigned(oldest))));
        let step = |time: &Millis| Some(*time + grain.millis());
        let last = now.min(Millis(unsigned(newest)));
        Ok(std::iter::successors(Some(start), step).take_while(|time| *time <= last).collect())
    }
}

const CONFLICT: &str = "ON CONFLICT (tenant_id, time, endpoint, external_id, region) DO UPDATE SET";

fn monthly(grain: Grain) -> Monthly {
    match grain {
        Grain::Minute => MINUTES,
        Grain::Hour => HOURS,
        Grain::Day => DAYS,
    }
}

fn each(between: &str, of: impl Fn(&str) -> String) -> String {
    NAMES.iter().map(|name| of(name)).collect::<Vec<_>>().join(between)
}

fn insert(into: Monthly) -> String {
    let names = each(", ", str::to_owned);
    format!("INSERT INTO {} (time, tenant_id, endpoint, external_id, region, {names})", into.table)
}

/// A sum of PostgreSQL's is of a type that holds any number.
fn sums() -> String {
    each(", ", |name| format!("CAST(SUM({name}) AS BIGINT) AS {name}"))
}

/// `$1` is the start of the hour or day, `$2` its end.
fn make(from: Monthly, to: Monthly) -> String {
    let made = each(", ", |name| format!("{name} = excluded.{name}"));
    format!(
        "{} SELECT $1, tenant_id, endpoint, external_id, region, {} FROM {}
            WHERE time >= $1 AND time < $2
            GROUP BY tenant_id, endpoint, external_id, region
            ORDER BY tenant_id, endpoint, external_id, region {CONFLICT} {made}",
        insert(to),
        sums(),
        from.table,
    )
}

fn columns<'a>(key: &'a RollupKey, counts: &RollupCounts) -> Vec<Bind<'a>> {
    let mut binds = vec![
        Bind::from(key.time),
        Bind::from(&*key.tenant_id),
        Bind::from(&*key.endpoint),
        Bind::from(&*key.external_id),
        Bind::from(&*key.region),
    ];
    let RollupCounts { allowed, throttled, blocked, cache_hits, cache_misses, latency } = counts;
    let numbers = [*allowed, *throttled, *blocked, *cache_hits, *cache_misses];
    binds.extend(numbers.iter().chain(latency).map(|number| Bind::from(signed(*number))));
    binds
}

impl<'r, R: sqlx::Row> sqlx::FromRow<'r, R> for SumRow
where
    usize: sqlx::ColumnIndex<R>,
    i64: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        (0..=COUNTS).map(|at| row.try_get(at)).collect::<Result<_, _>>().map(Self)
    }
}

impl From<&SumRow> for StatsRow {
    fn from(row: &SumRow) -> Self {
        let number = |at: usize| row.0.get(at).copied().map_or(0, unsigned);
        let mut latency = [0; BUCKETS];
        for (at, bucket) in latency.iter_mut().enumerate() {
            *bucket = number(6 + at);
        }
        let counts = RollupCounts {
            allowed: number(1),
            throttled: number(2),
            blocked: number(3),
            cache_hits: number(4),
            cache_misses: number(5),
            latency,
        };
        Self { time: Millis(number(0)), counts }
    }
}
