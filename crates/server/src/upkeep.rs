//! What goes on behind the requests: idle cells are forgotten, parked ones put on the shelf, the clock followed.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tollkeeper_decide::{Decider, ROUND};

use crate::clock::Clock;

/// One part of the table per beat; the whole table in ten seconds.
const SWEEP_BEAT: Duration = Duration::from_millis(100);
const SWEEP_PARTS: usize = 100;
/// How often the shelf forgets what is idle and the filter is made anew.
const TIDY: Duration = Duration::from_mins(1);
const FOLLOW: Duration = Duration::from_secs(1);

/// Runs until dropped, and again after a panic, which must not end sweeping for good.
pub async fn watch(decider: Arc<Decider>, clock: Clock) {
    loop {
        let running = tokio::spawn(run(Arc::clone(&decider), clock.clone()));
        if let Err(error) = running.await {
            tracing::error!("upkeep ended and is started again: {error}");
        }
    }
}

/// Runs until dropped; every part goes on by itself after an error, which is logged once per change.
async fn run(decider: Arc<Decider>, clock: Clock) {
    tokio::join!(sweep(&decider, &clock), shelve(&decider), tidy(&decider, &clock), follow(&clock));
}

async fn sweep(decider: &Decider, clock: &Clock) {
    let mut beats = every(SWEEP_BEAT);
    for part in (0..SWEEP_PARTS).cycle() {
        beats.tick().await;
        decider.cells().sweep(part, SWEEP_PARTS, clock.now());
    }
}

async fn shelve(decider: &Decider) {
    let mut beats = every(ROUND);
    let mut failing = false;
    loop {
        beats.tick().await;
        let outcome = decider.overflow().shelve().await;
        report(
            "cells that left the table could not be stored; they wait in memory",
            &outcome,
            &mut failing,
        );
        // Rounds start at least this far apart, also behind one that was held up.
        beats.reset();
    }
}

async fn tidy(decider: &Decider, clock: &Clock) {
    let mut beats = every(TIDY);
    let mut failing = false;
    loop {
        beats.tick().await;
        let outcome = decider.overflow().tidy(clock.now()).await;
        report("stored cells could not be tidied", &outcome, &mut failing);
    }
}

async fn follow(clock: &Clock) {
    let mut beats = every(FOLLOW);
    loop {
        beats.tick().await;
        clock.follow();
    }
}

fn every(period: Duration) -> tokio::time::Interval {
    let mut beats = interval(period);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats
}

/// Says when something starts to fail and when it is well again, not every time in between.
fn report<T, E: std::fmt::Display>(what: &str, outcome: &Result<T, E>, failing: &mut bool) {
    match outcome {
        Err(error) if !*failing => tracing::error!("{what}: {error}"),
        Ok(_) if *failing => tracing::info!("well again: {what}"),
        _ => {}
    }
    *failing = outcome.is_err();
}
