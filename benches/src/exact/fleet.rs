//! Nodes and a Redis of their own, and clients that keep a pace.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tollkeeper_testkit::{Connection, ROOT_KEY, RedisServer, Tollkeeper};

use super::case::Case;
use super::judge::{Figures, Seen};
use crate::failure::Failure;

pub(super) struct Fleet {
    redis: RedisServer,
    nodes: Vec<(Tollkeeper, TempDir)>,
}

// === impl Fleet ===

impl Fleet {
    pub(super) fn start(program: &Path, nodes: usize) -> Result<Self, Failure> {
        let redis = RedisServer::start().map_err(|error| Failure::Invalid(format!("{error:?}")))?;
        let url = redis.url();
        let node = |_| {
            let folder = tempfile::tempdir().map_err(Failure::io("a data folder"))?;
            let program = program.to_string_lossy();
            let started =
                Tollkeeper::start(&program, folder.path(), &[("TOLLKEEPER_REDIS_URL", &url)]);
            Ok((started.map_err(|error| Failure::Invalid(format!("{error:?}")))?, folder))
        };
        let nodes = (0..nodes).map(node).collect::<Result<Vec<_>, Failure>>()?;
        // Everybody hears of everybody within a second.
        pause(Duration::from_millis(1_500));
        Ok(Self { redis, nodes })
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn measure(&self, case: &Case) -> Result<Figures, Failure> {
        let idle = self.calls_in(Duration::from_secs(1));
        let (calls, waits) = (self.calls(), self.waits()?);
        let begun = now();
        let mut seen = self.drive(case)?;
        let idle = idle as f64 * begun.elapsed().as_secs_f64();
        let calls = (self.calls() - calls) as f64 - idle;
        Ok(Figures::judge(case, &mut seen, calls.max(0.0), self.waits()? - waits))
    }

    fn drive(&self, case: &Case) -> Result<Vec<Seen>, Failure> {
        let threads = (self.nodes.len() * 2).max(4) as u64;
        let begun = now();
        let name = format!(
            "{}-{}-{}-{}",
            case.algorithm,
            case.limit,
            case.load,
            begun.elapsed().as_nanos()
        );
        let body = json!({
            "namespace": "exact", "identifier": format!("{name}-{:?}", begun), "limit": case.limit,
            "duration": case.window_ms, "algorithm": case.algorithm,
        });
        let each: Vec<Result<Vec<Seen>, Failure>> = thread::scope(|scope| {
            let start = |thread: u64| {
                let (node, _) = &self.nodes[thread as usize % self.nodes.len()];
                let body = body.to_string();
                scope.spawn(move || client(node.url(), &body, case, (thread, threads), begun))
            };
            let all: Vec<_> = (0..threads).map(start).collect();
            all.into_iter()
                .map(|one| {
                    one.join().unwrap_or_else(|_| Err(Failure::Invalid("a client died".into())))
                })
                .collect()
        });
        Ok(each.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    fn calls(&self) -> u64 {
        let stats = self.redis.ask(&["INFO", "commandstats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        line.and_then(|line| line.split(',').next()?.parse().ok()).unwrap_or(0)
    }

    /// What the nodes ask by themselves.
    fn calls_in(&self, how_long: Duration) -> u64 {
        let before = self.calls();
        pause(how_long);
        self.calls() - before
    }

    /// Asks that waited for Redis.
    fn waits(&self) -> Result<u64, Failure> {
        let mut all = 0;
        for (node, _) in &self.nodes {
            let mut connection =
                Connection::open(node.url()).map_err(Failure::io("a connection"))?;
            let page =
                connection.exchange("GET", "/metrics", &[], b"").map_err(Failure::io("metrics"))?;
            let text = page.text();
            let line =
                text.lines().find_map(|line| line.strip_prefix("tollkeeper_lease_waits_total "));
            all += line.and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(all)
    }
}

fn client(
    url: &str,
    body: &str,
    case: &Case,
    (thread, threads): (u64, u64),
    begun: Instant,
) -> Result<Vec<Seen>, Failure> {
    let mut connection = Connection::open(url).map_err(Failure::io("a connection"))?;
    let authorization = format!("Bearer {ROOT_KEY}");
    let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
    let mut seen = Vec::new();
    for number in 0.. {
        let due = Duration::from_micros((number * threads + thread) * 1_000_000 / case.rate());
        if due.as_millis() as u64 > case.duration_ms() {
            break;
        }
        let ahead = due.saturating_sub(begun.elapsed());
        if !ahead.is_zero() {
            pause(ahead);
        }
        let sent_us = begun.elapsed().as_micros() as u64;
        let answer = connection
            .exchange("POST", "/v2/ratelimit.limit", &headers, body.as_bytes())
            .map_err(Failure::io("an answer"))?;
        let heard_us = begun.elapsed().as_micros() as u64;
        let answer: Value = serde_json::from_slice(&answer.body)
            .map_err(|error| Failure::Invalid(format!("{error}: {}", answer.text())))?;
        let data = &answer["data"];
        seen.push(Seen {
            sent_us,
            heard_us,
            admitted: data["success"].as_bool().unwrap_or(false),
            degraded: data["degraded"].as_bool().unwrap_or(false),
            reset: data["reset"].as_u64().unwrap_or(0),
        });
    }
    Ok(seen)
}

#[allow(clippy::disallowed_methods, reason = "a client measures by its own clock")]
fn now() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods, reason = "a client that keeps a pace waits")]
fn pause(how_long: Duration) {
    thread::sleep(how_long);
}
