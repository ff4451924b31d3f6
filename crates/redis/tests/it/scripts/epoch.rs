//! `epoch.lua`: a tag learns once per life of a server process.

use redis::{Value, cmd};

use super::fake_time::{FakeTime, numbers};
use super::{EPOCH, RUN};

const KEY: &str = "tk:ep:{1}";
const NOW: i64 = 1_700_000_000_000;

#[test]
fn a_tag_without_an_epoch_or_with_that_of_another_process_learns_for_a_second() {
    let mut redis = FakeTime::start();
    let epoch = redis.load_timed(EPOCH);
    for strange in [None, Some("another|99999999999999"), Some("broken"), Some("|5"), Some("")] {
        match strange {
            Some(text) => redis.ask(cmd("SET").arg(KEY).arg(text)),
            None => redis.ask(cmd("DEL").arg(KEY)),
        };
        let answer = redis.ask(&epoch.call_at(&[KEY], NOW));
        assert_eq!(numbers(&answer), [NOW, NOW + 1_000], "{strange:?}");
        let kept = redis.ask(cmd("GET").arg(KEY));
        assert_eq!(kept, Value::BulkString(format!("{RUN}|{}", NOW + 1_000).into_bytes()));
    }
}

#[test]
fn an_epoch_of_this_process_stays_as_it_is_and_lives_on() {
    let mut redis = FakeTime::start();
    let epoch = redis.load_timed(EPOCH);
    redis.ask(&epoch.call_at(&[KEY], NOW));
    redis.ask(cmd("PEXPIRE").arg(KEY).arg(60_000));
    for later in [1, 999, 1_000, 86_400_000] {
        let answer = redis.ask(&epoch.call_at(&[KEY], NOW + later));
        assert_eq!(numbers(&answer), [NOW + later, NOW + 1_000]);
    }
    let Value::Int(left) = redis.ask(cmd("PTTL").arg(KEY)) else { panic!("no time to live") };
    assert!((604_700_000..=604_800_000).contains(&left), "{left}");
}

#[test]
fn a_clock_that_steps_back_makes_a_tag_learn_for_a_second_and_not_until_it_has_caught_up() {
    let mut redis = FakeTime::start();
    let epoch = redis.load_timed(EPOCH);
    redis.ask(&epoch.call_at(&[KEY], NOW));
    for back in [1, 3_600_000] {
        let answer = redis.ask(&epoch.call_at(&[KEY], NOW - back));
        assert_eq!(numbers(&answer), [NOW - back, NOW - back + 1_000]);
    }
}

#[test]
fn an_epoch_that_did_not_learn_for_a_second_since_another_was_heard_begins_anew_once() {
    let mut redis = FakeTime::start();
    let epoch = redis.load_timed(EPOCH);
    let mut answer_at = |now: i64, heard: Option<i64>| {
        let mut call = epoch.call_at(&[KEY], now);
        if let Some(heard) = heard {
            call.arg(heard);
        }
        numbers(&redis.ask(&call))
    };
    assert_eq!(answer_at(NOW, None), [NOW, NOW + 1_000]);
    // It was learning for the whole of the second behind that.
    assert_eq!(answer_at(NOW + 5_000, Some(NOW - 1)), [NOW + 5_000, NOW + 1_000]);
    // Not here: the last of the other may have come when this one was through.
    assert_eq!(answer_at(NOW + 5_000, Some(NOW)), [NOW + 5_000, NOW + 6_000]);
    for (later, heard) in [(5_010, 4_000), (5_020, 4_999), (7_000, 4_999)] {
        assert_eq!(answer_at(NOW + later, Some(NOW + heard)), [NOW + later, NOW + 6_000]);
    }
    // While it learns too, if somebody was with the other until now.
    assert_eq!(answer_at(NOW + 5_400, Some(NOW + 5_300)), [NOW + 5_400, NOW + 6_400]);
    assert_eq!(answer_at(NOW + 9_000, None), [NOW + 9_000, NOW + 6_400]);
}

#[test]
fn the_time_is_that_of_the_server() {
    let mut redis = FakeTime::start();
    let epoch = redis.load(EPOCH);
    let answer = numbers(&redis.ask(&epoch.call(&[KEY])));
    let Value::Array(time) = redis.ask(&cmd("TIME")) else { panic!("no time") };
    let Value::BulkString(seconds) = &time[0] else { panic!("no seconds") };
    let seconds: i64 = String::from_utf8_lossy(seconds).parse().unwrap();
    assert!((0..=10).contains(&(seconds - answer[0] / 1_000)), "{answer:?} at {seconds}");
    assert_eq!(answer[1], answer[0] + 1_000);
}
