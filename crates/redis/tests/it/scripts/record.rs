//! What `take.lua` leaves in Redis, by the server's own clock: how large it is and how long it stays.

use redis::{Cmd, Value, cmd};
use tollkeeper_core::Boot;

use super::fake_time::{Digest, FakeTime, number};
use super::{RESET, RUN, TAKE};

const EPOCH_KEY: &str = "tk:ep:{512}";
const BOOT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Of a record that one call made: at a million identifiers a window, so many megabytes.
const BYTES_MAX: [(&str, i64); 4] = [("fw", 120), ("sw", 120), ("sl", 120), ("tb", 136)];

fn first_request(redis: &mut FakeTime, take: &Digest, key: &str, kind: &str) {
    request(redis, take.call(&[key, EPOCH_KEY]), kind, BOOT);
}

/// Of a boot that has nothing to tell.
fn request(redis: &mut FakeTime, mut call: Cmd, kind: &str, boot: u64) {
    redis.ask(cmd("SET").arg(EPOCH_KEY).arg(format!("{RUN}|1")));
    let start = if kind == "fw" { now(redis) / 60_000 * 60_000 } else { 0 };
    call.arg(kind).arg(&boot.to_be_bytes()[..]);
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

/// As a request asks that finds no room in its node's table, and one that never waits.
#[test]
fn who_asks_for_nothing_beside_its_need_leaves_as_little() {
    let mut redis = FakeTime::start();
    let take = redis.load(TAKE);
    let key = key("sw");
    redis.ask(cmd("SET").arg(EPOCH_KEY).arg(format!("{RUN}|1")));
    let mut call = take.call(&[&key, EPOCH_KEY]);
    call.arg("sw").arg(&BOOT.to_be_bytes()[..]).arg(&[1, 0, 1, 100, 60_000]).arg("print");
    redis.ask(call.arg(&[3, 0, 0]));
    assert_eq!(redis.ask(cmd("TYPE").arg(&key)), Value::SimpleString("string".into()));
}

#[test]
fn the_second_request_finds_what_the_first_one_left_and_so_does_a_reset() {
    let mut redis = FakeTime::start();
    let (take, reset) = (redis.load_expiring(TAKE), redis.load_ending(RESET));
    // Both in one millisecond: a part of the bucket's one unit would have flowed back in the next.
    let again = |key: &str| take.call_at(&[key, EPOCH_KEY], 1_700_000_000_000_123_u64);
    for (kind, count) in [("sw", "g"), ("tb", "m"), ("sl", "l1700000000001000")] {
        let key = key(kind);
        let counted = |redis: &mut FakeTime| redis.ask(cmd("HGET").arg(&key).arg(count));
        request(&mut redis, again(&key), kind, BOOT);
        assert_eq!(redis.ask(cmd("TYPE").arg(&key)), Value::SimpleString("string".into()));
        redis.ask(&reset.call(&[&key]));
        let none = if kind == "sl" { Value::Nil } else { Value::BulkString(b"0".into()) };
        assert_eq!(counted(&mut redis), none, "{kind}");
        redis.ask(cmd("DEL").arg(&key));
        request(&mut redis, again(&key), kind, BOOT);
        // The same call once more counts nothing.
        request(&mut redis, again(&key), kind, BOOT);
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

#[test]
fn what_another_version_left_counts_as_not_there() {
    let mut redis = FakeTime::start();
    let (take, reset) = (redis.load(TAKE), redis.load(RESET));
    let twelve = "\0\0\0\0\0\0\0\x01\0\0\0\x01";
    let strange = ["", "x", "9Zk3_aQp0-x65789abc;1,5", "9Zk3_aQp0-x65789abcd,1,5a,100", twelve];
    for (kind, text) in
        ["sw", "tb", "sl"].into_iter().flat_map(|kind| strange.map(|text| (kind, text)))
    {
        let key = key(kind);
        // As the last is written, but for how long it is to stay: that is its moment too.
        redis.ask(cmd("SET").arg(&key).arg(text));
        first_request(&mut redis, &take, &key, kind);
        let seen = redis.ask(cmd("HGET").arg(&key).arg(&Boot(BOOT).text()[..]));
        assert!(matches!(seen, Value::BulkString(_)), "{kind} {text:?}: {seen:?}");
        assert_eq!(number(&redis.ask(cmd("HEXISTS").arg(&key).arg("00000000001"))), 0);
        assert!(number(&redis.ask(cmd("PTTL").arg(&key))) > 0, "{kind} {text:?} ends");
        redis.ask(cmd("SET").arg(&key).arg(text));
        assert_eq!(number(&redis.ask(&reset.call(&[&key]))), 0, "{kind} {text:?}");
        assert_eq!(number(&redis.ask(cmd("EXISTS").arg(&key))), 0, "{kind} {text:?}");
    }
}

#[test]
fn a_folded_record_that_moves_to_another_server_is_of_the_same_window_and_moment() {
    let (mut from, mut to) = (FakeTime::start(), FakeTime::start());
    let (take, again) = (from.load(TAKE), to.load(TAKE));
    for kind in ["sw", "sl"] {
        let key = key(kind);
        let before = now(&mut from);
        first_request(&mut from, &take, &key, kind);
        let mut migrate = cmd("MIGRATE");
        migrate.arg("127.0.0.1").arg(to.port()).arg(&key).arg(0).arg(5_000);
        from.ask(&migrate);
        request(&mut to, again.call(&[&key, EPOCH_KEY]), kind, BOOT + 1);
        let Value::Array(fields) = to.ask(cmd("HKEYS").arg(&key)) else { panic!("no record") };
        let names: Vec<_> = fields.iter().map(text).collect();
        if kind == "sl" {
            let moments =
                names.iter().filter_map(|name| name.strip_prefix('l')?.parse::<u64>().ok());
            assert!(moments.clone().count() > 0, "{names:?}");
            let known = before * 1_000..(before + 10_000) * 1_000;
            assert!(moments.clone().all(|at| known.contains(&at)), "{names:?}");
        } else {
            let window = text(&to.ask(cmd("HGET").arg(&key).arg("w"))).parse::<u64>().unwrap();
            let known = [before / 60_000 * 60_000, (before + 10_000) / 60_000 * 60_000];
            assert!(known.contains(&window), "{window} after {before}");
        }
        assert_eq!(names.iter().filter(|name| name.len() == 11).count(), 2, "{names:?}");
    }
}

fn text(value: &Value) -> String {
    let Value::BulkString(bytes) = value else { panic!("{value:?} is no text") };
    String::from_utf8_lossy(bytes).into_owned()
}

/// As records of logs were written before they counted microseconds.
#[test]
fn units_of_a_log_that_are_written_by_the_millisecond_still_count() {
    let mut redis = FakeTime::start();
    let take = redis.load(TAKE);
    let (key, at) = (key("sl"), now(&mut redis));
    redis.ask(cmd("SET").arg(EPOCH_KEY).arg(format!("{RUN}|1")));
    redis.ask(cmd("HSET").arg(&key).arg("w").arg(0).arg(format!("l{at}")).arg(100));
    request(&mut redis, take.call(&[&key, EPOCH_KEY]), "sl", BOOT);
    let Value::Array(fields) = redis.ask(cmd("HGETALL").arg(&key)) else { panic!("no record") };
    let fields: Vec<_> = fields.iter().map(text).collect();
    let units = fields.iter().position(|name| *name == format!("l{at}000")).map(|at| at + 1);
    assert_eq!(units.map(|at| fields[at].as_str()), Some("100"), "{fields:?}");
    assert!(!fields.contains(&format!("l{at}")), "{fields:?}");
}
