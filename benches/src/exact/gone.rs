//! Redis is killed under load and comes back ten seconds later: what clients see of that, before, meanwhile and afterwards.

use std::path::Path;
use std::thread;
use std::time::Duration;

use super::fleet::Fleet;
use super::outage::{Kind, Outage, Seen, client, within_ms};
use super::redis_side::unstarted;
use crate::clock::{Stopwatch, pause};
use crate::failure::Failure;
use crate::report::{self, Table, Target};

const NODES: usize = 3;
/// Of each kind of load, on each node.
const CLIENTS: usize = 2;
const BEFORE: Duration = Duration::from_secs(5);
const AWAY: Duration = Duration::from_secs(10);
const AFTER: Duration = Duration::from_secs(8);
/// The first second is for connections to be made and cells to be met.
const BEGUN_US: u64 = 1_000_000;
const SECOND_US: u64 = 1_000_000;
const COLUMNS: [&str; 9] = [
    "phase",
    "answers",
    "5xx or none",
    "decided without Redis",
    "of a full limit admitted",
    "of ample ones refused",
    "p50 ms",
    "p99 ms",
    "p99 above before, ms",
];

pub(super) fn run(tollkeeper: &Path) -> Result<(), Failure> {
    let mut fleet = Fleet::start(tollkeeper, NODES)?;
    let (urls, watch) = (fleet.urls(), Stopwatch::start());
    let whole = BEFORE + AWAY + AFTER;
    let kinds = [Kind::Full, Kind::Ample];
    let clients = urls.iter().enumerate().flat_map(|(node, url)| {
        let each = kinds.iter().flat_map(|kind| (0..CLIENTS).map(move |place| (*kind, place)));
        each.map(move |(kind, place)| (url.clone(), node, kind, place))
    });
    let running: Vec<_> = clients
        .map(|(url, node, kind, place)| {
            let of = (node * CLIENTS + place, NODES * CLIENTS);
            thread::spawn(move || client(&url, (node, kind), of, watch, whole))
        })
        .collect();
    let since_start = || u64::try_from(watch.elapsed().as_micros()).unwrap_or(u64::MAX);
    pause(BEFORE);
    let killed_us = since_start();
    fleet.redis_mut().kill();
    pause(AWAY);
    fleet.redis_mut().again().map_err(unstarted)?;
    let back_us = since_start();
    let mut seen = Vec::new();
    for one in running {
        seen.extend(one.join().map_err(|_| Failure::Invalid("a client died".into()))?);
    }
    show(&Outage { seen, killed_us, back_us, nodes: NODES as u64 });
    Ok(())
}

fn show(outage: &Outage) {
    let title = "Redis killed under load on three nodes, and back ten seconds later";
    let table = Table::new(title, "exact gone", &COLUMNS);
    let Outage { killed_us, back_us, .. } = *outage;
    let phases = [
        ("before", BEGUN_US, killed_us),
        ("first second without", killed_us, killed_us + SECOND_US),
        ("the other nine", killed_us + SECOND_US, back_us),
        ("two seconds from its return", back_us, back_us + 2 * SECOND_US),
        ("after that", back_us + 2 * SECOND_US, u64::MAX),
    ];
    let before = within_ms(&outage.within(BEGUN_US, killed_us), 0.99);
    for (name, from_us, until_us) in phases {
        let all = outage.within(from_us, until_us);
        let count = |of: &dyn Fn(&Seen) -> bool| all.iter().filter(|one| of(one)).count();
        let above = within_ms(&all, 0.99) - before;
        table.row(&[
            name.into(),
            all.len().to_string(),
            count(&Seen::failed).to_string(),
            format!("{:.1} %", 100.0 * count(&|one| one.degraded) as f64 / all.len().max(1) as f64),
            count(&|one| one.kind == Kind::Full && one.admitted).to_string(),
            count(&|one| one.kind == Kind::Ample && !one.admitted).to_string(),
            format!("{:.2}", within_ms(&all, 0.5)),
            format!("{:.2}", within_ms(&all, 0.99)),
            if name == "before" {
                "–".into()
            } else {
                format!("{above:+.2}, {}", Target::AtMost(1.0).verdict(above))
            },
        ]);
    }
    let failed = outage.seen.iter().filter(|one| one.failed()).count();
    report::note(&format!(
        "5xx or no answer: {failed} of {} ({}). Answers were exact again {:.2} s after Redis answered ({}).",
        outage.seen.len(),
        Target::AtMost(0.0).verdict(failed as f64),
        outage.exact_again_s(),
        Target::AtMost(2.0).verdict(outage.exact_again_s()),
    ));
    report::note(&outage.windows());
}
