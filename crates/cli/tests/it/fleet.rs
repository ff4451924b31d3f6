//! Several real nodes on one real Redis: limits are one for all of them, whatever goes wrong.

mod called_in;
mod clocks;
mod cluster;
mod cut_off;
mod edges;
mod exact;
mod hot_key;
mod lives;
mod lost_history;
mod lost_news;
mod modes_of_counting;
mod odd_answers;
mod outage;
mod schema;
mod servers;
mod slow_redis;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tollkeeper_testkit::{RedisServer, Tollkeeper};

use crate::time::{eventually, now};
use crate::world::{Client, side_by_side, start};

/// For what is not about time: an answer that a busy machine gives late is an answer.
pub(crate) const PATIENT: (&str, &str) = ("TOLLKEEPER_REDIS_PATIENCE_MS", "200");

pub(crate) struct Fleet {
    pub(crate) redis: RedisServer,
    pub(crate) nodes: Vec<(Tollkeeper, TempDir)>,
}

impl Fleet {
    pub(crate) fn of(nodes: usize) -> Self {
        Self::with(nodes, &[])
    }

    pub(crate) fn with(nodes: usize, env: &[(&str, &str)]) -> Self {
        let redis = RedisServer::start().expect("a Redis");
        let url = redis.url();
        Self { nodes: nodes_at(&url, nodes, env), redis }
    }

    pub(crate) fn clients(&self) -> Vec<Client> {
        clients(&self.nodes)
    }

    /// Lua scripts that Redis has run so far.
    pub(crate) fn calls(&self) -> u64 {
        let stats = self.redis.ask(&["INFO", "commandstats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        line.and_then(|line| line.split(',').next()?.parse().ok()).unwrap_or(0)
    }
}

pub(crate) fn clients(nodes: &[(Tollkeeper, TempDir)]) -> Vec<Client> {
    let client = |(node, _): &(Tollkeeper, TempDir)| Client::new(node.url(), node.root_key());
    nodes.iter().map(client).collect()
}

/// Nodes that share limits over this Redis and nothing else. All start at once.
pub(crate) fn nodes_at(
    url: &str,
    nodes: usize,
    env: &[(&str, &str)],
) -> Vec<(Tollkeeper, TempDir)> {
    side_by_side(nodes, |_| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut env = env.to_vec();
        env.push(("TOLLKEEPER_REDIS_URL", url));
        (start(folder.path(), &env).expect("the node starts"), folder)
    })
}

/// What one request asks for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) body: Value,
    pub(crate) cost: u64,
}

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) cost: u64,
    pub(crate) admitted: bool,
    pub(crate) degraded: bool,
    /// Refused because no answer came in time: it may have been counted.
    pub(crate) unheard: bool,
    pub(crate) reset: u64,
}

pub(crate) fn body(identifier: &str, limit: u64, duration: u64, algorithm: &str) -> Value {
    json!({
        "namespace": "fleet", "identifier": identifier, "limit": limit, "duration": duration,
        "algorithm": algorithm,
    })
}

/// Asks from several threads over all nodes for so long, each as fast as it may.
pub(crate) fn drive(
    nodes: &[(Tollkeeper, TempDir)],
    threads: usize,
    how_long: Duration,
    per_second: u64,
    ask: impl Fn(u64) -> Asked + Sync,
) -> Vec<Seen> {
    let begun = now();
    let each = side_by_side(threads, |thread| {
        let (node, _) = &nodes[thread % nodes.len()];
        let mut client = Client::new(node.url(), node.root_key());
        let mut seen = Vec::new();
        let mut number = 0;
        while begun.elapsed() < how_long {
            let due = Duration::from_micros(number * 1_000_000 * threads as u64 / per_second);
            crate::time::pause(due.saturating_sub(begun.elapsed()));
            let asked = ask(number * threads as u64 + thread as u64);
            number += 1;
            seen.push(one(&mut client, &asked));
        }
        seen
    });
    each.into_iter().flatten().collect()
}

pub(crate) fn one(client: &mut Client, asked: &Asked) -> Seen {
    let mut body = asked.body.clone();
    body["cost"] = json!(asked.cost);
    let data = client.limit(&body);
    let admitted = data["success"].as_bool().expect("a verdict");
    let degraded = data["degraded"].as_bool().unwrap_or(false);
    Seen {
        cost: asked.cost,
        admitted,
        degraded,
        // Who knows that nobody is there says to come back later than that.
        unheard: degraded && !admitted && data["retryAfterMs"].as_u64() < Some(1_000),
        reset: data["reset"].as_u64().expect("a moment"),
    }
}

/// The same, asked again as long as nobody heard it: on a busy machine that says nothing about limits.
pub(crate) fn heard(client: &mut Client, asked: &Asked) -> Seen {
    let mut seen = one(client, asked);
    eventually("an answer from Redis", || {
        if seen.degraded {
            seen = one(client, asked);
        }
        !seen.degraded
    });
    seen
}

/// What came of requests that cost one unit each.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) got: u64,
    /// Of those, without Redis.
    pub(crate) alone: u64,
    /// Refused because no answer came, and counted where the question arrived: a busy machine does that without any fault.
    pub(crate) unheard: u64,
}

impl Tally {
    pub(crate) fn ask(&mut self, client: &mut Client, asked: &Asked) -> bool {
        let seen = one(client, asked);
        self.got += u64::from(seen.admitted);
        self.alone += u64::from(seen.admitted && seen.degraded);
        self.unheard += u64::from(seen.unheard);
        seen.admitted
    }

    /// Asks until so many are admitted.
    pub(crate) fn spend(&mut self, client: &mut Client, asked: &Asked, times: u64) {
        let enough = self.got + times;
        eventually("so many are admitted", || {
            while self.got < enough && self.ask(client, asked) {}
            self.got == enough
        });
    }
}

/// How often something is done: as often as a test run has time for, or as the environment says.
pub(crate) fn times(name: &str, usual: u64) -> u64 {
    #[allow(clippy::disallowed_methods, reason = "a number for whoever wants more than the usual")]
    std::env::var(name).ok().and_then(|times| times.parse().ok()).unwrap_or(usual)
}

pub(crate) fn admitted(seen: &[Seen]) -> u64 {
    seen.iter().filter(|one| one.admitted).map(|one| one.cost).sum()
}

/// What was admitted in each window, by the end that the answers named.
pub(crate) fn by_window(seen: &[Seen]) -> BTreeMap<u64, u64> {
    let mut windows = BTreeMap::new();
    for one in seen.iter().filter(|one| one.admitted) {
        *windows.entry(one.reset).or_default() += one.cost;
    }
    windows
}
