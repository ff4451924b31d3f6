//! What goes on behind the requests: idle cells are forgotten, parked ones put on the shelf, the clock followed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tollkeeper_account::Ledger;
use tollkeeper_core::Millis;
use tollkeeper_decide::{Decider, ROUND};
use tollkeeper_redis::{Marked, UsageBuffer};
use tollkeeper_store::{Store, StoreError, Used};

use crate::clock::Clock;
use crate::http::REMEMBERED_MS;

const DAY_MS: u64 = 86_400_000;
/// As far back as counts of limits by the minute are asked for.
const STATS_KEPT_MS: u64 = 31 * DAY_MS;

/// One part of the table per beat; the whole table in ten seconds.
const SWEEP_BEAT: Duration = Duration::from_millis(100);
const SWEEP_PARTS: usize = 100;
/// How often the shelf forgets what is idle and the filter is made anew.
const TIDY: Duration = Duration::from_mins(1);
const FOLLOW: Duration = Duration::from_secs(1);

/// Runs until dropped, and again after a panic, which must not end sweeping for good.
pub async fn watch(decider: Arc<Decider>, store: Store, clock: Clock) {
    loop {
        let running = tokio::spawn(run(Arc::clone(&decider), store.clone(), clock.clone()));
        if let Err(error) = running.await {
            tracing::error!("upkeep ended and is started again: {error}");
        }
    }
}

/// Runs until dropped; every part goes on by itself after an error, which is logged once per change.
async fn run(decider: Arc<Decider>, store: Store, clock: Clock) {
    tokio::join!(
        credits(&decider, &clock),
        sweep(&decider, &clock),
        shelve(&decider),
        tidy(&decider, &clock),
        forget(&store, &clock),
        room(&store),
        follow(&clock)
    );
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

/// Drops answers that no retry may ask for any more.
async fn forget(store: &Store, clock: &Clock) {
    let mut beats = every(TIDY);
    let mut failing = false;
    loop {
        beats.tick().await;
        let before = Millis(clock.now().0.saturating_sub(REMEMBERED_MS));
        let outcome = store.forget_answers(before).await;
        report("answers kept for retries could not be forgotten", &outcome, &mut failing);
        // No node serves what it has not renewed for a day, so none needs to hear of older changes.
        let day_ago = Millis(clock.now().0.saturating_sub(DAY_MS));
        let outcome = store.trim_outbox(day_ago).await;
        report("changes that all nodes know could not be forgotten", &outcome, &mut failing);
        let month_ago = Millis(clock.now().0.saturating_sub(STATS_KEPT_MS));
        let outcome = store.forget_limit_stats(month_ago).await;
        report("old counts of limits could not be forgotten", &outcome, &mut failing);
        let outcome = store.void_old_leases().await;
        report("credit leases of lost processes could not be written off", &outcome, &mut failing);
        let outcome = store.forget_ended_leases(day_ago).await;
        report("credit leases of ended processes could not be forgotten", &outcome, &mut failing);
    }
}

/// Writes down what was used lately. Runs until dropped; what cannot be written is noted at its next use.
pub async fn note_last_used(ledger: Ledger, store: Store, gate: Option<UsageBuffer>) {
    /// At most once per 30 s per object and node.
    const NOTE: Duration = Duration::from_secs(30);
    let mut beats = every(NOTE);
    let mut failing = false;
    loop {
        beats.tick().await;
        let written = write_last_used(&ledger, &store, gate.as_ref()).await;
        report("when keys were last used could not be written", &written, &mut failing);
    }
}

/// What was used since the last time: also at the end, for it says which keys the next start brings near.
/// Where nodes share Redis, each thing is written by the first of them in half a minute.
pub async fn write_last_used(
    ledger: &Ledger,
    store: &Store,
    gate: Option<&UsageBuffer>,
) -> Result<(), StoreError> {
    let waiting = ledger.last_used().take();
    let moments = |used: HashMap<Arc<str>, Millis>| -> Vec<(String, Millis)> {
        used.into_iter().map(|(id, at)| (id.to_string(), at)).collect()
    };
    let keys = first_in_the_fleet(gate, Marked::Key, moments(waiting.keys)).await;
    let projects = first_in_the_fleet(gate, Marked::Project, moments(waiting.projects)).await;
    store.touch_last_used(Used::Key, &keys).await?;
    store.touch_last_used(Used::Project, &projects).await?;
    // There are so few of them that nodes need not agree on who writes.
    store.touch_last_used(Used::RootKey, &moments(waiting.root_keys)).await
}

/// Redis away: everybody writes, which is what would happen without it.
async fn first_in_the_fleet(
    gate: Option<&UsageBuffer>,
    what: Marked,
    moments: Vec<(String, Millis)>,
) -> Vec<(String, Millis)> {
    let Some(gate) = gate.filter(|_| !moments.is_empty()) else { return moments };
    let ids: Vec<&str> = moments.iter().map(|(id, _)| id.as_str()).collect();
    match gate.first_uses(what, &ids).await {
        Ok(first) => {
            let first: HashSet<&str> = first.into_iter().collect();
            moments.iter().filter(|(id, _)| first.contains(id.as_str())).cloned().collect()
        }
        Err(_) => moments,
    }
}

/// Tells the bank what was spent, so that balances shown elsewhere are true within a second or two.
async fn credits(decider: &Decider, clock: &Clock) {
    /// Idle leases go back every five seconds.
    const TIDY_BEATS: u64 = 5;
    /// More keys than this wait for the next second.
    const REPORTS_MAX: usize = 1_000;
    let mut beat = 0_u64;
    let mut untidy = false;
    let mut beats = every(FOLLOW);
    let mut failing = false;
    loop {
        beats.tick().await;
        let outcome = decider.purse().report(REPORTS_MAX, clock.now()).await;
        beat += 1;
        if beat.is_multiple_of(TIDY_BEATS) {
            let tidied = decider.purse().tidy(clock.now()).await;
            report("idle credits could not be given back; they stay leased", &tidied, &mut untidy);
        }
        report(
            "spent credits could not be reported; they are in the journal",
            &outcome,
            &mut failing,
        );
    }
}

/// Once a write found no room on the disk, tries until one finds some.
async fn room(store: &Store) {
    let mut beats = every(FOLLOW);
    let mut failing = false;
    loop {
        beats.tick().await;
        if store.refuses_writes() {
            let outcome = store.try_to_write().await;
            report(
                "the database takes no writes; limits are enforced meanwhile",
                &outcome,
                &mut failing,
            );
        }
    }
}

async fn follow(clock: &Clock) {
    let mut beats = every(FOLLOW);
    loop {
        beats.tick().await;
        clock.follow();
    }
}

pub fn every(period: Duration) -> tokio::time::Interval {
    let mut beats = interval(period);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats
}

/// Says when something starts to fail and when it is well again, not every time in between.
pub fn report<T, E: std::fmt::Display>(what: &str, outcome: &Result<T, E>, failing: &mut bool) {
    match outcome {
        Err(error) if !*failing => tracing::error!("{what}: {error}"),
        Ok(_) if *failing => tracing::info!("well again: {what}"),
        _ => {}
    }
    *failing = outcome.is_err();
}
