//! What counting usage costs: verification with and without it, in turns, in the same run. Prints; only a large loss fails.
//! `cargo test --release --package tollkeeper-account --test it pages_cost -- --ignored --nocapture`

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tollkeeper_account::{Kind, Ledger, Meter};
use tollkeeper_core::{Minute, Usage};

use crate::changes::NOW;
use crate::node::Node;
use crate::pages::{Opened, pages_in};

#[allow(clippy::disallowed_methods, reason = "this measures")]
fn timed(times: u32, mut run: impl FnMut(u32)) -> Duration {
    let begun = Instant::now();
    (0..times).for_each(&mut run);
    begun.elapsed()
}

#[test]
#[ignore = "measures; needs a release build and a quiet machine"]
#[allow(clippy::print_stdout, reason = "figures are what it is for")]
fn counting_usage_costs_little_of_a_verification() {
    const EACH: u32 = 200_000;
    /// Short turns: on a machine that others use too, the best of many is the one that nobody disturbed.
    const TURN: u32 = 20_000;
    let dir = tempfile::tempdir().unwrap();
    let Opened { pages, .. } = pages_in(dir.path());
    let pages = Arc::new(pages);
    let node = Node::new();
    let (without, with) = (Ledger::new(1), Ledger::new(1).metering(Meter::new(Arc::clone(&pages))));
    let verify = |ledger: &Ledger, number: u32| {
        let key = 100 + u8::try_from(number % 100).unwrap();
        black_box(ledger.record_verified(Kind::Verify, node.verify(key, 1)));
    };
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..40 {
        best.0 = best.0.min(timed(TURN, |number| verify(&without, number)));
        best.1 = best.1.min(timed(TURN, |number| verify(&with, number)));
    }
    let slot = pages.find(&"api".into(), &"key_1".into(), Minute::of(NOW)).unwrap();
    let add = timed(EACH * 10, |_| pages.add(black_box(slot), Usage::request()));
    let names: Vec<Arc<str>> = (0..EACH).map(|number| format!("fresh_{number}").into()).collect();
    let project = Arc::from("api");
    let find = timed(EACH, |number| {
        black_box(pages.find(&project, &names[number as usize], Minute::of(NOW)));
    });
    let share = best.0.as_secs_f64() / best.1.as_secs_f64();
    println!(
        "verify and record: {:?} without usage, {:?} with; throughput {share:.3} of without",
        best.0 / TURN,
        best.1 / TURN
    );
    println!("one add: {:?}; one slot of a new key: {:?}", add / (EACH * 10), find / EACH);
    assert!(share > 0.8, "counting takes more than a fifth");
}

/// How long a request waits that needs a slot of its own, alone and beside a disk that is kept busy. All keys come at once as
/// a minute begins, and in the first of all minutes nobody knows how many there will be.
#[test]
#[ignore = "measures; needs a release build"]
fn how_long_a_slot_takes_at_the_most() {
    const ROUNDS: usize = 10;
    let names: Vec<Arc<str>> = (0..KEYS).map(|number| format!("key_{number}").into()).collect();
    let project = Arc::from("api");
    for beside in [Beside::Nothing, Beside::Flushes] {
        let (mut first, mut later) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let dir = tempfile::tempdir().unwrap();
            let Opened { pages, .. } = pages_in(dir.path());
            let over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                if beside == Beside::Flushes {
                    scope.spawn(|| keep_flushing(dir.path(), &over));
                }
                for number in 0..MINUTES {
                    let minute = Minute::of(NOW + number * 60_000);
                    let took = waits(&names, |name| {
                        let slot = pages.find(&project, name, minute).unwrap();
                        pages.add(slot, Usage::request());
                    });
                    if number == 0 { &mut first } else { &mut later }.extend(took);
                    rest();
                }
                over.store(true, Ordering::Relaxed);
            });
        }
        tell(&format!("beside {beside:?}, first minutes"), first);
        tell(&format!("beside {beside:?}, later ones"), later);
    }
}

const KEYS: usize = 10_000;
const MINUTES: u64 = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    Flushes,
}

/// How long something took, and whether the thread gave up its core for it: it waited for a lock or the disk. One that took
/// long and did not was put off its core by somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wait {
    took: Duration,
    slept: bool,
}

/// Longer ones are looked at.
const LONG: Duration = Duration::from_micros(200);

fn waits(names: &[Arc<str>], mut count: impl FnMut(&Arc<str>)) -> Vec<Wait> {
    let mut sleeps = sleeps_so_far();
    let one = |name| {
        let took = timed(1, |_| count(name));
        if took < LONG {
            return Wait { took, slept: false };
        }
        let before = std::mem::replace(&mut sleeps, sleeps_so_far());
        Wait { took, slept: sleeps > before }
    };
    names.iter().map(one).collect()
}

/// Times that this thread gave up its core by itself.
fn sleeps_so_far() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

/// The rest of a minute, in which room for the next is made.
#[allow(clippy::disallowed_methods, reason = "the rest of a minute is nothing but time")]
fn rest() {
    std::thread::sleep(Duration::from_millis(300));
}

#[allow(clippy::print_stdout, reason = "figures are what it is for")]
fn tell(what: &str, mut waits: Vec<Wait>) {
    waits.sort_unstable();
    let at = |thousandths: usize| waits[(waits.len() - 1) * thousandths / 1_000].took;
    let most = |slept| waits.iter().rev().find(|wait| wait.slept == slept).map(|wait| wait.took);
    let long = |slept| {
        let ms = Duration::from_millis(1);
        waits.iter().filter(|wait| wait.slept == slept && wait.took > ms).count()
    };
    println!(
        "{what}: p50 {:?}, p99.9 {:?}; waited at most {:?}, {} of {} above 1 ms; put off at most {:?}, {} above 1 ms",
        at(500),
        at(999),
        most(true).unwrap_or_default(),
        long(true),
        waits.len(),
        most(false).unwrap_or_default(),
        long(false)
    );
}

/// As a database on the same disk does.
fn keep_flushing(dir: &Path, over: &AtomicBool) {
    let (mut file, some) = (File::create(dir.join("flushed")).unwrap(), vec![7; 65_536]);
    while !over.load(Ordering::Relaxed) {
        file.write_all(&some).unwrap();
        file.sync_data().unwrap();
    }
}
