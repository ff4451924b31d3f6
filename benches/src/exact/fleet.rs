//! Nodes and a Redis of their own, clients that keep a pace, and what may befall the nodes meanwhile.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use tollkeeper_testkit::{Connection, Fault, FaultProxy, RedisServer, Tollkeeper};

use super::case::Case;
use super::clients::{self, Client};
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
        let seen = self.drive(&[(case, identifier.to_owned())], begun)?.concat();
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
        let seen = thread::scope(|scope| {
            let kills = (trouble == Trouble::Kills).then(|| scope.spawn(|| self.kills(&over)));
            let asked: Vec<_> = cases.iter().map(|case| (case, unique(case))).collect();
            let seen = self.drive(&asked, begun);
            over.store(true, Ordering::Relaxed);
            kills.map_or(Ok(()), joined)?;
            seen
        });
        self.proxy.set(Fault::Pass);
        let judge =
            |(case, seen): (&Case, Vec<Seen>)| Figures::judge(case, &seen, begun.wall_ms, None);
        cases.iter().zip(seen?).map(judge).collect()
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

    /// Each case on an identifier of its own; what was seen of each.
    fn drive(&self, asked: &[(&Case, String)], begun: Begun) -> Result<Vec<Vec<Seen>>, Failure> {
        let clients: Vec<Vec<Client<'_>>> = asked
            .iter()
            .map(|(case, identifier)| Client::of_case(case, identifier, self.nodes.len()))
            .collect();
        let each: Vec<usize> = clients.iter().map(Vec::len).collect();
        let clients: Vec<Client<'_>> = clients.into_iter().flatten().collect();
        // One that is being started again is nowhere, and nobody waits for it.
        let whereabouts = |node: usize| Some(self.nodes[node].try_lock().ok()?.server.url().into());
        let mut seen = clients::run(&clients, begun.at, &whereabouts)?.into_iter();
        Ok(each
            .into_iter()
            .map(|of_case| seen.by_ref().take(of_case).flatten().collect())
            .collect())
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
