//! One identifier with a high limit, and as much load on three nodes as the machine takes: what Redis has to do for it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tollkeeper_testkit::ROOT_KEY;

use super::closed_loop::{Load, Until};
use super::fleet::Fleet;
use super::redis_side::Reading;
use crate::failure::Failure;
use crate::http::requests::on_the_wire_as;
use crate::http::server::Core;
use crate::report::{self, Table, Target};
use crate::verify::metrics::Metrics;
use crate::verify::open_loop::Write;

const NODES: usize = 3;
/// A log holds ten thousand units at most, so it has no place here.
const ALGORITHMS: [&str; 3] = ["fixed_window", "sliding_window", "token_bucket"];
const LIMIT: u64 = 1_000_000;
const WIDTH_MS: u64 = 10_000;
const CONNECTIONS: usize = 16;
const WARMING: Duration = Duration::from_secs(1);
/// One width, so that an edge of a window is within.
const MEASURED: Duration = Duration::from_secs(10);
const COLUMNS: [&str; 8] = [
    "algorithm",
    "requests/s",
    "refused",
    "degraded",
    "Redis calls per decision",
    "waited for Redis",
    "Redis' CPU, of one core",
    "p50, p99 µs",
];

pub(super) fn run(tollkeeper: &Path) -> Result<(), Failure> {
    let fleet = Fleet::start(tollkeeper, NODES)?;
    let hosts: Vec<String> =
        fleet.urls().iter().map(|url| url.trim_start_matches("http://").to_owned()).collect();
    let title = "One identifier of 1,000,000 in 10 s on three nodes, closed loop";
    let table = Table::new(title, "exact hot", &COLUMNS);
    let mut most: f64 = 0.0;
    for algorithm in ALGORITHMS {
        let load = Load { hosts: hosts.clone(), connections: CONNECTIONS, core: Core::Any };
        load.run(Until::Passed(WARMING), write(algorithm))?;
        let (before, waited) = (Reading::of(fleet.redis())?, waits(&hosts)?);
        let mut tally = load.run(Until::Passed(MEASURED), write(algorithm))?;
        let work = Reading::of(fleet.redis())?.since(before);
        let waited = waits(&hosts)? - waited;
        let answered = tally.answered.max(1) as f64;
        let share = |count: u64| count as f64 / answered;
        most = most.max(share(work.takes));
        table.row(&[
            algorithm.into(),
            format!("{:.0}", tally.per_second()),
            (tally.answered - tally.admitted - tally.degraded).to_string(),
            tally.degraded.to_string(),
            format!("{:.5}", share(work.takes)),
            format!("{:.3} %", share(waited) * 100.0),
            format!("{:.1} %", work.cpu_us / 1e4 / tally.took.as_secs_f64()),
            format!("{:.0}, {:.0}", tally.within_us(500), tally.within_us(990)),
        ]);
    }
    report::note(&format!(
        "No identifier needs a call per request: {most:.5} at most ({}).",
        Target::AtMost(0.5).verdict(most)
    ));
    Ok(())
}

fn write(algorithm: &'static str) -> Write {
    let body = format!(
        r#"{{"namespace":"hot","identifier":"everybody","limit":{LIMIT},"duration":{WIDTH_MS},"cost":1,"algorithm":"{algorithm}"}}"#
    );
    let request = on_the_wire_as(ROOT_KEY, "/v2/ratelimit.limit", "node", &body).into_bytes();
    Arc::new(move |_| request.clone())
}

/// Asks that waited, on all nodes.
fn waits(hosts: &[String]) -> Result<u64, Failure> {
    let mut all = 0;
    for host in hosts {
        all += Metrics::of(host)?.count("tollkeeper_lease_waits_total");
    }
    Ok(all)
}
