//! Clients that keep their pace through an outage, and what their answers come to: latency by phase, units by window.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tollkeeper_testkit::{Connection, ROOT_KEY};

use crate::clock::{Stopwatch, pause};
use crate::report::Target;

/// Of the one limit that is asked for twice as much as it has.
const LIMIT: u64 = 1_000;
const WIDTH_MS: u64 = 1_000;
/// A little more, so that it keeps no step with the kernel's ticks, by which the time of all processes is sampled.
const FULL_PER_SECOND: u64 = 2 * LIMIT + 3;

/// Identifiers that stay far below theirs, on every node and alone.
const AMPLE_IDENTIFIERS: u64 = 100;
const AMPLE_PER_SECOND: u64 = 1_007;
const AMPLE_LIMIT: u64 = 1_000;
const AMPLE_WIDTH_MS: u64 = 10_000;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Full,
    Ample,
}

/// One answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) kind: Kind,
    node: usize,
    due_us: u64,
    heard_us: u64,
    /// 0 where there was none.
    status: u16,
    pub(super) admitted: bool,
    pub(super) degraded: bool,
    remaining: u64,
    /// The end of its window.
    reset: u64,
}

/// So large a share of these was answered within.
pub(super) fn within_ms(all: &[Seen], share: f64) -> f64 {
    let mut took: Vec<u64> = all.iter().map(|one| one.heard_us - one.due_us).collect();
    took.sort_unstable();
    took.get((took.len() as f64 * share) as usize).map_or(f64::NAN, |us| *us as f64 / 1e3)
}

/// All that was seen of one.
#[derive(Debug)]
pub(super) struct Outage {
    pub(super) seen: Vec<Seen>,
    pub(super) killed_us: u64,
    pub(super) back_us: u64,
    pub(super) nodes: u64,
}

// === impl Kind ===

impl Kind {
    fn per_second(self) -> u64 {
        match self {
            Self::Full => FULL_PER_SECOND,
            Self::Ample => AMPLE_PER_SECOND,
        }
    }

    fn body(self, n: u64) -> Value {
        match self {
            Self::Full => json!({"namespace": "gone", "identifier": "everybody", "limit": LIMIT,
                "duration": WIDTH_MS, "algorithm": "fixed_window"}),
            Self::Ample => {
                json!({"namespace": "gone", "identifier": format!("one-{}", n % AMPLE_IDENTIFIERS),
                "limit": AMPLE_LIMIT, "duration": AMPLE_WIDTH_MS, "algorithm": "sliding_window"})
            }
        }
    }
}

/// One connection of so many, each with its own moments. A connection that fails is made anew; that is counted as no answer.
pub(super) fn client(
    url: &str,
    (node, kind): (usize, Kind),
    (place, clients): (usize, usize),
    watch: Stopwatch,
    how_long: Duration,
) -> Vec<Seen> {
    let authorization = format!("Bearer {ROOT_KEY}");
    let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
    let (mut connection, mut seen) = (Connection::open(url).ok(), Vec::new());
    for turn in 0_u64.. {
        let n = turn * clients as u64 + place as u64;
        let due = Duration::from_micros(n * 1_000_000 / kind.per_second());
        if due >= how_long {
            break;
        }
        let ahead = due.saturating_sub(watch.elapsed());
        // Who waits for an answer for longer than its pace is late for the next ones, and that counts; waking up does not.
        let due = if ahead.is_zero() {
            due
        } else {
            pause(ahead);
            watch.elapsed()
        };
        let body = kind.body(n).to_string();
        let asked = connection.as_mut().and_then(|open| {
            open.exchange("POST", "/v2/ratelimit.limit", &headers, body.as_bytes()).ok()
        });
        let heard_us = watch.elapsed().as_micros() as u64;
        if asked.is_none() {
            connection = Connection::open(url).ok();
        }
        let status = asked.as_ref().map_or(0, |answer| answer.status);
        let answer: Value =
            asked.and_then(|answer| serde_json::from_slice(&answer.body).ok()).unwrap_or_default();
        let data = &answer["data"];
        seen.push(Seen {
            kind,
            node,
            due_us: due.as_micros() as u64,
            heard_us,
            status,
            admitted: data["success"].as_bool().unwrap_or(false),
            degraded: data["degraded"].as_bool().unwrap_or(false),
            remaining: data["remaining"].as_u64().unwrap_or(0),
            reset: data["reset"].as_u64().unwrap_or(0),
        });
    }
    seen
}

// === impl Seen ===

impl Seen {
    pub(super) fn failed(&self) -> bool {
        self.status == 0 || self.status >= 500
    }
}

// === impl Outage ===

impl Outage {
    /// By the moment that each was due at.
    pub(super) fn within(&self, from_us: u64, until_us: u64) -> Vec<Seen> {
        let due = |one: &&Seen| (from_us..until_us).contains(&one.due_us);
        self.seen.iter().filter(due).copied().collect()
    }

    /// From the first answer of the new Redis to the last that a node gave without it.
    pub(super) fn exact_again_s(&self) -> f64 {
        let without = self.seen.iter().filter(|one| one.degraded).map(|one| one.due_us);
        without.max().map_or(0.0, |last| last.saturating_sub(self.back_us) as f64 / 1e6)
    }

    /// What was admitted of the full limit, window by window, against what it allows.
    pub(super) fn windows(&self) -> String {
        let mut all: BTreeMap<u64, Vec<&Seen>> = BTreeMap::new();
        for one in self.seen.iter().filter(|one| one.kind == Kind::Full && one.reset > 0) {
            all.entry(one.reset).or_default().push(one);
        }
        let admitted = |of: &[&Seen]| of.iter().filter(|one| one.admitted).count() as u64;
        let mut by_window: Vec<(bool, u64)> = Vec::new();
        let mut cut = String::new();
        for of in all.values() {
            let first = of.iter().map(|one| one.due_us).min().unwrap_or(0);
            let last = of.iter().map(|one| one.due_us).max().unwrap_or(0);
            if first < self.killed_us && last >= self.killed_us {
                let most = LIMIT + self.left_at_the_end(of) / self.nodes;
                let got = admitted(of);
                cut = format!(
                    "{got} in the window that it was killed in (the limit and a share of what each node knew to be left: {})",
                    Target::AtMost(most as f64).verdict(got as f64)
                );
            } else {
                by_window.push((first >= self.killed_us && last < self.back_us, admitted(of)));
            }
        }
        let most = |without: bool| {
            let of = by_window.iter().filter(|(wholly, _)| *wholly == without);
            of.map(|(_, got)| *got).max().unwrap_or(0)
        };
        let target = Target::AtMost(LIMIT as f64);
        let list: Vec<String> = all.values().map(|of| admitted(of).to_string()).collect();
        format!(
            "Of a limit of {LIMIT} in a second, offered twice: {cut}; at most {} in a window without Redis ({}) and at most {} in \
             one with it, or in which it came back ({}). Window by window: {}.",
            most(true),
            target.verdict(most(true) as f64),
            most(false),
            target.verdict(most(false) as f64),
            list.join(", "),
        )
    }

    /// What each node last said was left before it was alone, in all.
    fn left_at_the_end(&self, of: &[&Seen]) -> u64 {
        let last = |node: u64| {
            let exact = of.iter().filter(|one| one.node as u64 == node && !one.degraded);
            exact.max_by_key(|one| one.heard_us).map_or(0, |one| one.remaining)
        };
        (0..self.nodes).map(last).sum()
    }
}
