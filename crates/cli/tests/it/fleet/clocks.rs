//! Wrong clocks: nodes that are hours off, clocks that step while limits are counted, and a Redis whose own clock jumps.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tollkeeper_testkit::{RedisServer, Tollkeeper};

use super::{Asked, Seen, admitted, body, by_window, clients, drive, heard, one};
use crate::time::{eventually, pause};
use crate::world::{Client, LONG_MS, side_by_side, start};

const SHIM: &str = include_str!("wall_clock.c");

const HOUR_S: i64 = 3_600;

/// Clocks of processes, each wrong by as much as it is told.
struct WallClocks {
    folder: TempDir,
}

/// A Redis with a clock that can be told to be wrong. Dropping it ends it.
struct OddRedis {
    process: Child,
    port: u16,
}

// === impl WallClocks ===

impl WallClocks {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("wall_clock.c"), SHIM).expect("its text");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o", "wall_clock.so", "wall_clock.c"]);
        let made = compiler.current_dir(folder.path()).output().expect("a C compiler");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self { folder }
    }

    fn set(&self, whose: &str, ahead_s: i64) {
        let mut how = fs::OpenOptions::new();
        how.create(true).write(true).truncate(false);
        let file = how.open(self.file(whose)).expect("a file");
        // In place: the process has mapped it.
        file.write_all_at(&ahead_s.to_le_bytes(), 0).expect("written");
    }

    fn file(&self, whose: &str) -> PathBuf {
        self.folder.path().join(whose)
    }

    /// What the process must be started with.
    fn env(&self, whose: &str) -> [(&'static str, String); 2] {
        let library = self.folder.path().join("wall_clock.so");
        [
            ("LD_PRELOAD", library.display().to_string()),
            ("WALL_CLOCK_AHEAD", self.file(whose).display().to_string()),
        ]
    }

    fn node(&self, whose: &str, redis: &str) -> (Tollkeeper, TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let env = self.env(whose);
        let mut env: Vec<_> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
        env.push(("TOLLKEEPER_REDIS_URL", redis));
        (start(folder.path(), &env).expect("the node starts"), folder)
    }
}

// === impl OddRedis ===

impl OddRedis {
    fn start(clocks: &WallClocks) -> Self {
        // Its port is free once it is gone.
        let port = RedisServer::start().expect("a Redis").port();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--save", "", "--appendonly", "no"]);
        command.envs(clocks.env("redis")).current_dir(clocks.folder.path());
        let process = command.stdout(Stdio::null()).spawn().expect("a Redis");
        let redis = Self { process, port };
        eventually("it answers", || redis.ask("PING").starts_with("PONG"));
        redis
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn ask(&self, command: &str) -> String {
        let asked =
            Command::new("redis-cli").args(["-p", &self.port.to_string(), command]).output();
        String::from_utf8_lossy(&asked.expect("an answer").stdout).into_owned()
    }
}

impl Drop for OddRedis {
    fn drop(&mut self) {
        // Fails only when it has ended already.
        let _ = (self.process.kill(), self.process.wait());
    }
}

/// The first line of the answer to TIME.
fn seconds(answer: &str) -> u64 {
    answer.lines().next().and_then(|line| line.parse().ok()).expect("a number")
}

#[test]
fn nodes_that_are_hours_wrong_and_step_meanwhile_count_by_the_clock_of_redis() {
    const LIMIT: u64 = 100;
    let clocks = WallClocks::new();
    let redis = RedisServer::start().expect("a Redis");
    for (whose, ahead_s) in [("fast", HOUR_S), ("slow", -HOUR_S)] {
        clocks.set(whose, ahead_s);
    }
    let nodes: Vec<_> = ["fast", "slow"].map(|whose| clocks.node(whose, &redis.url())).into();
    let seen = side_by_side(3, |thread| {
        if thread == 2 {
            // Each becomes as wrong as the other was.
            pause(Duration::from_secs(2));
            clocks.set("fast", -HOUR_S);
            clocks.set("slow", HOUR_S);
            return Vec::new();
        }
        let algorithm = ["fixed_window", "sliding_window"][thread];
        drive(&nodes, 4, Duration::from_millis(5_200), 300, |_| Asked {
            body: body(algorithm, LIMIT, 1_000, algorithm),
            cost: 1,
        })
    });
    let redis_s = seconds(&redis.ask(&["TIME"]));
    for seen in &seen[..2] {
        let windows = by_window(seen);
        assert!(windows.values().all(|got| *got <= LIMIT), "{windows:?}");
        // Both nodes name the same windows, and those are of Redis' time.
        let ends: BTreeSet<u64> =
            seen.iter().filter(|one| !one.degraded).map(|one| one.reset).collect();
        assert!((4..=9).contains(&ends.len()), "{ends:?}");
        assert!(ends.iter().all(|end| end.abs_diff(redis_s * 1_000) < 60_000), "{ends:?}");
        assert!(admitted(seen) >= 2 * LIMIT, "{windows:?}");
    }
}

/// Windows do not care, but whoever reads times that this machine wrote does.
#[test]
fn a_node_whose_clock_is_wrong_says_so_once_and_says_when_it_is_right_again() {
    let clocks = WallClocks::new();
    let redis = RedisServer::start().expect("a Redis");
    clocks.set("wrong", -HOUR_S);
    let (node, _folder) = clocks.node("wrong", &redis.url());
    let mut client = Client::new(node.url(), node.root_key());
    let mut seen = |clock: &str| {
        let status = client.data("system.status", &json!({}));
        let one = &status["redis"][0];
        let page = client.get("/metrics").text();
        let skew =
            page.lines().find_map(|line| line.strip_prefix("tollkeeper_clock_skew_seconds "));
        let skew: f64 = skew.and_then(|skew| skew.parse().ok()).expect("a number");
        let ms = one["clockSkewMs"].as_u64().expect("a number");
        (one["clock"] == clock).then_some((ms, skew))
    };
    let hour_ms = HOUR_S.unsigned_abs() * 1_000;
    let (ms, skew) = seen("behind").expect("it is an hour behind");
    assert!(ms.abs_diff(hour_ms) < 1_000 && (skew + 3_600.0).abs() < 1.0, "{ms}, {skew}");
    let said = |what: &str| (node.stdout() + &node.stderr()).matches(what).count();
    let (wrong, right) = ("s behind redis'", "agree again");
    eventually("it is said", || said(wrong) == 1);
    // As many looks as would say it again.
    pause(Duration::from_millis(2_500));
    assert_eq!((said(wrong), said(right)), (1, 0));
    clocks.set("wrong", 0);
    eventually("it is right", || seen("agrees").is_some_and(|(ms, _)| ms < 1_000));
    eventually("and said to be", || said(right) == 1);
    assert_eq!(said(wrong), 1);
}

#[test]
fn a_redis_whose_clock_jumps_costs_at_most_one_limit_per_jump() {
    const LIMIT: u64 = 50;
    let clocks = WallClocks::new();
    clocks.set("redis", 0);
    let redis = OddRedis::start(&clocks);
    let nodes = super::nodes_at(&redis.url(), 2, &[]);
    let mut clients = clients(&nodes);
    let kinds = ["fixed_window", "sliding_window", "token_bucket"];
    let asked = |algorithm: &str| {
        let mut body = body("jump", LIMIT, LONG_MS, algorithm);
        body["onOutage"] = json!("deny");
        Asked { body, cost: 1 }
    };
    let use_up = |clients: &mut Vec<Client>, algorithm: &str| {
        let all: Vec<Seen> =
            (0..100).map(|n| heard(&mut clients[n % 2], &asked(algorithm))).collect();
        admitted(&all)
    };
    let mut got = kinds.map(|algorithm| use_up(&mut clients, algorithm));
    assert!(got.iter().all(|got| (LIMIT - 5..=LIMIT).contains(got)), "{got:?}");
    // An hour back is in the same window, but for one hour of a month.
    let redis_ms = seconds(&redis.ask("TIME")) * 1_000;
    let same = redis_ms % LONG_MS > 2 * 3_600_000;
    for (jumps, ahead_s) in [(1, -HOUR_S), (2, 0), (3, 40 * 24 * HOUR_S), (4, 0)] {
        clocks.set("redis", ahead_s);
        // A reckoning of its time that is older than this is not believed by then.
        pause(Duration::from_millis(300));
        for (got, algorithm) in got.iter_mut().zip(kinds) {
            *got += use_up(&mut clients, algorithm);
            let most = if same && jumps <= 2 { LIMIT } else { LIMIT * (1 + jumps) };
            assert!(*got <= most, "{algorithm}, jump {jumps}: {got} of at most {most}");
        }
    }
    assert!(!one(&mut clients[0], &asked("fixed_window")).degraded);
}
