//! What a shared Redis adds to the latency of identifiers in use: the same open loop on a node with it and on one without.

use std::path::Path;
use std::sync::Arc;

use super::redis_side;
use crate::failure::Failure;
use crate::http::requests::{ROOT_KEY, on_the_wire_as};
use crate::http::server::Server;
use crate::http::{APART, Places, TOGETHER, cores, scratch};
use crate::identifiers::identifier;
use crate::proc;
use crate::report::{self, Table, Target, ratio, whole};
use crate::rounds::{Spread, interleaved};
use crate::verify::metrics::Metrics;
use crate::verify::open_loop::{self, Answers, Pace, Stream};

const CONNECTIONS: usize = 24;
const COLUMNS: [&str; 10] = [
    "limit",
    "identifiers",
    "requests/s",
    "without Redis: p50 µs",
    "p95",
    "p99",
    "with Redis: p50 µs",
    "p95, × without",
    "p99, × without",
    "not admitted",
];

/// Requests of one limit. No two have the same pace, or they would always come together.
struct Kind {
    limit: u64,
    identifiers: u64,
    per_second: u64,
}

/// Kinds side by side, so that none has a quieter machine than the others.
struct Scene {
    title: &'static str,
    width_ms: u64,
    /// Not measured: what a node has used of a cell decides how much it asks for.
    warming_s: u64,
    measured_s: u64,
    rounds: usize,
    kinds: [Kind; 3],
}

const SCENES: [Scene; 2] = [
    Scene {
        title: "identifiers that use 1,000 units a second each, windows of 1 s",
        width_ms: 1_000,
        warming_s: 1,
        measured_s: 3,
        rounds: 6,
        kinds: [
            Kind { limit: 1_100, identifiers: 3, per_second: 3_010 },
            Kind { limit: 10_000, identifiers: 3, per_second: 3_000 },
            Kind { limit: 100_000, identifiers: 3, per_second: 2_990 },
        ],
    },
    Scene {
        title: "1,000 identifiers that use 10 units a second each, windows of 5 s",
        width_ms: 5_000,
        warming_s: 4,
        measured_s: 5,
        rounds: 4,
        kinds: [
            Kind { limit: 1_000, identifiers: 334, per_second: 3_340 },
            Kind { limit: 10_000, identifiers: 333, per_second: 3_330 },
            Kind { limit: 100_000, identifiers: 332, per_second: 3_320 },
        ],
    },
];

/// What one side did in one round.
struct Round {
    answers: Vec<Answers>,
    /// By the server's own histogram.
    p95_us: f64,
    p99_us: f64,
    waits: u64,
    cpu_us: f64,
}

pub(super) fn run(tollkeeper: &Path) -> Result<(), Failure> {
    let scratch = scratch()?;
    let places = if cores() > 1 { APART } else { TOGETHER };
    // With the node on its core: the other one is the load's alone.
    let redis = redis_side::start_on(places.server)?;
    let url = redis.url();
    let settings = [("TOLLKEEPER_REDIS_URL", url.as_str())];
    let alone = Server::tollkeeper(tollkeeper, &scratch, places.server)?;
    let shared = Server::tollkeeper_with(tollkeeper, &scratch, places.server, &settings)?;
    let sides = [&alone, &shared];
    for scene in &SCENES {
        let rounds = interleaved(scene.rounds, &sides, |server| scene.load(server, places))?;
        scene.show(&rounds);
    }
    Ok(())
}

// === impl Scene ===

impl Scene {
    fn load(&self, server: &Server, places: Places) -> Result<Round, Failure> {
        let run = |seconds| {
            let streams = self.kinds.iter().map(|kind| self.stream(kind, server, seconds));
            open_loop::run(server.address(), Pace::Exact(places.load), streams.collect())
        };
        run(self.warming_s)?;
        let (before, cpu) = (Metrics::of(server.address())?, proc::cpu_time(server.pid())?);
        let answers = run(self.measured_s)?;
        let cpu = proc::cpu_time(server.pid())?.saturating_sub(cpu);
        let after = Metrics::of(server.address())?;
        let within = |share| after.served_within_us(&before, share).unwrap_or(f64::INFINITY);
        let waits = |of: &Metrics| of.count("tollkeeper_lease_waits_total");
        Ok(Round {
            answers,
            p95_us: within(0.95),
            p99_us: within(0.99),
            waits: waits(&after) - waits(&before),
            cpu_us: cpu.as_secs_f64() * 1e6 / self.requests() as f64,
        })
    }

    /// In a round, of all kinds.
    fn requests(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.per_second * self.measured_s).sum()
    }

    fn stream(&self, kind: &Kind, server: &Server, seconds: u64) -> Stream {
        let Kind { limit, identifiers, per_second } = *kind;
        let width_ms = self.width_ms;
        let request = |n| {
            let identifier = identifier(n);
            // Limits of one identifier in one namespace would share a counter.
            let body = format!(
                r#"{{"namespace":"hot-{limit}","identifier":"{identifier}","limit":{limit},"duration":{width_ms},"cost":1,"algorithm":"sliding_window"}}"#
            );
            on_the_wire_as(ROOT_KEY, "/v2/ratelimit.limit", server.address(), &body).into_bytes()
        };
        let all: Vec<Vec<u8>> = (0..identifiers).map(request).collect();
        let write = move |n: u64| all[(n % identifiers) as usize].clone();
        Stream {
            per_second,
            requests: per_second * seconds,
            connections: CONNECTIONS,
            write: Arc::new(write),
            wanted: r#""success":true"#,
        }
    }

    fn show(&self, sides: &[Vec<Round>]) {
        let [alone, shared] = sides else { return };
        let title = format!("Latency with Redis against without: {}", self.title);
        let table = Table::new(&title, "exact latency", &COLUMNS);
        for (place, kind) in self.kinds.iter().enumerate() {
            let each = |side: &[Round], share| -> Vec<f64> {
                side.iter().map(|round| round.answers[place].within_us(share)).collect()
            };
            let spread = |side: &[Round], share| whole(Spread::of(each(side, share)));
            let times = |share| Spread::of_ratios(&each(shared, share), &each(alone, share));
            let p99_target = if kind.limit >= 100_000 { Target::AtMost(1.3) } else { Target::None };
            let versus = |share, target: Target| {
                let times = times(share);
                let us = spread(shared, share);
                format!("{us}, {}, {}", ratio(times), target.verdict(times.median))
            };
            let refused = |side: &[Round]| -> u64 {
                side.iter()
                    .map(|round| &round.answers[place])
                    .map(|a| a.other + a.unavailable)
                    .sum()
            };
            table.row(&[
                kind.limit.to_string(),
                kind.identifiers.to_string(),
                kind.per_second.to_string(),
                spread(alone, 500),
                spread(alone, 950),
                spread(alone, 990),
                spread(shared, 500),
                versus(950, Target::AtMost(1.1)),
                versus(990, p99_target),
                format!("{} (without: {})", refused(shared), refused(alone)),
            ]);
        }
        let all = self.requests() as f64;
        let waited = Spread::of(shared.iter().map(|round| round.waits as f64 * 100.0 / all));
        let own = |side: &[Round], of: fn(&Round) -> f64| whole(Spread::of(side.iter().map(of)));
        report::note(&format!(
            "Waited for Redis: {} % of the decisions, {}. By the servers' own histograms p95 is at most {} µs without and {} µs \
             with Redis, p99 at most {} µs and {} µs. A request takes {} µs of the server's CPU without and {} µs with Redis.",
            ratio(waited),
            Target::AtMost(4.0).verdict(waited.median),
            own(alone, |round| round.p95_us),
            own(shared, |round| round.p95_us),
            own(alone, |round| round.p99_us),
            own(shared, |round| round.p99_us),
            own(alone, |round| round.cpu_us),
            own(shared, |round| round.cpu_us),
        ));
    }
}
