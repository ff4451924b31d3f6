//! Windows of many keys that end at the same moment: what their edge costs Redis, and who waits for it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::{Asked, Fleet, admitted, body, drive};
use crate::time::eventually;

const WIDTH_MS: u64 = 2_000;
const BUCKET_MS: u64 = 100;

/// Every command that Redis runs, with the moment by its own clock. Dropping it ends it.
struct Monitor {
    process: Child,
    folder: TempDir,
}

// === impl Monitor ===

impl Monitor {
    fn of(fleet: &Fleet) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let written = File::create(said(folder.path())).expect("a file");
        let mut command = Command::new("redis-cli");
        command.args(["-p", &fleet.redis.port().to_string(), "MONITOR"]);
        let process = command.stdin(Stdio::null()).stdout(written).spawn().expect("redis-cli");
        let monitor = Self { process, folder };
        eventually("it listens", || monitor.text().starts_with("OK"));
        monitor
    }

    fn text(&self) -> String {
        fs::read_to_string(said(self.folder.path())).expect("what it wrote")
    }

    /// When calls about fixed windows were heard, in milliseconds.
    fn calls(&self) -> Vec<u64> {
        let text = self.text();
        let calls = text.lines().filter(|line| {
            line.to_ascii_lowercase().contains("\"evalsha\"") && line.contains("\"fw\"")
        });
        calls.filter_map(moment).collect()
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // Fails only when it has ended already.
        let _ = (self.process.kill(), self.process.wait());
    }
}

fn said(folder: &Path) -> PathBuf {
    folder.join("said")
}

/// `1700000000.123456 [0 …` as milliseconds.
fn moment(line: &str) -> Option<u64> {
    let (seconds, rest) = line.split_once('.')?;
    let micros: u64 = rest.get(..6)?.parse().ok()?;
    Some(seconds.parse::<u64>().ok()? * 1_000 + micros / 1_000)
}

/// Asks that have waited for Redis so far.
fn waits(fleet: &Fleet) -> u64 {
    let mut clients = fleet.clients();
    clients
        .iter_mut()
        .map(|client| {
            let metrics = client.get("/metrics").text();
            let line =
                metrics.lines().find_map(|line| line.strip_prefix("tollkeeper_lease_waits_total "));
            line.and_then(|count| count.parse::<u64>().ok()).expect("the metric")
        })
        .sum()
}

/// Every key has the same edges. A key that goes on has its next lease before its window ends, asked for at a moment of its
/// own: an edge costs no more calls than any other moment, and hardly anybody waits.
#[test]
fn windows_of_many_keys_that_end_together_cost_each_key_a_call_or_two() {
    const KEYS: u64 = 100;
    const WINDOWS: u64 = 8;
    let fleet = Fleet::of(2);
    let ask = |n: u64| Asked {
        body: body(&format!("many {}", n % KEYS), 1_000, WIDTH_MS, "fixed_window"),
        cost: 1,
    };
    // Leases have found their sizes by then.
    drive(&fleet.nodes, 6, Duration::from_millis(3 * WIDTH_MS), 1_000, ask);
    let (monitor, before) = (Monitor::of(&fleet), waits(&fleet));
    let seen = drive(&fleet.nodes, 6, Duration::from_millis(WINDOWS * WIDTH_MS), 1_000, ask);
    let waited = waits(&fleet) - before;
    let calls = monitor.calls();
    let mut buckets = vec![0_u64; usize::try_from(WIDTH_MS / BUCKET_MS).expect("a few")];
    for at in &calls {
        buckets[usize::try_from(at % WIDTH_MS / BUCKET_MS).expect("a few")] += 1;
    }
    let mean = calls.len() as u64 / buckets.len() as u64;
    let told = format!(
        "{} calls, {waited} waits, {} requests, {} admitted, by tenths of a second after an edge: {buckets:?}",
        calls.len(),
        seen.len(),
        admitted(&seen)
    );
    eprintln!("{told}");
    // One ask ahead and now and then one more; each key is asked for on one node.
    assert!(calls.len() as u64 <= 2 * KEYS * (WINDOWS + 1), "{told}");
    assert!(buckets.iter().all(|bucket| *bucket <= 2 * mean.max(1)), "{told}");
    // Without leases ahead each key waits with the first request of a window, and mostly with another one.
    assert!(waited <= KEYS * WINDOWS / 4, "{told}");
}
