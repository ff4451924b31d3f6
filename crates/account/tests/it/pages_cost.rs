//! What counting usage costs: verification with and without it, in turns, in the same run. Prints; only a large loss fails.
//! `cargo test --release --package tollkeeper-account --test it pages_cost -- --ignored --nocapture`

use std::hint::black_box;
use std::sync::Arc;
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
