//! What `take.lua` leaves in Redis, by the server's own clock: how large it is and how long it stays.

use redis::{Value, cmd};
use tollkeeper_core::Boot;

use super::fake_time::{Digest, FakeTime, number};
use super::{RESET, RUN, TAKE};

const EPOCH_KEY: &str = "tk:ep:{512}";
const BOOT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Of a record that one call made: at a million identifiers a window, so many megabytes.
const BYTES_MAX: [(&str, i64); 4] = [("fw", 120), ("sw", 120), ("sl", 120), ("tb", 136)];

fn first_request(redis: &mut FakeTime, take: &Digest, key: &str, kind: &str) {
    first_request_at(redis, take, key, kind, None);
}

/// `told` for a script that was loaded with the time as a key.
fn first_request_at(redis: &mut FakeTime, take: &Digest, key: &str, kind: &str, told: Option<u64>) {
    redis.ask(cmd("SET").arg(EPOCH_KEY).arg(format!("{RUN}|1")));
    let keys = [key, EPOCH_KEY];
    let mut call = told.map_or_else(|| take.call(&keys), |told| take.call_at(&keys, told));
    let start = if kind == "fw" { now(redis) / 60_000 * 60_000 } else { 0 };
    call.arg(kind).arg(&BOOT.to_be_bytes()[..]);
    for number in [1, start, 1, 100, 60_000] {
        call.arg(number);
    }
    redis.ask(call.arg("print").arg(3).arg(if kind == "tb" { 100 } else { 0 }));
}

fn now(redis: &mut FakeTime) -> u64 {
    let Value::Array(time) = redis.ask(&cmd("TIME")) else { panic!("no time") };
    let Value::BulkString(seconds) = &time[0] else { panic!("no seconds") };
    String::from_utf8_lossy(seconds).parse::<u64>().unwrap() * 1_000
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
    let (take, reset) = (redis.load_expiring(TAKE), redis.load_ending(RESET));
    // Both in one millisecond: a part of the bucket's one unit would have flowed back in the next.
    let told = Some(1_700_000_000_000);
    for (kind, count) in [("sw", "g"), ("tb", "m"), ("sl", "l1700000000000")] {
        let key = key(kind);
        let counted = |redis: &mut FakeTime| redis.ask(cmd("HGET").arg(&key).arg(count));
        first_request_at(&mut redis, &take, &key, kind, told);
        assert_eq!(redis.ask(cmd("TYPE").arg(&key)), Value::SimpleString("string".into()));
        redis.ask(&reset.call(&[&key]));
        let none = if kind == "sl" { Value::Nil } else { Value::BulkString(b"0".into()) };
        assert_eq!(counted(&mut redis), none, "{kind}");
        redis.ask(cmd("DEL").arg(&key));
        first_request_at(&mut redis, &take, &key, kind, told);
        // The same call once more counts nothing.
        first_request_at(&mut redis, &take, &key, kind, told);
        assert_eq!(counted(&mut redis), Value::BulkString(b"1".into()), "{kind}");
        let boot = redis.ask(cmd("HEXISTS").arg(&key).arg(&Boot(BOOT).text()[..]));
        assert_eq!(number(&boot), 1, "{kind} has the boot by its eleven characters");
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
