//! A primary with two replicas and three sentinels that fail over within about three seconds.

use std::fs;

use crate::port::free_port;
use crate::redis::{RedisFailure, RedisServer, failed, new_folder};

/// What the sentinels call the primary.
pub const PRIMARY_NAME: &str = "main";

const SENTINELS: usize = 3;

/// Shorter, and on a busy machine a sentinel takes a server for dead before it has connected to it.
const DOWN_AFTER_MS: u64 = 1000;

/// When the sentinels vote for different leaders they try again after twice this.
const FAILOVER_TIMEOUT_MS: u64 = 1500;

#[derive(Debug)]
pub struct RedisSentinel {
    /// The primary at first, then its replicas.
    pub servers: Vec<RedisServer>,
    pub sentinels: Vec<RedisServer>,
}

// === impl RedisSentinel ===

impl RedisSentinel {
    /// Returns once the replicas follow and every sentinel knows all others.
    pub fn start() -> Result<Self, RedisFailure> {
        let primary = RedisServer::start_with(&["--repl-diskless-sync-delay", "0"])?;
        let port = primary.port().to_string();
        let mut servers = vec![primary];
        for _ in 0..2 {
            let args = ["--replicaof", "127.0.0.1", &port, "--repl-diskless-sync-delay", "0"];
            servers.push(RedisServer::start_with(&args)?);
        }
        for replica in servers.iter().skip(1) {
            replica.ask_until(&["INFO", "replication"], "master_link_status:up")?;
        }
        let sentinels = start_sentinels(&servers)?;
        let all = Self { servers, sentinels };
        for sentinel in &all.sentinels {
            let ask = ["SENTINEL", "CKQUORUM", PRIMARY_NAME];
            sentinel.ask_until(&ask, "OK 3 usable Sentinels")?;
        }
        Ok(all)
    }

    /// The port of the primary that the sentinels agree on; none while they do not.
    pub fn primary_port(&self) -> Option<u16> {
        let ask = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", PRIMARY_NAME];
        let mut named = self.sentinels.iter().map(|sentinel| sentinel.ask(&ask));
        let first = named.next()?;
        let agreed = named.all(|other| other == first);
        first.lines().last().filter(|_| agreed)?.parse().ok()
    }

    /// `redis-sentinel://127.0.0.1:P,127.0.0.1:P,127.0.0.1:P/main`
    pub fn url(&self) -> String {
        let hosts: Vec<String> = self.sentinels.iter().map(RedisServer::address).collect();
        format!("redis-sentinel://{}/{PRIMARY_NAME}", hosts.join(","))
    }
}

/// Told of each other in their files: finding out by themselves takes them several seconds.
fn start_sentinels(servers: &[RedisServer]) -> Result<Vec<RedisServer>, RedisFailure> {
    let ports: Result<Vec<u16>, _> = (0..SENTINELS).map(|_| free_port()).collect();
    let ports = ports.map_err(|error| failed("a free port", &error))?;
    let name = |port: &u16| format!("{port:040x}");
    let sentinel = |own: &u16| {
        let [primary, replicas @ ..] = servers else {
            return Err(RedisFailure("there is no primary to watch".into()));
        };
        let mut file = format!(
            "bind 127.0.0.1\nport {own}\nsentinel myid {}\n\
             sentinel monitor {PRIMARY_NAME} 127.0.0.1 {} 2\n\
             sentinel down-after-milliseconds {PRIMARY_NAME} {DOWN_AFTER_MS}\n\
             sentinel failover-timeout {PRIMARY_NAME} {FAILOVER_TIMEOUT_MS}\n",
            name(own),
            primary.port()
        );
        for replica in replicas {
            let line =
                format!("sentinel known-replica {PRIMARY_NAME} 127.0.0.1 {}\n", replica.port());
            file.push_str(&line);
        }
        for other in ports.iter().filter(|other| *other != own) {
            let id = name(other);
            let line = format!("sentinel known-sentinel {PRIMARY_NAME} 127.0.0.1 {other} {id}\n");
            file.push_str(&line);
        }
        let folder = new_folder()?;
        let path = folder.join("sentinel.conf");
        fs::write(&path, file).map_err(|error| failed("the sentinel's file", &error))?;
        let args = vec![path.display().to_string(), "--sentinel".into()];
        RedisServer::start_at(folder, *own, args)
    };
    ports.iter().map(sentinel).collect()
}
