//! `ratelimit.limit` over HTTP/1.1 keep-alive, against a bare hyper server that parses the same body and writes
//! the same reply.

mod bare;
pub(crate) mod load;
pub(crate) mod reply;
pub(crate) mod requests;
pub(crate) mod server;

use std::path::PathBuf;
use std::thread::available_parallelism;

use tempfile::TempDir;

use crate::bystanders::Bystanders;
use crate::failure::Failure;
use crate::report::{self, Target, ratio, whole};
use crate::rounds::{Spread, interleaved};

use load::{Figures, Load};
use reply::Reply;
use requests::Requests;
use server::{Core, Server};

pub(crate) use bare::{Reads, bare_per_core, bare_shared};

const ROUNDS: usize = 7;
const COLUMNS: [&str; 8] = [
    "server",
    "requests/s",
    "CPU µs/request",
    "CPU",
    "p50 µs",
    "p99 µs",
    "requests/s, × the first",
    "CPU/request, the first's ÷ this",
];

/// Where servers and load run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) server: Core,
    pub(crate) load: Core,
}

pub(crate) const APART: Places = Places { server: Core::Only(0), load: Core::Only(1) };
pub(crate) const TOGETHER: Places = Places { server: Core::Any, load: Core::Any };

/// What is compared, and as what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contest<'a> {
    pub(crate) title: &'a str,
    pub(crate) command: &'a str,
    /// Which of this program's own servers is the yardstick.
    pub(crate) bare: &'a str,
    pub(crate) threads: usize,
    pub(crate) places: Places,
    pub(crate) target: Target,
}

pub(crate) fn against_bare(tollkeeper: Option<PathBuf>) -> Result<(), Failure> {
    let tollkeeper = tollkeeper.map_or_else(server::build, Ok)?;
    let scratch = scratch()?;
    let requests = Requests::limits(&scratch)?;
    let cores = cores();
    let bystanders = Bystanders::watch()?;
    let (command, bare) = ("http", "bare-hyper");
    if cores > 1 {
        let title = "`ratelimit.limit`, server on one core and load on the other";
        let (places, target) = (APART, Target::AtLeast(0.85));
        let ours = Server::tollkeeper(&tollkeeper, &scratch, places.server)?;
        let contest = Contest { title, command, bare, threads: 1, places, target };
        contest.hold(&scratch, &ours, &requests)?;
    } else {
        report::note("There is one core only, so server and load cannot be kept apart.");
    }
    let title = "`ratelimit.limit`, server and load on all cores";
    let ours = Server::tollkeeper(&tollkeeper, &scratch, TOGETHER.server)?;
    let (places, target) = (TOGETHER, Target::None);
    let contest = Contest { title, command, bare, threads: cores, places, target };
    contest.hold(&scratch, &ours, &requests)?;
    drop(ours);
    report::note(&format!(
        "Bodies have {} bytes, over {} identifiers; {} connections.",
        requests.body_bytes,
        requests::IDENTIFIERS,
        load::CONNECTIONS
    ));
    report::note_bystanders(&bystanders)
}

// === impl Contest ===

impl Contest<'_> {
    pub(crate) fn hold(
        self,
        scratch: &TempDir,
        ours: &Server,
        requests: &Requests,
    ) -> Result<(), Failure> {
        let captured = Reply::capture(ours.address(), requests)?.save_to(scratch)?;
        let bare = Server::bare(self.bare, &captured, self.threads, self.places.server)?;
        let load = Load { requests, core: self.places.load };
        let sides = [("bare hyper", &bare), ("tollkeeper", ours)];
        let verdict = compare(self.title, self.command, &sides, &load)?;
        if let (Target::AtLeast(_), Some(times)) = (self.target, verdict) {
            report::note(&format!(
                "Throughput {:.2} of bare hyper's ({}); by CPU per request {:.2} ({}).",
                times.throughput,
                self.target.verdict(times.throughput),
                times.cpu,
                self.target.verdict(times.cpu),
            ));
        }
        Ok(())
    }
}

/// One runtime per core, fed by one listener, against one runtime over all cores.
pub(crate) fn layout() -> Result<(), Failure> {
    let scratch = scratch()?;
    let requests = Requests::limits(&scratch)?;
    let reply = Reply::made_up().save_to(&scratch)?;
    let threads = cores();
    let bystanders = Bystanders::watch()?;
    let shared = Server::bare("bare-hyper-multi", &reply, threads, Core::Any)?;
    let per_core = Server::bare("bare-hyper", &reply, threads, Core::Any)?;
    let sides = [("one runtime over all cores", &shared), ("one runtime per core", &per_core)];
    let load = Load { requests: &requests, core: Core::Any };
    compare("Runtime layout, bare hyper on all cores", "layout", &sides, &load)?;
    drop((shared, per_core));
    report::note_bystanders(&bystanders)
}

/// The last side's medians against the first's.
struct Times {
    throughput: f64,
    cpu: f64,
}

fn compare(
    title: &str,
    command: &str,
    sides: &[(&str, &Server)],
    load: &Load<'_>,
) -> Result<Option<Times>, Failure> {
    let figures = interleaved(ROUNDS, sides, |(_, server)| load.on(server))?;
    let table = report::Table::new(title, command, &COLUMNS);
    let Some(first) = figures.first() else { return Ok(None) };
    let each = |side: &[Figures], of: fn(&Figures) -> f64| side.iter().map(of).collect::<Vec<_>>();
    let mut last = None;
    for ((name, _), side) in sides.iter().zip(&figures) {
        let spread = |of| Spread::of(each(side, of));
        let throughput =
            Spread::of_ratios(&each(side, Figures::per_second), &each(first, Figures::per_second));
        let cpu = Spread::of_ratios(&each(first, Figures::cpu_us), &each(side, Figures::cpu_us));
        let micros = spread(Figures::cpu_us);
        table.row(&[
            (*name).into(),
            whole(spread(Figures::per_second)),
            format!("{:.2} ({:.2}..{:.2})", micros.median, micros.least, micros.most),
            format!("{:.0} %", spread(Figures::cpu_percent).median),
            whole(spread(|figures| figures.p50_us)),
            whole(spread(|figures| figures.p99_us)),
            ratio(throughput),
            ratio(cpu),
        ]);
        last = Some(Times { throughput: throughput.median, cpu: cpu.median });
    }
    Ok(last)
}

pub(crate) fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

pub(crate) fn scratch() -> Result<TempDir, Failure> {
    tempfile::tempdir().map_err(Failure::io("the folder for temporary files"))
}
