//! A million keys that do not exist, asked for beside keys that do: what it costs in memory, in reads of the database and
//! in the latency of the good ones.

use std::path::Path;
use std::sync::Arc;

use tollkeeper_core::key_text;
use tollkeeper_testkit::Postgres;

use super::admin::{self, Admin};
use super::metrics::Metrics;
use super::open_loop::{self, Answers, Pace, Stream, Write};
use super::revocation::node;
use super::throughput::KEYS;
use crate::failure::Failure;
use crate::http::requests::{on_the_wire_as, verification};
use crate::identifiers::Walk;
use crate::proc::resident_bytes_of;
use crate::report::{self, Table, Target};

const PATH: &str = "/v2/keys.verifyKey";
const VALID: &str = r#""code":"VALID""#;
const NOT_FOUND: &str = r#""code":"NOT_FOUND""#;
const GOOD_PER_SECOND: u64 = 1_000;
const FLOOD_PER_SECOND: u64 = 10_000;
const FLOOD: u64 = 1_000_000;
/// Of so many unknown keys one has a checksum that does not fit.
const MISTYPED_EVERY: u64 = 5;
/// The phases without a flood.
const QUIET_S: u64 = 20;
const GOOD_CONNECTIONS: usize = 32;
/// Some wait for their turn at the database; the others must not wait for those.
const FLOOD_CONNECTIONS: usize = 512;
const COLUMNS: [&str; 5] = [
    "beside the good keys",
    "good p50 µs",
    "good p99 µs",
    "p99, × alone",
    "p99, × beside as many known",
];

pub(super) fn run(tollkeeper: &Path) -> Result<(), Failure> {
    let postgres = Postgres::start_counting().map_err(admin::postgres)?;
    let database = postgres.database().map_err(admin::postgres)?;
    let (node, _folder) = node(tollkeeper, &database)?;
    let ask = |sql| postgres.ask(&database.name, sql).map_err(admin::postgres);
    ask("CREATE EXTENSION pg_stat_statements")?;
    let mut admin = Admin::open(node.url(), node.root_key())?;
    let api = admin.api()?;
    let wire = {
        let (url, key) = (node.url().to_owned(), node.root_key().to_owned());
        move |text: &str| on_the_wire_as(&key, PATH, &url, &verification(text)).into_bytes()
    };
    let good: Vec<_> = admin.keys(&api, KEYS)?.iter().map(|key| wire(&key.text)).collect();
    let known: Write =
        Arc::new(move |n| good[usize::try_from(n).unwrap_or(0) % good.len()].clone());
    let unknown: Write = Arc::new(move |n| wire(&unknown_key(n)));
    let good = |seconds| stream((GOOD_PER_SECOND, seconds), GOOD_CONNECTIONS, &known, VALID);
    let many = |write, seconds, wanted| {
        stream((FLOOD_PER_SECOND, seconds), FLOOD_CONNECTIONS, write, wanted)
    };
    let load = |streams| open_loop::run(node.url(), Pace::Ticking, streams);

    let title = "A million unknown keys beside good ones";
    let table = Table::new(title, "verify flood", &COLUMNS);
    load(vec![good(2)])?;
    let alone = first(load(vec![good(QUIET_S)])?)?;
    let beside = first(load(vec![good(QUIET_S), many(&known, QUIET_S, VALID)])?)?;
    let (resident, before) = (resident_bytes_of(node.pid())?, Metrics::of(node.url())?);
    ask("SELECT pg_stat_statements_reset()")?;
    let seconds = FLOOD / FLOOD_PER_SECOND;
    let mut flooded = load(vec![good(seconds), many(&unknown, seconds, NOT_FOUND)])?;
    let reads = ask(KEY_READS)?;
    let (resident_after, after) = (resident_bytes_of(node.pid())?, Metrics::of(node.url())?);
    let flood = flooded.pop().ok_or_else(|| Failure::Invalid("no answers".into()))?;
    let good = first(flooded)?;
    for (name, answers) in
        [("nothing", &alone), ("10,000 known a second", &beside), ("the flood", &good)]
    {
        let times = |of: &Answers| answers.within_us(990) / of.within_us(990);
        table.row(&[
            name.into(),
            format!("{:.0}", answers.within_us(500)),
            format!("{:.0}", answers.within_us(990)),
            format!("{:.2}", times(&alone)),
            format!("{:.2}", times(&beside)),
        ]);
    }
    let target = Target::AtMost(1.2);
    report::note(&format!(
        "p99 of good keys during the flood: × alone {}, × beside as many known keys {}.",
        target.verdict(good.within_us(990) / alone.within_us(990)),
        target.verdict(good.within_us(990) / beside.within_us(990)),
    ));
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    report::note(&format!(
        "Of {FLOOD} unknown keys {} were told as not found and {} as unavailable ({} others). The server asked the database \
         for keys {} times, renewals of good ones included; the database counted {} such statements. \
         Resident memory {:.1} MiB before, {:.1} MiB after.",
        flood.wanted,
        flood.unavailable,
        flood.other,
        after.key_loads() - before.key_loads(),
        reads.trim(),
        mib(resident),
        mib(resident_after),
    ));
    Ok(())
}

/// Statements that look up one key by its hash, or whether there is one.
pub(super) const KEY_READS: &str = "SELECT COALESCE(SUM(calls), 0) FROM pg_stat_statements
    WHERE query LIKE 'WITH chosen AS (SELECT id FROM keys WHERE ((hash%'
        OR query LIKE 'SELECT COUNT(*) FROM keys WHERE hash IN%'";

fn stream(
    (per_second, seconds): (u64, u64),
    connections: usize,
    write: &Write,
    wanted: &'static str,
) -> Stream {
    let write = Arc::clone(write);
    Stream { per_second, requests: per_second * seconds, connections, write, wanted }
}

/// The good keys' answers.
fn first(answers: Vec<Answers>) -> Result<Answers, Failure> {
    let first = answers.into_iter().next();
    first.ok_or_else(|| Failure::Invalid("no answers".into()))?.all_wanted()
}

fn unknown_key(n: u64) -> String {
    let random: Vec<u8> = Walk::from(n << 8).take(3).flat_map(u64::to_be_bytes).take(20).collect();
    let mut text = key_text(None, &random);
    if n.is_multiple_of(MISTYPED_EVERY) {
        let last = text.pop();
        text.push(if last == Some('x') { 'y' } else { 'x' });
    }
    text
}
