//! Redis refused, slow or hung: what a request pays while nobody knows it yet and once the breaker is open, and that
//! nothing is left behind.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use tollkeeper_testkit::{Fault, FaultProxy, RedisServer};

use super::{Asked, Fleet, PATIENT, body, clients, drive, nodes_at};
use crate::time::{eventually, now, pause};
use crate::world::{Client, LONG_MS, side_by_side};

/// What one wait for Redis takes: whoever is decided sooner has not waited for it.
const ONE_WAIT: Duration = Duration::from_millis(5);

fn ask(client: &mut Client, identifier: &str, on_outage: &str) -> Value {
    let mut body = body(identifier, 30, LONG_MS, "fixed_window");
    body["onOutage"] = json!(on_outage);
    client.limit(&body)
}

fn is_heard(data: &Value) -> bool {
    data.get("degraded").is_none()
}

fn is_exact(client: &mut Client) -> bool {
    is_heard(&ask(client, "exact again", "deny"))
}

/// How long each of so many new identifiers took, the shortest first. None of them fails.
fn paid(client: &mut Client, prefix: &str, times: usize) -> Vec<Duration> {
    let mut all: Vec<Duration> = (0..times)
        .map(|number| {
            let began = now();
            let data = ask(client, &format!("{prefix} {number}"), "allow");
            assert!(data["success"].is_boolean(), "{data}");
            began.elapsed()
        })
        .collect();
    all.sort_unstable();
    all
}

/// Scripts that Redis ran so far.
fn scripts(fleet: &Fleet) -> u64 {
    let stats = fleet.redis.ask(&["INFO", "commandstats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    let calls = line.and_then(|line| line.split(',').next()).expect("Redis counts its commands");
    calls.parse().expect("a number")
}

#[test]
fn a_redis_that_comes_back_is_told_of_many_cells_once_and_not_over_and_over() {
    const CELLS: usize = 6_000;
    const THREADS: usize = 6;
    /// What two idle nodes ask by themselves, and what a busy machine may leave over from before.
    const IDLE_PER_SECOND: u64 = 200;
    let fleet = Fleet::of(2);
    side_by_side(THREADS, |thread| {
        let mut client = fleet.clients().remove(thread % 2);
        for number in (thread..CELLS).step_by(THREADS) {
            ask(&mut client, &format!("cell {number}"), "share");
        }
    });
    for wiped in [false, true] {
        if wiped {
            fleet.redis.flushall();
        } else {
            fleet.redis.pause();
            pause(Duration::from_millis(1_200));
            fleet.redis.resume();
        }
        let mut clients = fleet.clients();
        let began = scripts(&fleet);
        eventually("limits are exact again on both", || clients.iter_mut().all(is_exact));
        eventually("Redis is let alone", || {
            let before = scripts(&fleet);
            pause(Duration::from_secs(1));
            scripts(&fleet) - before <= IDLE_PER_SECOND
        });
        let told = scripts(&fleet) - began;
        assert!(told <= 3 * CELLS as u64, "{told} calls for {CELLS} cells, wiped: {wiped}");
    }
}

#[test]
fn a_redis_that_refuses_costs_the_first_requests_a_moment_and_the_others_nothing() {
    let mut fleet = Fleet::of(1);
    let mut client = fleet.clients().remove(0);
    eventually("it is heard", || is_exact(&mut client));
    fleet.redis.kill();
    let began = now();
    let mut unheard = 0;
    eventually("the policy takes over", || {
        let data = ask(&mut client, &format!("first {unheard}"), "allow");
        unheard += u64::from(data["success"] == false);
        data["success"] == true
    });
    // A quarter of a second without a connection is enough; the rest is for a busy machine.
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let during = paid(&mut client, "during", 300);
    assert!(during[150] < ONE_WAIT, "half of them took longer than {:?}", during[150]);
    fleet.redis.again().expect("it starts again");
    let back = now();
    eventually("limits are exact again", || is_exact(&mut client));
    // Two seconds is the promise, of which one is for learning; a loaded machine gets as much again.
    assert!(back.elapsed() < Duration::from_secs(4), "{:?}", back.elapsed());
}

#[test]
fn a_redis_that_answers_too_late_is_an_outage_and_makes_no_queue() {
    let redis = RedisServer::start().expect("a Redis");
    let proxy = FaultProxy::start(redis.port()).expect("a proxy");
    let nodes = nodes_at(&format!("redis://{}", proxy.address()), 1, &[]);
    let mut client = clients(&nodes).remove(0);
    for delay_ms in [50, 150, 500] {
        eventually("it is heard", || is_exact(&mut client));
        proxy.set(Fault::DelayReplies(Duration::from_millis(delay_ms)));
        let mut number = 0;
        eventually("the policy takes over", || {
            number += 1;
            ask(&mut client, &format!("{delay_ms} {number}"), "allow")["success"] == true
        });
        let during = paid(&mut client, &format!("{delay_ms} late"), 200);
        assert!(during[100] < ONE_WAIT, "{delay_ms} ms: half took longer than {:?}", during[100]);
        proxy.set(Fault::Pass);
    }
    eventually("limits are exact again", || is_exact(&mut client));
}

#[test]
fn a_redis_that_is_far_away_is_heard_by_nodes_that_are_told_to_wait_for_it() {
    const FAR: Duration = Duration::from_millis(30);
    let redis = RedisServer::start().expect("a Redis");
    let proxy = FaultProxy::start(redis.port()).expect("a proxy");
    let nodes = nodes_at(&format!("redis://{}", proxy.address()), 1, &[PATIENT]);
    let mut client = clients(&nodes).remove(0);
    // Each in another part of Redis, all of which learn at first.
    eventually("it is heard", || {
        (0..20).all(|n| is_heard(&ask(&mut client, &format!("near {n}"), "deny")))
    });
    proxy.set(Fault::DelayReplies(FAR));
    for number in 0..20 {
        let data = ask(&mut client, &format!("far {number}"), "deny");
        assert!(data["success"] == true && is_heard(&data), "{number}: {data}");
    }
}

#[test]
fn a_redis_that_answers_too_late_is_an_outage_also_where_hardly_anybody_asks() {
    let redis = RedisServer::start().expect("a Redis");
    let proxy = FaultProxy::start(redis.port()).expect("a proxy");
    let nodes = nodes_at(&format!("redis://{}", proxy.address()), 1, &[]);
    let mut client = clients(&nodes).remove(0);
    eventually("it is heard", || is_exact(&mut client));
    proxy.set(Fault::DelayReplies(Duration::from_millis(50)));
    let admitted = (0..12).filter(|number| {
        pause(Duration::from_millis(400));
        ask(&mut client, &format!("rare {number}"), "allow")["success"] == true
    });
    assert!(admitted.count() >= 3, "whoever asks twice a second is refused for ever");
    proxy.set(Fault::Pass);
    eventually("limits are exact again", || is_exact(&mut client));
}

#[test]
fn a_redis_that_hung_leaves_neither_connections_nor_waiting_requests_behind() {
    let fleet = Fleet::of(2);
    let mut clients = fleet.clients();
    let asked = |number: u64| Asked {
        body: body(&format!("hung {}", number % 50), 30, LONG_MS, "sliding_window"),
        cost: 1,
    };
    drive(&fleet.nodes, 4, Duration::from_millis(300), 400, asked);
    let files = || -> Vec<usize> {
        let of = |pid: u32| fs::read_dir(format!("/proc/{pid}/fd")).expect("its files").count();
        fleet.nodes.iter().map(|(node, _)| of(node.pid())).collect()
    };
    let connections = || fleet.redis.ask(&["CLIENT", "LIST"]).lines().count();
    let (before, open) = (connections(), files());
    for _ in 0..2 {
        fleet.redis.pause();
        // Nobody waits for ever: all are answered, and none with an error.
        drive(&fleet.nodes, 4, Duration::from_millis(1_500), 400, asked);
        fleet.redis.resume();
        eventually("limits are exact again", || clients.iter_mut().all(is_exact));
    }
    eventually("what it took is closed", || {
        connections() <= before && files().iter().zip(&open).all(|(now, then)| now <= then)
    });
}
