//! What a Redis says of itself: calls, processor time and memory, read before and after.
//! It never takes part in what is measured.

use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use tollkeeper_testkit::{RedisFailure, RedisServer};

use crate::failure::Failure;
use crate::http::server::Core;

/// At one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    scripts: u64,
    records: u64,
    upkeep: u64,
    reads: u64,
    cpu_us: f64,
    memory: u64,
}

/// Between two moments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Scripts that were run, by whomever.
    pub(super) scripts: u64,
    /// Of these, calls about a cell; the others say that a node lives, or ask whether Redis does.
    pub(super) takes: u64,
    /// Times that the record of a cell was made or read: by each call about it that met the right window.
    pub(super) records: u64,
    /// Times that something was read from a connection.
    reads: u64,
    pub(super) cpu_us: f64,
    pub(super) memory: f64,
}

// === impl Reading ===

impl Reading {
    pub(super) fn of(redis: &RedisServer) -> Result<Self, Failure> {
        let text = redis.ask(&["INFO", "everything"]);
        let read = || {
            let cpu_s = field(&text, "used_cpu_user:")? + field(&text, "used_cpu_sys:")?;
            // Of a node's scripts only that about a cell reads a hash or, where the cell is new to the node, tries to make a
            // string first; only the one that counts nodes counts a sorted set. All but that one read an epoch. A string
            // that was there already is read as such, and then as a hash; only that asks for a time to live.
            let (read, unfolded) =
                (calls(&text, "hmget") + calls(&text, "hgetall"), calls(&text, "pttl"));
            let about_cells = (read + calls(&text, "set")).saturating_sub(2 * unfolded);
            let epochs = calls(&text, "get").saturating_sub(about_cells + unfolded);
            Some(Self {
                scripts: calls(&text, "evalsha"),
                records: about_cells,
                upkeep: calls(&text, "zcard") + epochs,
                reads: field(&text, "total_reads_processed:")? as u64,
                cpu_us: cpu_s * 1e6,
                memory: field(&text, "used_memory:")? as u64,
            })
        };
        read().ok_or_else(|| Failure::unreadable("what Redis says of itself", &*text))
    }

    pub(super) fn since(self, before: Self) -> Work {
        let scripts = self.scripts - before.scripts;
        Work {
            scripts,
            records: self.records - before.records,
            takes: scripts.saturating_sub(self.upkeep - before.upkeep),
            reads: self.reads - before.reads,
            cpu_us: self.cpu_us - before.cpu_us,
            memory: self.memory as f64 - before.memory as f64,
        }
    }
}

// === impl Work ===

impl Work {
    /// For the client that is to come up to this one.
    pub(super) fn pace(&self, took: Duration) -> Pace {
        let per_second = self.scripts as f64 / took.as_secs_f64();
        Pace { at_once: self.scripts_per_read(), per_second }
    }

    pub(super) fn cpu_us_per_script(&self) -> f64 {
        self.cpu_us / self.scripts.max(1) as f64
    }

    /// How many calls come with one read: 1 where each is sent alone.
    pub(super) fn scripts_per_read(&self) -> f64 {
        self.scripts as f64 / self.reads.max(1) as f64
    }
}

/// How calls come in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// In one write, on average.
    pub(super) at_once: f64,
    pub(super) per_second: f64,
}

/// On a core of its own, as far as there are several.
pub(super) fn start_on(core: Core) -> Result<RedisServer, Failure> {
    let redis = RedisServer::start().map_err(unstarted)?;
    if let Core::Only(core) = core {
        let text = redis.ask(&["INFO", "server"]);
        let pid = field(&text, "process_id:").and_then(|pid| Pid::from_raw(pid as i32));
        let pid = pid.ok_or_else(|| Failure::unreadable("the process id of Redis", &*text))?;
        let mut cores = CpuSet::new();
        cores.set(core);
        sched_setaffinity(Some(pid), &cores)
            .map_err(|error| Failure::io("a core for Redis")(error.into()))?;
    }
    Ok(redis)
}

#[allow(clippy::needless_pass_by_value, reason = "the shape of map_err")]
pub(super) fn unstarted(failure: RedisFailure) -> Failure {
    Failure::Child { what: "redis-server".into(), said: failure.to_string() }
}

fn field(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

/// A command that was never called is not listed.
fn calls(text: &str, command: &str) -> u64 {
    let line = text.lines().find_map(|line| {
        line.strip_prefix("cmdstat_")?.strip_prefix(command)?.strip_prefix(":calls=")
    });
    line.and_then(|line| line.split(',').next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_apart_by_the_whole_name() {
        let text = "cmdstat_hgetall:calls=3,usec=9\r\ncmdstat_get:calls=41,usec=7\r\n";
        assert_eq!((calls(text, "get"), calls(text, "hgetall"), calls(text, "zcard")), (41, 3, 0));
    }
}
