//! What running traffic feels of 10,000 rules that are applied beside it, and how long that takes.

use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::admin::Admin;
use super::latency::stream;
use super::open_loop::{self, Pace};
use super::throughput;
use crate::clock::{Stopwatch, pause};
use crate::failure::Failure;
use crate::http::requests::{ROOT_KEY, Requests};
use crate::http::scratch;
use crate::http::server::{Core, Server};
use crate::report::{self, Table, Target, whole};
use crate::rounds::Spread;

const PER_SECOND: u64 = 2_000;
const SECONDS: u64 = 6;
/// Long enough into the stream that it runs steadily.
const BEFORE: Duration = Duration::from_secs(1);
const ROUNDS: usize = 5;
const RULES: usize = 10_000;
const COLUMNS: [&str; 4] = ["traffic", "p50 µs", "p99 µs", "max µs"];

pub(super) fn run(tollkeeper: &Path) -> Result<(), Failure> {
    let scratch = scratch()?;
    let server = Server::tollkeeper(tollkeeper, &scratch, Core::Any)?;
    let requests = Requests::verifications(&scratch, &throughput::keys(&server)?)?;
    let mut admin = Admin::open(server.address(), ROOT_KEY)?;
    let (mut calm, mut beside, mut took) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let traffic = || {
            let stream = stream(&server, &requests, PER_SECOND, PER_SECOND * SECONDS);
            open_loop::run(server.address(), Pace::Ticking, vec![stream])
        };
        let before = traffic()?;
        // Written before, and read by nobody: what a client makes of it is not the server's time, and they share the cores.
        let body = json!({"rules": rules(round), "prune": true}).to_string();
        let (during, applied) = thread::scope(|scope| {
            let running = scope.spawn(traffic);
            pause(BEFORE);
            let watch = Stopwatch::start();
            let applied = admin.said("rules.apply", &body).map(|_| watch.elapsed());
            (running.join(), applied)
        });
        let during = during.map_err(|_| Failure::Invalid("the load ended early".into()))??;
        let applied = applied?;
        // The first round fills caches and is thrown away.
        if round > 0 {
            calm.extend(before);
            beside.extend(during);
            took.push(applied.as_secs_f64() * 1_000.0);
        }
    }
    let title = format!("{RULES} rules applied beside {PER_SECOND} verifications a second");
    let table = Table::new(&title, "verify apply", &COLUMNS);
    let p99 = |side: &[open_loop::Answers]| Spread::of(side.iter().map(|one| one.within_us(990)));
    for (name, side) in [("alone", &calm), ("while rules are applied", &beside)] {
        let of = |share| whole(Spread::of(side.iter().map(|one| one.within_us(share))));
        table.row(&[name.into(), of(500), of(990), of(1000)]);
    }
    let step = p99(&beside).median / p99(&calm).median.max(1.0);
    let took = Spread::of(took);
    report::note(&format!(
        "Applying took {} ms ({}); p99 beside it {step:.2} of alone ({}).",
        whole(took),
        Target::AtMost(2_000.0).verdict(took.median),
        Target::AtMost(1.5).verdict(step),
    ));
    Ok(())
}

/// None of them is met, and each round changes all of them.
fn rules(round: usize) -> Vec<Value> {
    let rule = |n: usize| {
        json!({"name": format!("rule-{n}"), "scope": "user", "endpoints": [format!("/v1/area-{}/thing-{n}/**", n % 97)],
            "methods": ["POST"], "limits": [{"limit": 100 + round, "window": "1m"}]})
    };
    (0..RULES).map(rule).collect()
}
