//! What limits counted, minute by minute: asks, denials, and denials that a shadow limit would have made.
//! Written in batches behind the requests and added to what other nodes wrote; never read on the way of a decision.

use std::collections::BTreeMap;

use tollkeeper_core::Millis;
use tollkeeper_decide::{Counted, WHOLE_RULE};

use crate::bind::{binds, signed, unsigned};
use crate::db::Purpose;
use crate::{Bind, Fault, Store, StoreError};

const MINUTE_MS: u64 = 60_000;

/// Eight values a row.
const BATCH: usize = 500;

/// As many names as a tenant has rules, at most; whoever has more asks for less at a time.
const ROWS_MAX: i64 = 10_000;

/// Counts of one name within one minute, to be added to what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitStat {
    pub tenant_id: String,
    /// Any moment of the minute.
    pub minute: Millis,
    pub kind: Counted,
    /// The id of what the limit belongs to; a rule's name.
    pub subject: String,
    /// Which of its limits.
    pub name: String,
    pub hits: u64,
    pub denied: u64,
    pub shadow: u64,
}

/// What is asked for: one subject by its limits, or all namespaces and rules by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatsOf<'a> {
    All,
    One(Counted, &'a str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatSum {
    pub kind: Counted,
    pub name: String,
    pub hits: u64,
    pub denied: u64,
    pub shadow: u64,
}

/// What an identity did since the last time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityUse {
    pub identity_id: String,
    /// To be added to what is there.
    pub exceeded: u64,
    pub last_request_at: Millis,
}

#[derive(sqlx::FromRow)]
struct SumRow {
    kind: String,
    name: String,
    hits: i64,
    denied: i64,
    shadow: i64,
}

// === impl Store ===

impl Store {
    pub async fn add_limit_stats(&self, stats: &[LimitStat]) -> Result<(), StoreError> {
        const ADD: &str = "INSERT INTO limit_stats
                (tenant_id, kind, subject, minute, name, hits, denied, shadow) VALUES {}
            ON CONFLICT (tenant_id, kind, subject, minute, name) DO UPDATE SET
                hits = limit_stats.hits + excluded.hits,
                denied = limit_stats.denied + excluded.denied,
                shadow = limit_stats.shadow + excluded.shadow";
        // One row for each place, as the statement wants it, and in one order everywhere: two nodes that add to the
        // same rows never wait for each other in a ring.
        let mut sums: BTreeMap<_, [u64; 3]> = BTreeMap::new();
        for one in stats {
            let minute = one.minute.0 - one.minute.0 % MINUTE_MS;
            let place = (&one.tenant_id, one.kind.word(), &one.subject, minute, &one.name);
            let sum = sums.entry(place).or_default();
            for (sum, count) in sum.iter_mut().zip([one.hits, one.denied, one.shadow]) {
                *sum = sum.saturating_add(count);
            }
        }
        let rows: Vec<_> = sums.into_iter().collect();
        for chunk in rows.chunks(BATCH) {
            let mut binds: Vec<Bind<'_>> = Vec::with_capacity(chunk.len() * 8);
            for ((tenant_id, kind, subject, minute, name), [hits, denied, shadow]) in chunk {
                binds.extend_from_slice(binds![
                    *tenant_id,
                    *kind,
                    *subject,
                    signed(*minute),
                    *name,
                    signed(*hits),
                    signed(*denied),
                    signed(*shadow),
                ]);
            }
            self.db.write(Purpose::Background).run_rows(ADD, 8, &binds).await?;
        }
        Ok(())
    }

    /// Sums over the minutes that begin in [from, to), by name.
    pub async fn limit_stats(
        &self,
        tenant_id: &str,
        of: StatsOf<'_>,
        from: Millis,
        to: Millis,
    ) -> Result<Vec<StatSum>, StoreError> {
        const ONE: &str = "SELECT kind, name, CAST(SUM(hits) AS BIGINT) AS hits,
                CAST(SUM(denied) AS BIGINT) AS denied, CAST(SUM(shadow) AS BIGINT) AS shadow
            FROM limit_stats WHERE tenant_id = $1 AND kind = $5 AND subject = $6
                AND minute >= $2 AND minute < $3
            GROUP BY kind, name ORDER BY name LIMIT $4";
        // Of a rule with several limits the row without a limit's name counts: it has each decision once.
        const ALL: &str = "SELECT kind, CASE WHEN kind = 'rule' THEN subject ELSE name END AS name,
                CAST(SUM(hits) AS BIGINT) AS hits, CAST(SUM(denied) AS BIGINT) AS denied,
                CAST(SUM(shadow) AS BIGINT) AS shadow
            FROM limit_stats s WHERE tenant_id = $1 AND kind IN ('namespace', 'rule')
                AND minute >= $2 AND minute < $3
                AND (kind = 'namespace' OR name = '' OR NOT EXISTS (SELECT 1 FROM limit_stats whole
                    WHERE whole.tenant_id = s.tenant_id AND whole.kind = 'rule'
                        AND whole.subject = s.subject AND whole.minute = s.minute AND whole.name = ''))
            GROUP BY 1, 2 ORDER BY 2, 1 LIMIT $4";
        let reader = self.lists().await;
        let rows: Vec<SumRow> = match of {
            StatsOf::All => reader.all(ALL, binds![tenant_id, from, to, ROWS_MAX]).await?,
            StatsOf::One(kind, subject) => {
                let binds = binds![tenant_id, from, to, ROWS_MAX, kind.word(), subject];
                reader.all(ONE, binds).await?
            }
        };
        let sums = rows.into_iter().map(StatSum::try_from).collect::<Result<Vec<_>, _>>()?;
        Ok(match of {
            StatsOf::All => sums,
            StatsOf::One(_, subject) => by_limit(sums, subject),
        })
    }

    /// Forgets what is older than this; answers how many rows that were.
    pub async fn forget_limit_stats(&self, before: Millis) -> Result<u64, StoreError> {
        const FORGET: &str = "DELETE FROM limit_stats WHERE minute < $1";
        self.db.write(Purpose::Background).run(FORGET, binds![before]).await
    }

    /// Ids that are not there any more are passed over.
    pub async fn note_identity_uses(&self, uses: &[IdentityUse]) -> Result<(), StoreError> {
        const NOTE: &str = "WITH used (id, exceeded, at) AS (VALUES {}) UPDATE identities
            SET exceeded_count = identities.exceeded_count + used.exceeded,
                last_request_at = CASE WHEN identities.last_request_at IS NULL
                    OR identities.last_request_at < used.at THEN used.at
                    ELSE identities.last_request_at END
            FROM used WHERE identities.id = used.id";
        let mut sums: BTreeMap<&str, (u64, Millis)> = BTreeMap::new();
        for one in uses {
            let (exceeded, at) = sums.entry(&one.identity_id).or_default();
            *exceeded = exceeded.saturating_add(one.exceeded);
            *at = one.last_request_at.max(*at);
        }
        let rows: Vec<_> = sums.into_iter().collect();
        for chunk in rows.chunks(BATCH) {
            let mut binds: Vec<Bind<'_>> = Vec::with_capacity(chunk.len() * 3);
            for (id, (exceeded, at)) in chunk {
                binds.extend_from_slice(binds![*id, signed(*exceeded), *at]);
            }
            self.db.write(Purpose::Background).run_rows(NOTE, 3, &binds).await?;
        }
        Ok(())
    }
}

// === impl StatSum ===

impl TryFrom<SumRow> for StatSum {
    type Error = Fault;

    fn try_from(row: SumRow) -> Result<Self, Fault> {
        Ok(Self {
            kind: kind_of(&row.kind)?,
            name: row.name,
            hits: unsigned(row.hits),
            denied: unsigned(row.denied),
            shadow: unsigned(row.shadow),
        })
    }
}

/// A rule without limits is shown by its own name; else its limits are, and not what they come to together.
fn by_limit(mut sums: Vec<StatSum>, subject: &str) -> Vec<StatSum> {
    let named = sums.iter().any(|sum| sum.name != WHOLE_RULE);
    sums.retain(|sum| !named || sum.name != WHOLE_RULE);
    for sum in sums.iter_mut().filter(|sum| sum.name == WHOLE_RULE) {
        subject.clone_into(&mut sum.name);
    }
    sums
}

fn kind_of(word: &str) -> Result<Counted, Fault> {
    let all = [Counted::Namespace, Counted::Rule, Counted::Key, Counted::Identity];
    all.into_iter().find(|kind| kind.word() == word).ok_or(Fault::Unreadable("kind of count"))
}
