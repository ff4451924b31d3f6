//! A node that is started anew with 100,000 keys in use: how often it asks the database until all of them were verified.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tollkeeper_testkit::{Postgres, Tollkeeper};

use super::admin::{self, Admin};
use super::flood::KEY_READS;
use super::metrics::Metrics;
use super::open_loop::{self, Answers, Pace, Stream};
use super::revocation::{node, start};
use crate::clock::Stopwatch;
use crate::failure::Failure;
use crate::http::requests::{on_the_wire_as, verification};
use crate::report::Table;

const KEYS: u64 = 100_000;
/// As many as one call takes.
const IMPORTED_AT_ONCE: u64 = 100;
/// The first time every key is looked up in the database, which has to keep up.
const COLD_PER_SECOND: u64 = 3_000;
const WARM_PER_SECOND: u64 = 10_000;
const CONNECTIONS: usize = 64;
const NOTED: &str = "SELECT COUNT(*) FROM keys WHERE last_used_at IS NOT NULL";
/// Statements that bring many keys near at a start.
const PAGES: &str = "SELECT COALESCE(SUM(calls), 0) FROM pg_stat_statements
    WHERE query LIKE 'WITH chosen AS (SELECT id FROM keys WHERE last_used_at%'";
const COLUMNS: [&str; 6] = [
    "keys",
    "start s",
    "statements of the start",
    "requests that waited for the database",
    "renewals behind answers",
    "statements for single keys",
];

pub(super) fn run(tollkeeper: &Path) -> Result<(), Failure> {
    let postgres = Postgres::start_counting().map_err(admin::postgres)?;
    let database = postgres.database().map_err(admin::postgres)?;
    let (mut first, folder) = node(tollkeeper, &database)?;
    let ask = |sql| postgres.ask(&database.name, sql).map_err(admin::postgres);
    ask("CREATE EXTENSION pg_stat_statements")?;
    import(&first)?;
    // A few may find no connection in time; the second round has those.
    verify_all(&first, COLD_PER_SECOND)?;
    for answers in verify_all(&first, WARM_PER_SECOND)? {
        answers.all_wanted()?;
    }
    first.terminate().map_err(Failure::io("tollkeeper serve"))?;
    if ask(NOTED)?.trim() != KEYS.to_string() {
        return Err(Failure::Invalid(format!("only {} uses were written", ask(NOTED)?.trim())));
    }
    ask("SELECT pg_stat_statements_reset()")?;
    let watch = Stopwatch::start();
    let again = start(tollkeeper, &database, folder.path())?;
    let took = watch.elapsed();
    for answers in verify_all(&again, WARM_PER_SECOND)? {
        answers.all_wanted()?;
    }
    let metrics = Metrics::of(again.url())?;
    let misses = metrics.count("tollkeeper_cache_reads_total{cache=\"key\",status=\"miss\"}");
    let title = "Restart with 100,000 keys in use, each verified once";
    Table::new(title, "verify restart", &COLUMNS).row(&[
        KEYS.to_string(),
        format!("{:.1}", took.as_secs_f64()),
        ask(PAGES)?.trim().to_owned(),
        misses.to_string(),
        metrics.key_loads().saturating_sub(misses).to_string(),
        ask(KEY_READS)?.trim().to_owned(),
    ]);
    Ok(())
}

fn text(n: u64) -> String {
    format!("brought-in-from-elsewhere-{n}")
}

/// By their hashes, a hundred in a call: making so many one by one would take minutes.
fn import(node: &Tollkeeper) -> Result<(), Failure> {
    let mut admin = Admin::open(node.url(), node.root_key())?;
    let api = admin.api()?;
    for from in (0..KEYS).step_by(usize::try_from(IMPORTED_AT_ONCE).unwrap_or(1)) {
        let key = |n| json!({"hash": hex(&Sha256::digest(text(n)))});
        let keys: Vec<Value> = (from..from + IMPORTED_AT_ONCE).map(key).collect();
        let body = json!({"migrationId": "bench", "apiId": api, "keys": keys});
        let done = admin.data("keys.migrateKeys", &body)?;
        if done["failed"] != json!([]) {
            return Err(Failure::Invalid(format!("keys were not taken: {done}")));
        }
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn verify_all(node: &Tollkeeper, per_second: u64) -> Result<Vec<Answers>, Failure> {
    let (url, key) = (node.url().to_owned(), node.root_key().to_owned());
    let write = move |n| {
        on_the_wire_as(&key, "/v2/keys.verifyKey", &url, &verification(&text(n))).into_bytes()
    };
    let stream = Stream {
        per_second,
        requests: KEYS,
        connections: CONNECTIONS,
        write: Arc::new(write),
        wanted: r#""code":"VALID""#,
    };
    open_loop::run(node.url(), Pace::Ticking, vec![stream])
}
