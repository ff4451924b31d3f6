//! Latency at a steady 10,000 requests a second: by the server's own histogram, and as a client sees it beside a bare
//! hyper server under the same load.

use std::path::Path;
use std::sync::Arc;

use super::metrics::Metrics;
use super::open_loop::{self, Pace, Stream};
use super::throughput;
use crate::failure::Failure;
use crate::http::reply::Reply;
use crate::http::requests::Requests;
use crate::http::server::Server;
use crate::http::{APART, TOGETHER, cores, scratch};
use crate::report::{self, Table, Target, whole};
use crate::rounds::{Spread, interleaved};

const PER_SECOND: u64 = 10_000;
const SECONDS: u64 = 20;
/// Not measured. All keys have been idle since the last round and are renewed within the first of these seconds.
const WARMING_SECONDS: u64 = 3;
const ROUNDS: usize = 3;
const CONNECTIONS: usize = 64;
const COLUMNS: [&str; 5] =
    ["server", "client p50 µs", "client p99 µs", "client max µs", "p99, × the first"];

pub(super) fn run(tollkeeper: &Path) -> Result<(), Failure> {
    let scratch = scratch()?;
    let places = if cores() > 1 { APART } else { TOGETHER };
    let ours = Server::tollkeeper(tollkeeper, &scratch, places.server)?;
    let requests = Requests::verifications(&scratch, &throughput::keys(&ours)?)?;
    let reply = Reply::capture(ours.address(), &requests)?.save_to(&scratch)?;
    let bare = Server::bare("bare-hyper-verify", &reply, 1, places.server)?;
    let before = Metrics::of(ours.address())?;
    let sides = [("bare hyper", &bare), ("tollkeeper", &ours)];
    let figures = interleaved(ROUNDS, &sides, |(_, server)| {
        // The cache is to be hot: what a cold one costs is told elsewhere.
        let warming = stream(server, &requests, PER_SECOND, PER_SECOND * WARMING_SECONDS);
        open_loop::run(server.address(), Pace::Exact(places.load), vec![warming])?;
        let stream = stream(server, &requests, PER_SECOND, PER_SECOND * SECONDS);
        let answers = open_loop::run(server.address(), Pace::Exact(places.load), vec![stream])?;
        answers
            .into_iter()
            .next()
            .ok_or_else(|| Failure::Invalid("no answers".into()))?
            .all_wanted()
    })?;
    let after = Metrics::of(ours.address())?;
    let title = format!("`keys.verifyKey` at {PER_SECOND} requests a second, open loop");
    let table = Table::new(&title, "verify latency", &COLUMNS);
    let each = |side: &[open_loop::Answers], share| {
        side.iter().map(|one| one.within_us(share)).collect::<Vec<_>>()
    };
    for ((name, _), side) in sides.iter().zip(&figures) {
        let first = figures.first().map(|first| each(first, 990)).unwrap_or_default();
        table.row(&[
            (*name).into(),
            whole(Spread::of(each(side, 500))),
            whole(Spread::of(each(side, 990))),
            whole(Spread::of(each(side, 1000))),
            report::ratio(Spread::of_ratios(&each(side, 990), &first)),
        ]);
    }
    let share = |share| after.served_within_us(&before, share).unwrap_or(f64::INFINITY);
    report::note(&format!(
        "By the server's own histogram p50 is at most {:.0} µs, p99 at most {:.0} µs ({}) and p99.9 at most {:.0} µs.",
        share(0.5),
        share(0.99),
        Target::AtMost(1_000.0).verdict(share(0.99)),
        share(0.999),
    ));
    Ok(())
}

/// These requests in turn.
pub(super) fn stream(server: &Server, requests: &Requests, per_second: u64, count: u64) -> Stream {
    let all = requests.all(server.address());
    let write = move |n: u64| all[usize::try_from(n).unwrap_or(0) % all.len()].clone();
    let (connections, wanted) = (CONNECTIONS, requests.answered);
    Stream { per_second, requests: count, connections, write: Arc::new(write), wanted }
}
