//! The transport against real Redis servers: single, read-only, encrypted, behind sentinels, in a cluster, on a ring.
//! Nothing is mocked; faults are signals to real processes or a proxy in front of them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};
use tollkeeper_redis::{Arg, CallError, Options, Redis, RedisUrl, ScriptId, Value};

mod cluster;
mod config_cache;
mod encryption;
mod eviction;
mod fake;
mod guarded;
mod history;
mod outage;
mod refusal;
mod replies;
mod ring;
mod scripts;
mod sentinel;
mod strange;
mod subscription;
mod usage_buffer;
mod vetting;

/// Answers with the run id of the process that executes it, and its argument.
const ECHO: ScriptId = ScriptId(0);
/// Counts in its key; answers with the run id and the new count.
const COUNT: ScriptId = ScriptId(1);

const SCRIPTS: [&str; 2] =
    ["return {RUN, ARGV[1]}", "return {RUN, string.format('%.0f', redis.call('INCR', KEYS[1]))}"];

/// Far above what a call takes on this machine, even when it is busy.
const PATIENT: Duration = Duration::from_secs(2);

/// What a test waits at most for something to become true. Elections take seconds when votes are split.
const LIMIT: Duration = Duration::from_secs(30);

fn options() -> Options {
    Options { scripts: SCRIPTS.to_vec(), ..Options::default() }
}

fn start(url: &str) -> Redis {
    start_with(url, options())
}

fn start_with(url: &str, options: Options) -> Redis {
    Redis::start(&RedisUrl::parse(url).unwrap(), options, &Handle::current())
}

/// Once every server of it can be used.
async fn connected(url: &str) -> Redis {
    let redis = start(url);
    let whole = async || {
        let servers = redis.servers();
        let tags: usize = servers.iter().map(|server| server.tags.len()).sum();
        servers.iter().all(|server| server.connected) && tags == 1024
    };
    until("all servers are connected", whole).await;
    redis
}

/// Looks again and again, for what another process does.
async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) -> Duration {
    let began = now();
    while !condition().await {
        assert!(began.elapsed() < LIMIT, "waited in vain until {what}");
        let _ = timeout(Duration::from_millis(5), std::future::pending::<()>()).await;
    }
    began.elapsed()
}

async fn echo(redis: &Redis, text: &str) -> Result<(String, String), CallError> {
    redis.run(1, ECHO, &[b"echo:{1}"], &[Arg::from(text)], PATIENT).await.map(|value| pair(&value))
}

async fn count(redis: &Redis, tag: u16, deadline: Duration) -> Result<u64, CallError> {
    let key = format!("count:{{{tag}}}");
    let counted = redis.run(tag, COUNT, &[key.as_bytes()], &[], deadline).await?;
    Ok(pair(&counted).1.parse().unwrap())
}

fn pair(value: &Value) -> (String, String) {
    let Value::Array(parts) = value else { panic!("{value:?} is no pair") };
    let [run, said] = parts.as_slice() else { panic!("{value:?} is no pair") };
    (text(run), text(said))
}

fn text(value: &Value) -> String {
    let Value::BulkString(bytes) = value else { panic!("{value:?} is no text") };
    String::from_utf8(bytes.clone()).unwrap()
}

fn now() -> Instant {
    #[allow(clippy::disallowed_methods, reason = "the test measures how long a call takes")]
    Instant::now()
}
