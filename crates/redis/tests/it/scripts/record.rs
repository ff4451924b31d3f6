//! What `take.lua` leaves in Redis, by the server's own clock: how large it is and how long it stays.

use redis::{Value, cmd};

use super::fake_time::{Digest, FakeTime, number};
use super::{RESET, RUN, TAKE};

const EPOCH_KEY: &str = "tk:ep:{512}";

/// Of a record that is a string, and of a log: at a million identifiers a window, so many megabytes.
const BYTES_MAX: [(&str, i64); 3] = [("sw", 144), ("tb", 160), ("sl", 200)];

fn first_request(redis: &mut FakeTime, take: &Digest, key: &str, kind: &str) {
    first_request_at(redis, take, key, kind, None);
}

/// `told` for a script that was loaded with the time as an argument.
fn first_request_at(redis: &mut FakeTime, take: &Digest, key: &str, kind: &str, told: Option<u64>) {
    redis.ask(cmd("SET").arg(EPOCH_KEY).arg(format!("{RUN}|1")));
    let mut call = take.call(&[key, EPOCH_KEY]);
    call.arg(kind).arg("9Zk3_aQp0-x");
    for number in [1, 0, 0, 0, 0, 0, 1, 1, 0, 3, 100, 60_000, 100] {
        call.arg(number);
    }
    redis.ask(call.arg("print").arg(told));
}

fn key(kind: &str) -> String {
    format!("rl:{{512}}:default/payments/60000:user_12345678:{kind}")
}

#[test]
fn the_record_of_one_request_is_small() {
    let mut redis = FakeTime::start();
    let take = redis.load(TAKE);
    for (kind, most) in BYTES_MAX {
        let key = key(kind);
        first_request(&mut redis, &take, &key, kind);
        let bytes = number(&redis.ask(cmd("MEMORY").arg("USAGE").arg(&key)));
        eprintln!("{kind} takes {bytes} bytes");
        assert!(bytes <= most, "{kind} takes {bytes} bytes");
    }
}

#[test]
fn the_second_request_finds_what_the_first_one_left_and_so_does_a_reset() {
    let mut redis = FakeTime::start();
    let (take, reset) = (redis.load_timed(TAKE), redis.load(RESET));
    // Both in one millisecond: a part of the bucket's one unit would have flowed back in the next.
    let told = Some(1_700_000_000_000);
    for (kind, count) in [("sw", "g"), ("tb", "m")] {
        let key = key(kind);
        let counted = |redis: &mut FakeTime| redis.ask(cmd("HGET").arg(&key).arg(count));
        first_request_at(&mut redis, &take, &key, kind, told);
        assert_eq!(redis.ask(cmd("TYPE").arg(&key)), Value::SimpleString("string".into()));
        redis.ask(&reset.call(&[&key]));
        assert_eq!(counted(&mut redis), Value::BulkString(b"0".into()), "{kind}");
        redis.ask(cmd("DEL").arg(&key));
        first_request_at(&mut redis, &take, &key, kind, told);
        // The same call once more counts nothing.
        first_request_at(&mut redis, &take, &key, kind, told);
        assert_eq!(counted(&mut redis), Value::BulkString(b"1".into()), "{kind}");
    }
}

#[test]
fn a_record_stays_to_the_end_of_the_next_window_or_until_all_has_flowed_back() {
    let mut redis = FakeTime::start();
    let take = redis.load(TAKE);
    for (kind, least, most) in
        [("sw", 50_000, 120_000), ("tb", 120_000, 130_060), ("sl", 110_000, 120_000)]
    {
        let key = key(kind);
        first_request(&mut redis, &take, &key, kind);
        let left = number(&redis.ask(cmd("PTTL").arg(&key)));
        assert!((least..=most).contains(&left), "{kind} stays {left} ms");
    }
}

#[test]
fn a_reset_leaves_the_time_to_live_and_makes_no_record() {
    let mut redis = FakeTime::start();
    let (take, reset) = (redis.load(TAKE), redis.load(RESET));
    assert_eq!(number(&redis.ask(&reset.call(&["rl:{512}:none"]))), 0);
    assert_eq!(number(&redis.ask(cmd("EXISTS").arg("rl:{512}:none"))), 0);
    for kind in ["sw", "tb", "sl"] {
        let key = key(kind);
        first_request(&mut redis, &take, &key, kind);
        redis.ask(cmd("PEXPIRE").arg(&key).arg(30_000));
        assert_eq!(number(&redis.ask(&reset.call(&[&key]))), 1);
        let left = number(&redis.ask(cmd("PTTL").arg(&key)));
        assert!((20_000..=30_000).contains(&left), "{kind} stays {left} ms");
    }
}
