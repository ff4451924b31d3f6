//! Totals on their way into a statement, whole batches at once: lists for PostgreSQL, one JSON text for SQLite. Either is one
//! statement for any number of rows, prepared once.

use std::collections::BTreeMap;

use sqlx::postgres::{PgConnection, PgPool};
use tollkeeper_core::{Component, Minute, Usage, boot_text};

use crate::bind::{binds, signed};
use crate::db::{Begun, Pools};
use crate::each::Stored;
use crate::patience::{IN_TRANSACTION, Patient, within};
use crate::{Each, StoreError};

/// Who, and when.
pub(super) type Named<'a> = (Minute, [u8; 16], &'a str, &'a str);

/// A statement over `incoming`, spelled for each database.
#[derive(Clone, Copy)]
pub(super) struct Statement {
    pub(super) lite: &'static str,
    pub(super) pg: &'static str,
}

macro_rules! statement {
    ($($part:expr),+ $(,)?) => {
        $crate::usage::rows::Statement {
            lite: concat!(
                "WITH incoming AS (SELECT value ->> 0 AS minute, value ->> 1 AS boot,
                    value ->> 2 AS project_id, value ->> 3 AS key_id, value ->> 4 AS date,
                    value ->> 5 AS requests, value ->> 6 AS denied, value ->> 7 AS bytes,
                    value ->> 8 AS credits FROM json_each($1)) ",
                $($part),+
            ),
            pg: concat!(
                "WITH incoming AS (SELECT * FROM UNNEST(CAST($1 AS BIGINT[]), CAST($2 AS TEXT[]),
                    CAST($3 AS TEXT[]), CAST($4 AS TEXT[]), CAST($5 AS TEXT[]), CAST($6 AS BIGINT[]),
                    CAST($7 AS BIGINT[]), CAST($8 AS BIGINT[]), CAST($9 AS BIGINT[]))
                    AS told (minute, boot, project_id, key_id, date, requests, denied, bytes, credits)) ",
                $($part),+
            ),
        }
    };
}

pub(super) use statement;

/// Each once, with its highest totals, in the order in which they are written.
pub(super) enum Rows {
    Lite(String),
    Pg(Box<Lists>),
}

#[derive(Default)]
pub(super) struct Lists {
    minute: Vec<i64>,
    boot: Vec<String>,
    project_id: Vec<String>,
    key_id: Vec<String>,
    date: Vec<String>,
    totals: [Vec<i64>; 4],
}

pub(super) fn highest_of_each<'a>(
    told: impl Iterator<Item = &'a Component>,
) -> Vec<(Named<'a>, Usage)> {
    let mut rows: BTreeMap<Named<'a>, Usage> = BTreeMap::new();
    for one in told {
        let name = (one.minute, one.boot, &*one.project_id, &*one.key_id);
        let highest = rows.entry(name).or_default();
        *highest = highest.max(one.usage);
    }
    rows.into_iter().collect()
}

// === impl Rows ===

impl Rows {
    pub(super) fn lite(rows: &[(Named<'_>, Usage)]) -> Self {
        let row = |((minute, boot, project_id, key_id), usage): &(Named<'_>, Usage)| {
            let [requests, denied, bytes, credits] = totals(*usage);
            serde_json::json!([
                signed(minute.start().0),
                boot_text(*boot),
                project_id,
                key_id,
                minute.date(),
                requests,
                denied,
                bytes,
                credits,
            ])
        };
        Self::Lite(serde_json::Value::Array(rows.iter().map(row).collect()).to_string())
    }

    pub(super) fn pg(rows: &[(Named<'_>, Usage)]) -> Self {
        let mut lists = Lists::default();
        for ((minute, boot, project_id, key_id), usage) in rows {
            lists.minute.push(signed(minute.start().0));
            lists.boot.push(boot_text(*boot));
            lists.project_id.push((*project_id).to_owned());
            lists.key_id.push((*key_id).to_owned());
            lists.date.push(minute.date());
            let totals = lists.totals.iter_mut().zip(totals(*usage));
            totals.for_each(|(list, total)| list.push(total));
        }
        Self::Pg(Box::new(lists))
    }

    pub(super) async fn run(
        &self,
        begun: &mut Begun,
        statement: Statement,
    ) -> Result<(), StoreError> {
        match (self, begun) {
            (Self::Pg(lists), Each::Pg(begun)) => {
                let connection: &mut PgConnection = &mut *begun;
                let applied = lists.bound(sqlx::query(statement.pg)).execute(connection);
                within(IN_TRANSACTION, applied).await?;
            }
            (Self::Lite(json), begun) => {
                begun.conn().run(statement.lite, binds![json]).await?;
            }
            // Rows are made for the database that they go to.
            (Self::Pg(_), Each::Lite(_)) => {}
        }
        Ok(())
    }

    pub(super) async fn all<T: Stored>(
        &self,
        from: Pools<'_>,
        statement: Statement,
    ) -> Result<Vec<T>, StoreError> {
        match (self, from) {
            (Self::Pg(lists), Each::Pg(pool)) => {
                let [requests, denied, bytes, credits] = &lists.totals;
                let asked = sqlx::query_as(statement.pg)
                    .bind(&lists.minute)
                    .bind(&lists.boot)
                    .bind(&lists.project_id)
                    .bind(&lists.key_id)
                    .bind(&lists.date)
                    .bind(requests)
                    .bind(denied)
                    .bind(bytes)
                    .bind(credits);
                Ok(within(<&PgPool>::PATIENCE, asked.fetch_all(pool)).await?)
            }
            (Self::Lite(json), from) => from.all(statement.lite, binds![json]).await,
            (Self::Pg(_), Each::Lite(_)) => Ok(Vec::new()),
        }
    }
}

// === impl Lists ===

type PgQuery<'q> = sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments>;

impl Lists {
    fn bound<'q>(&'q self, query: PgQuery<'q>) -> PgQuery<'q> {
        let [requests, denied, bytes, credits] = &self.totals;
        query
            .bind(&self.minute)
            .bind(&self.boot)
            .bind(&self.project_id)
            .bind(&self.key_id)
            .bind(&self.date)
            .bind(requests)
            .bind(denied)
            .bind(bytes)
            .bind(credits)
    }
}

fn totals(usage: Usage) -> [i64; 4] {
    [usage.requests, usage.denied, usage.bytes, usage.credits].map(signed)
}
