//! Nodes and a Redis of their own, clients that keep a pace, and what may befall the nodes meanwhile.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tempfile::TempDir;
use tollkeeper_testkit::{Connection, Fault, FaultProxy, ROOT_KEY, RedisServer, Tollkeeper};

use super::case::Case;
use super::judge::{Calls, Figures, Seen};
use crate::failure::Failure;

/// Between two kills, of one node after the other.
const KILLS: Duration = Duration::from_secs(2);

/// Of a hundred chunks of what Redis says five are lost to whoever waits for them: they come after 15 ms, when a node has given
/// up on the call and on its repetition, which is behind them (5 + 5 ms). A network that drops packets does just that, since
/// TCP sends them again; the call was applied, its answer is of no use, and the connection goes on. To lose the connection
/// with every such reply would measure something else: with a new one for every twenty replies a node is without Redis
/// nearly all the time, and what it decides then is not exact by design.
const LOST: Fault = Fault::LateReplies { seed: 11, per_mille: 50, by: Duration::from_millis(15) };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    None,
    /// `kill -9`, and a start on the same folder.
    Kills,
    LostReplies,
}

pub(super) struct Fleet {
    program: PathBuf,
    redis: RedisServer,
    proxy: FaultProxy,
    nodes: Vec<Mutex<Node>>,
}

struct Node {
    server: Tollkeeper,
    folder: TempDir,
}

/// The beginning of a run, by both clocks.
#[derive(Clone, Copy)]
struct Begun {
    at: Instant,
    wall_ms: f64,
}

// === impl Fleet ===

impl Fleet {
    pub(super) fn start(program: &Path, nodes: usize) -> Result<Self, Failure> {
        let redis = RedisServer::start().map_err(|error| Failure::Invalid(format!("{error:?}")))?;
        let proxy = FaultProxy::start(redis.port()).map_err(Failure::io("a proxy"))?;
        let url = redis.url();
        let node = |_| {
            let folder = tempfile::tempdir().map_err(Failure::io("a data folder"))?;
            let server = serve(program, folder.path(), &url)?;
            Ok(Mutex::new(Node { server, folder }))
        };
        let nodes = (0..nodes).map(node).collect::<Result<Vec<_>, Failure>>()?;
        // Everybody hears of everybody within a second.
        pause(Duration::from_millis(1_500));
        Ok(Self { program: program.to_owned(), redis, proxy, nodes })
    }

    /// As [`Fleet::start`], with a proxy on the way to Redis.
    pub(super) fn start_behind_proxy(program: &Path, nodes: usize) -> Result<Self, Failure> {
        let mut fleet = Self::start(program, 0)?;
        let url = fleet.proxied();
        for _ in 0..nodes {
            let folder = tempfile::tempdir().map_err(Failure::io("a data folder"))?;
            let server = serve(program, folder.path(), &url)?;
            fleet.nodes.push(Mutex::new(Node { server, folder }));
        }
        pause(Duration::from_millis(1_500));
        Ok(fleet)
    }

    fn proxied(&self) -> String {
        format!("redis://{}", self.proxy.address())
    }

    pub(super) fn redis(&self) -> &RedisServer {
        &self.redis
    }

    /// For what ends it and starts it again.
    pub(super) fn redis_mut(&mut self) -> &mut RedisServer {
        &mut self.redis
    }

    pub(super) fn urls(&self) -> Vec<String> {
        (0..self.nodes.len()).map(|node| self.url(node)).collect()
    }

    pub(super) fn url(&self, node: usize) -> String {
        let node = &self.nodes[node % self.nodes.len()];
        node.lock().unwrap_or_else(PoisonError::into_inner).server.url().to_owned()
    }

    /// Alone, so that what Redis is asked is asked for this case.
    pub(super) fn measure(&self, case: &Case) -> Result<Figures, Failure> {
        self.measure_identifier(case, &unique(case))
    }

    pub(super) fn measure_identifier(
        &self,
        case: &Case,
        identifier: &str,
    ) -> Result<Figures, Failure> {
        let idle = self.calls_in(Duration::from_secs(1));
        let (calls, waits) = (self.calls(), self.waits()?);
        let watch = now();
        let begun = Begun::soon();
        let seen = self.drive(case, identifier, begun)?;
        let idle = idle as f64 * watch.elapsed().as_secs_f64();
        let asked = seen.len().max(1) as f64;
        let calls = Calls {
            made: ((self.calls() - calls) as f64 - idle).max(0.0) / asked,
            waited: (self.waits()? - waits) as f64 / asked,
        };
        Figures::judge(case, &seen, begun.wall_ms, Some(calls))
    }

    /// Beside each other, each on an identifier of its own.
    pub(super) fn measure_all(
        &self,
        cases: &[Case],
        trouble: Trouble,
    ) -> Result<Vec<Figures>, Failure> {
        let over = AtomicBool::new(false);
        if trouble == Trouble::LostReplies {
            self.proxy.set(LOST);
        }
        let begun = Begun::soon();
        let figures = thread::scope(|scope| {
            let kills = (trouble == Trouble::Kills).then(|| scope.spawn(|| self.kills(&over)));
            let one = |case: &Case| {
                let seen = self.drive(case, &unique(case), begun)?;
                Figures::judge(case, &seen, begun.wall_ms, None)
            };
            let all: Vec<_> = cases.iter().map(|case| scope.spawn(move || one(case))).collect();
            let figures: Result<Vec<_>, Failure> = all.into_iter().map(joined).collect();
            over.store(true, Ordering::Relaxed);
            kills.map_or(Ok(()), joined)?;
            figures
        });
        self.proxy.set(Fault::Pass);
        figures
    }

    fn kills(&self, over: &AtomicBool) -> Result<(), Failure> {
        for node in self.nodes.iter().cycle() {
            let begun = now();
            while begun.elapsed() < KILLS {
                if over.load(Ordering::Relaxed) {
                    return Ok(());
                }
                pause(Duration::from_millis(50));
            }
            let mut node = node.lock().unwrap_or_else(PoisonError::into_inner);
            node.server.kill9().map_err(Failure::io("a kill"))?;
            node.server = serve(&self.program, node.folder.path(), &self.redis.url())?;
        }
        Ok(())
    }

    fn drive(&self, case: &Case, identifier: &str, begun: Begun) -> Result<Vec<Seen>, Failure> {
        let threads = match case.rate() {
            // As many connections as it takes to keep the pace.
            500.. => (self.nodes.len() * 2).max(4),
            _ => self.nodes.len().max(2),
        } as u64;
        thread::scope(|scope| {
            let client = |thread: u64| {
                scope.spawn(move || self.client(case, identifier, (thread, threads), begun))
            };
            let all: Vec<_> = (0..threads).map(client).collect();
            let each: Result<Vec<_>, Failure> = all.into_iter().map(joined).collect();
            Ok(each?.into_iter().flatten().collect())
        })
    }

    fn client(
        &self,
        case: &Case,
        identifier: &str,
        (thread, threads): (u64, u64),
        begun: Begun,
    ) -> Result<Vec<Seen>, Failure> {
        let node = thread as usize;
        let authorization = format!("Bearer {ROOT_KEY}");
        let headers =
            [("authorization", authorization.as_str()), ("content-type", "application/json")];
        let mut connection = Connection::open(&self.url(node)).ok();
        if let Some(open) = &mut connection {
            open.exchange("GET", "/livez", &[], b"").map_err(Failure::io("a node"))?;
        }
        pause(begun.at.saturating_duration_since(now()));
        let mut seen = Vec::new();
        for number in (thread..).step_by(threads as usize) {
            let due = Duration::from_micros(case.due_us(number));
            if due.as_millis() as u64 > case.lasts_ms {
                break;
            }
            let ahead = due.saturating_sub(begun.at.elapsed());
            if !ahead.is_zero() {
                pause(ahead);
            }
            let cost = case.cost.of(number, case.limit);
            let body = json!({
                "namespace": "exact", "identifier": identifier, "limit": case.limit, "cost": cost,
                "duration": case.window_ms, "algorithm": case.algorithm,
            });
            let body = body.to_string();
            let sent_us = begun.at.elapsed().as_micros() as u64;
            if connection.is_none() {
                connection = Connection::open(&self.url(node)).ok();
            }
            let answer = connection.as_mut().map(|open| {
                open.exchange("POST", "/v2/ratelimit.limit", &headers, body.as_bytes())
            });
            // A node that was killed said nothing: whatever it did, nobody was let in.
            let Some(Ok(answer)) = answer else {
                connection = None;
                pause(Duration::from_millis(5));
                continue;
            };
            let heard_us = begun.at.elapsed().as_micros() as u64;
            let answer: Value = serde_json::from_slice(&answer.body)
                .map_err(|error| Failure::Invalid(format!("{error}: {}", answer.text())))?;
            let data = &answer["data"];
            let (Some(admitted), Some(reset)) = (data["success"].as_bool(), data["reset"].as_u64())
            else {
                return Err(Failure::Invalid(format!("an answer without a verdict: {answer}")));
            };
            let degraded = data["degraded"].as_bool().unwrap_or(false);
            seen.push(Seen { sent_us, heard_us, cost, admitted, degraded, reset });
        }
        Ok(seen)
    }

    pub(super) fn calls(&self) -> u64 {
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
    pub(super) fn waits(&self) -> Result<u64, Failure> {
        let mut all = 0;
        for node in 0..self.nodes.len() {
            let mut connection =
                Connection::open(&self.url(node)).map_err(Failure::io("a connection"))?;
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

fn serve(program: &Path, folder: &Path, redis: &str) -> Result<Tollkeeper, Failure> {
    let program = program.to_string_lossy();
    Tollkeeper::start(&program, folder, &[("TOLLKEEPER_REDIS_URL", redis)])
        .map_err(|error| Failure::Invalid(format!("{error:?}")))
}

/// Of no other run.
fn unique(case: &Case) -> String {
    format!("{}-{}-{}-{:?}", case.algorithm, case.limit, case.load, now())
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T, Failure>>) -> Result<T, Failure> {
    thread.join().unwrap_or_else(|_| Err(Failure::Invalid("a client died".into())))
}

// === impl Begun ===

impl Begun {
    #[allow(
        clippy::disallowed_methods,
        reason = "windows are of Redis' time, which is this machine's"
    )]
    fn soon() -> Self {
        /// By then every client is connected: hundreds that come at once would be measured with what they ask.
        const LEAD: Duration = Duration::from_secs(1);
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + LEAD;
        Self { at: Instant::now() + LEAD, wall_ms: wall.as_secs_f64() * 1e3 }
    }
}

#[allow(clippy::disallowed_methods, reason = "a client measures by its own clock")]
fn now() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods, reason = "a client that keeps a pace waits")]
fn pause(how_long: Duration) {
    thread::sleep(how_long);
}
