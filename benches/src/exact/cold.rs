//! Identifiers that nobody has asked for before, one request each: what each costs Redis in calls, time and memory, beside a
//! plain counter under the same rounds.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tollkeeper_testkit::RedisServer;

use super::closed_loop::{Load, Tally, Until};
use super::counter::Counter;
use super::redis_side::{self, Pace, Reading, Work};
use crate::clock::{Stopwatch, pause};
use crate::failure::Failure;
use crate::http::requests::{ROOT_KEY, on_the_wire_as};
use crate::http::server::{Core, Server};
use crate::http::{cores, scratch};
use crate::identifiers::identifier;
use crate::proc::resident_bytes_of;
use crate::report::{self, Table, Target, ratio};
use crate::rounds::Spread;
use crate::verify::metrics::Metrics;
use crate::verify::open_loop::Write;

/// Longer than a run, so that no record expires in it.
const WIDTH_MS: u64 = 3_600_000;
/// Asked for before anything is counted, from numbers of their own.
const WARMING: u64 = 2_000;
const WARMING_FROM: u64 = 1 << 40;
/// What a node does not use for a second it would give back.
const IDLE: Duration = Duration::from_millis(2_500);
/// Of the plain counter's calls of a round these are not measured: they only fill its Redis as much as the node's.
const FILLING: u64 = 70;
const IN_NO_TIME: Pace = Pace { at_once: 50.0, per_second: f64::INFINITY };
const COLUMNS: [&str; 13] = [
    "algorithm",
    "identifiers",
    "connections",
    "requests/s",
    "p99 ms",
    "calls per identifier",
    "degraded",
    "bytes per record (plain counter)",
    "bytes in the node",
    "Redis' CPU µs per call",
    "of the plain counter",
    "calls per read",
    "× plain counter",
];

struct Case {
    algorithm: &'static str,
    connections: usize,
    rounds: u64,
    each: u64,
}

const CASES: [Case; 5] = [
    Case { algorithm: "sliding_window", connections: 8, rounds: 10, each: 100_000 },
    Case { algorithm: "sliding_window", connections: 1, rounds: 5, each: 5_000 },
    Case { algorithm: "fixed_window", connections: 1, rounds: 5, each: 5_000 },
    Case { algorithm: "token_bucket", connections: 1, rounds: 5, each: 5_000 },
    Case { algorithm: "sliding_log", connections: 1, rounds: 5, each: 5_000 },
];

/// Redis alone on the last core, all others on the first: so that its time is its own on either side.
fn places() -> (Core, Core) {
    if cores() > 1 { (Core::Only(0), Core::Only(1)) } else { (Core::Any, Core::Any) }
}

pub(super) fn run(tollkeeper: &Path) -> Result<(), Failure> {
    let title = "Cold identifiers, one request each, on one node";
    let table = Table::new(title, "exact cold", &COLUMNS);
    for case in &CASES {
        table.row(&case.measure(tollkeeper)?);
    }
    report::note(
        "Targets: one call per identifier, beside what the node does when nobody asks, and none to give anything back; a record of at most 200 bytes; at most 1.6 × the \
         CPU of a plain counter's call with as many calls per read.",
    );
    Ok(())
}

// === impl Case ===

impl Case {
    fn measure(&self, tollkeeper: &Path) -> Result<Vec<String>, Failure> {
        let (near, away) = places();
        let scratch = scratch()?;
        let (ours, plain) = (redis_side::start_on(away)?, redis_side::start_on(away)?);
        let url = ours.url();
        let settings = [("TOLLKEEPER_REDIS_URL", url.as_str())];
        let node = Server::tollkeeper_with(tollkeeper, &scratch, near, &settings)?;
        let hosts = vec![node.address().to_owned()];
        let load = Load { hosts, connections: self.connections, core: near };
        load.run(Until::Sent(WARMING), self.write(node.address(), WARMING_FROM))?;
        let mut counter = Counter::open(&plain, WIDTH_MS)?;
        let key = some_key(&ours)?;

        // What a node does by itself is of the same commands, and goes on in the run.
        let idle = Reading::of(&ours)?;
        pause(IDLE);
        let upkeep = Reading::of(&ours)?.since(idle).records as f64 / IDLE.as_secs_f64();
        let began = Stopwatch::start();
        let plain_before = Reading::of(&plain)?;
        let (before, met_before) = (Reading::of(&ours)?, Metrics::of(node.address())?);
        let resident = resident_bytes_of(node.pid())?;
        let (mut all, mut rounds) = (Tally::default(), Vec::new());
        for round in 0..self.rounds {
            let from = round * self.each;
            let began = Reading::of(&ours)?;
            let tally = load.run(Until::Sent(self.each), self.write(node.address(), from))?;
            let work = Reading::of(&ours)?.since(began);
            let (until, pace) = (from + self.each, work.pace(tally.took));
            all.add(tally);
            let filled = from + self.each * FILLING / 100;
            counter.count(from..filled, (&key.0, key.1), IN_NO_TIME)?;
            let began = Reading::of(&plain)?;
            counter.count(filled..until, (&key.0, key.1), pace)?;
            rounds.push((work, Reading::of(&plain)?.since(began)));
        }
        let memory = (
            Reading::of(&ours)?.since(before).memory,
            Reading::of(&plain)?.since(plain_before).memory,
        );
        let grown = resident_bytes_of(node.pid())?.saturating_sub(resident);
        pause(IDLE);
        let whole = Reading::of(&ours)?.since(before).records as f64
            - upkeep * began.elapsed().as_secs_f64();
        let met = Metrics::of(node.address())?;
        let count = |series| met.count(series) - met_before.count(series);
        let waits = count("tollkeeper_lease_waits_total");
        let late = count("tollkeeper_redis_calls_total{result=\"late\"}");
        if waits + count("tollkeeper_lease_detached_total") < self.identifiers() {
            return Err(Failure::Invalid(format!("only {waits} requests asked Redis")));
        }
        Ok(self.row(all, &rounds, (whole, late), (memory, grown)))
    }

    fn row(
        &self,
        mut all: Tally,
        rounds: &[(Work, Work)],
        (calls, late): (f64, u64),
        (memory, grown): ((f64, f64), u64),
    ) -> Vec<String> {
        let each = |of: fn(&Work) -> f64| -> (Vec<f64>, Vec<f64>) {
            rounds.iter().map(|(ours, plain)| (of(ours), of(plain))).unzip()
        };
        let (ours, plain) = each(Work::cpu_us_per_script);
        let (depth, plain_depth) = each(Work::scripts_per_read);
        let times = Spread::of_ratios(&ours, &plain);
        let per_identifier = calls / self.identifiers() as f64;
        let bytes = memory.0 / self.identifiers() as f64;
        let plain_bytes = memory.1 / self.identifiers() as f64;
        // The upkeep is known to a few calls in a second only.
        let once = per_identifier < 1.001;
        let calls = format!(
            "{per_identifier:.4}, with {late} not answered in 5 ms and sent again: {}",
            if once { "met" } else { "**missed**" }
        );
        vec![
            self.algorithm.into(),
            self.identifiers().to_string(),
            self.connections.to_string(),
            format!("{:.0}", all.per_second()),
            format!("{:.2}", all.within_us(990) / 1e3),
            calls,
            all.degraded.to_string(),
            format!("{bytes:.0} ({plain_bytes:.0}), {}", Target::AtMost(200.0).verdict(bytes)),
            format!("{:.0}", grown as f64 / self.identifiers() as f64),
            ratio(Spread::of(ours)),
            ratio(Spread::of(plain)),
            format!("{:.1} ({:.1})", Spread::of(depth).median, Spread::of(plain_depth).median),
            format!("{}, {}", ratio(times), Target::AtMost(1.6).verdict(times.median)),
        ]
    }

    fn identifiers(&self) -> u64 {
        self.rounds * self.each
    }

    fn write(&self, host: &str, from: u64) -> Write {
        let (host, algorithm) = (host.to_owned(), self.algorithm);
        Arc::new(move |n| {
            let identifier = identifier(from + n);
            let body = format!(
                r#"{{"namespace":"cold","identifier":"{identifier}","limit":1000,"duration":{WIDTH_MS},"cost":1,"algorithm":"{algorithm}"}}"#
            );
            on_the_wire_as(ROOT_KEY, "/v2/ratelimit.limit", &host, &body).into_bytes()
        })
    }
}

/// A record's key as the node writes it, with the number of its identifier.
fn some_key(redis: &RedisServer) -> Result<(String, u64), Failure> {
    let text = identifier(WARMING_FROM);
    let keys = redis.ask(&["--scan", "--pattern", &format!("*{text}*")]);
    let key = keys.lines().next().filter(|key| key.contains(&text)).map(str::to_owned);
    key.map(|key| (key, WARMING_FROM)).ok_or_else(|| Failure::unreadable("a key of Redis", keys))
}
