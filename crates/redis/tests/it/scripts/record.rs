//! What `take.lua` leaves in Redis, by the server's own clock: how large it is and how long it stays.

use redis::cmd;

use super::fake_time::{Digest, FakeTime, number};
use super::{RESET, RUN, TAKE};

const EPOCH_KEY: &str = "tk:ep:{512}";

/// 200 bytes: at a million identifiers a window, 200 MB.
const BYTES_MAX: i64 = 200;

fn first_request(redis: &mut FakeTime, take: &Digest, key: &str, kind: &str) {
    redis.ask(cmd("SET").arg(EPOCH_KEY).arg(format!("{RUN}|1")));
    let mut call = take.call(&[key, EPOCH_KEY]);
    call.arg(kind).arg("9Zk3_aQp0-x");
    for number in [1, 0, 0, 0, 0, 0, 1, 1, 0, 3, 100, 60_000, 100] {
        call.arg(number);
    }
    redis.ask(call.arg("print"));
}

fn key(kind: &str) -> String {
    format!("rl:{{512}}:default/payments/60000:user_12345678:{kind}")
}

#[test]
fn the_record_of_one_request_takes_at_most_200_bytes() {
    let mut redis = FakeTime::start();
    let take = redis.load(TAKE);
    for kind in ["sw", "tb", "sl"] {
        let key = key(kind);
        first_request(&mut redis, &take, &key, kind);
        let bytes = number(&redis.ask(cmd("MEMORY").arg("USAGE").arg(&key)));
        assert!(bytes <= BYTES_MAX, "{kind} takes {bytes} bytes");
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
