//! `members.lua`: who was heard lately, counted.

use redis::{Value, cmd};

use super::MEMBERS;
use super::fake_time::{Digest, FakeTime, number};

const KEY: &str = "tk:members:{home}";
const NOW: i64 = 1_700_000_000_000;
const ALIVE_MS: i64 = 5_000;

struct Members {
    redis: FakeTime,
    script: Digest,
}

// === impl Members ===

impl Members {
    fn start() -> Self {
        let mut redis = FakeTime::start();
        let script = redis.load_timed(MEMBERS);
        Self { redis, script }
    }

    fn call(&mut self, boot: &str, how: &str, now: i64) -> i64 {
        let mut call = self.script.call_at(&[KEY], now);
        call.arg(boot).arg(ALIVE_MS).arg(how);
        number(&self.redis.ask(&call))
    }
}

#[test]
fn every_boot_counts_once_until_it_was_silent_for_too_long() {
    let mut members = Members::start();
    assert_eq!(members.call("a", "", NOW), 1);
    assert_eq!(members.call("a", "", NOW + 1), 1);
    assert_eq!(members.call("b", "", NOW + 2_000), 2);
    // Heard exactly that long ago still counts.
    assert_eq!(members.call("b", "", NOW + 1 + ALIVE_MS), 2);
    assert_eq!(members.call("b", "", NOW + 2 + ALIVE_MS), 1);
}

#[test]
fn who_leaves_is_gone_at_once() {
    let mut members = Members::start();
    assert_eq!(members.call("a", "", NOW), 1);
    assert_eq!(members.call("b", "", NOW), 2);
    assert_eq!(members.call("a", "leave", NOW), 1);
    assert_eq!(members.call("a", "leave", NOW), 1);
    assert_eq!(members.call("b", "leave", NOW), 0);
    assert_eq!(members.redis.ask(cmd("EXISTS").arg(KEY)), Value::Int(0));
}

#[test]
fn the_set_is_forgotten_when_nobody_calls() {
    let mut members = Members::start();
    members.call("a", "", NOW);
    let left = number(&members.redis.ask(cmd("PTTL").arg(KEY)));
    assert!((50_000..=60_000).contains(&left), "{left}");
}
