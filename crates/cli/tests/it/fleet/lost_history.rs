//! Redis forgets: acknowledged writes are lost with a primary, everything is wiped again and again, single records vanish.
//! What nodes still know is told before anything is granted.

use std::time::Duration;

use serde_json::json;
use tollkeeper_testkit::RedisSentinel;

use super::{Asked, Fleet, admitted, body, clients, drive, heard, nodes_at, one, times};
use crate::time::{eventually, now, pause};
use crate::world::{LONG_MS, side_by_side};

const LIMIT: u64 = 300;

/// Refused while Redis learns: a share of what is not known yet would be guessed.
fn asked(identifier: &str) -> Asked {
    let mut body = body(identifier, LIMIT, LONG_MS, "fixed_window");
    body["onOutage"] = json!("deny");
    Asked { body, cost: 1 }
}

#[test]
fn a_failover_that_loses_acknowledged_writes_passes_no_limit() {
    let mut redis = RedisSentinel::start().expect("a Redis with sentinels");
    let nodes = nodes_at(&redis.url(), 2, &[]);
    let mut clients = clients(&nodes);
    let mut spent = (0..100).filter(|_| heard(&mut clients[0], &asked("lost")).admitted).count();
    // From here on no replica hears of anything.
    let primary = &redis.servers[0];
    primary.ask(&["ACL", "SETUSER", "default", "-psync", "-sync", "-replconf"]);
    primary.ask(&["CLIENT", "KILL", "TYPE", "replica"]);
    primary.ask_until(&["INFO", "replication"], "connected_slaves:0").expect("nobody follows");
    spent += (0..150).filter(|_| heard(&mut clients[0], &asked("lost")).admitted).count();
    assert_eq!(spent, 250);
    redis.servers[0].kill();
    // The other node has no history of its own, and is the first to ask.
    let mut after = 0;
    eventually("the new primary is found", || {
        let seen = one(&mut clients[1], &asked("lost"));
        after += u64::from(seen.admitted);
        seen.admitted && !seen.degraded
    });
    after += admitted(&drive(&nodes, 2, Duration::from_millis(800), 400, |_| asked("lost")));
    assert!(spent as u64 + after <= LIMIT, "{spent} + {after} of {LIMIT}");
}

#[test]
fn a_redis_that_comes_back_with_an_older_copy_of_itself_passes_no_limit() {
    let mut fleet = Fleet::of(2);
    let mut clients = fleet.clients();
    let spend = |client: &mut crate::world::Client, times: u64| {
        (0..times).filter(|_| heard(client, &asked("older")).admitted).count() as u64
    };
    let mut spent = spend(&mut clients[0], 100);
    fleet.redis.ask(&["SAVE"]);
    spent += spend(&mut clients[0], 150);
    assert_eq!(spent, 250);
    fleet.redis.kill();
    fleet.redis.again().expect("it starts again");
    let begun = now();
    while begun.elapsed() < Duration::from_secs(3) {
        spent += u64::from(one(&mut clients[1], &asked("older")).admitted);
        pause(Duration::from_millis(5));
    }
    spent += admitted(&drive(&fleet.nodes, 2, Duration::from_millis(500), 400, |_| asked("older")));
    assert!(spent <= LIMIT, "{spent} of {LIMIT}");
    assert!(spent > 250, "and what is left can be had");
}

/// Nodes try to connect less and less often while it is away. Whoever comes last must still be in time to tell what it spent.
#[test]
fn a_redis_that_comes_back_empty_after_seconds_is_told_by_all_nodes_before_it_lends() {
    let mut fleet = Fleet::of(5);
    let mut clients = fleet.clients();
    let mut spent = 0;
    for client in &mut clients[..4] {
        spent += (0..60).filter(|_| heard(client, &asked("empty")).admitted).count() as u64;
    }
    assert_eq!(spent, 240);
    fleet.redis.kill();
    pause(Duration::from_secs(5));
    fleet.redis.again().expect("it starts again");
    let begun = now();
    while begun.elapsed() < Duration::from_secs(3) {
        spent += u64::from(one(&mut clients[4], &asked("empty")).admitted);
        pause(Duration::from_millis(5));
    }
    assert!(spent <= LIMIT, "{spent} of {LIMIT}");
    assert!(spent > 240, "and what is left can be had");
}

#[test]
fn a_redis_that_is_wiped_again_and_again_under_load_passes_no_limit() {
    let fleet = Fleet::of(3);
    let wipes = times("FLEET_WIPES", 5);
    let how_long = Duration::from_millis(1_250 * wipes);
    let seen = side_by_side(2, |thread| {
        if thread == 0 {
            return drive(&fleet.nodes, 3, how_long, 300, |n| asked(&format!("wiped {}", n % 2)));
        }
        // Sometimes before it has learnt what it was told of the wipe before.
        for round in 0..wipes {
            pause(Duration::from_millis(300 + 313 * (round % 5)));
            fleet.redis.flushall();
        }
        Vec::new()
    });
    let mut got = admitted(&seen[0]);
    let mut clients = fleet.clients();
    eventually("there is no more to be had", || {
        let of = |n: usize| one(&mut clients[n % 3], &asked(&format!("wiped {}", n % 2)));
        let more: Vec<_> = (0..60).map(of).collect();
        got += admitted(&more);
        admitted(&more) == 0 && more.iter().all(|seen| !seen.degraded)
    });
    assert!(got <= 2 * LIMIT, "{got} of two limits of {LIMIT}");
    assert!(got >= LIMIT, "and what is left can be had: {got}");
}

/// What it was told after the first loss is lost with the second.
#[test]
fn a_redis_that_is_wiped_while_it_learns_is_told_once_more() {
    let fleet = Fleet::of(2);
    let mut clients = fleet.clients();
    for gap_ms in [300, 600, 950] {
        let asked = asked(&format!("twice {gap_ms}"));
        let spent = (0..250).filter(|_| heard(&mut clients[0], &asked).admitted).count() as u64;
        assert_eq!(spent, 250);
        fleet.redis.flushall();
        pause(Duration::from_millis(gap_ms));
        fleet.redis.flushall();
        // The other node has no history of its own, and is the only one to ask.
        let (begun, mut more) = (now(), 0);
        while begun.elapsed() < Duration::from_millis(2_500) {
            more += u64::from(one(&mut clients[1], &asked).admitted);
            pause(Duration::from_millis(5));
        }
        assert!(spent + more <= LIMIT, "{gap_ms} ms: {spent} + {more} of {LIMIT}");
    }
}

/// Without `noeviction` Redis may drop single records. The first who misses one tells the others, and all of them say again
/// what they spent, so that above the limit is at most what was lent until then.
#[test]
fn a_record_that_vanishes_costs_at_most_what_is_lent_before_its_holders_ask_again() {
    const TIMES: u64 = 3;
    let fleet = Fleet::of(2);
    let seen = side_by_side(2, |thread| {
        if thread == 0 {
            return drive(&fleet.nodes, 4, Duration::from_secs(3), 400, |_| asked("evicted"));
        }
        for _ in 0..TIMES {
            pause(Duration::from_millis(300));
            vanish(&fleet, "evicted");
        }
        Vec::new()
    });
    let got = admitted(&seen[0]);
    // Two nodes are lent a quarter each of what the record seems to have free. All of that is seldom spent in the moment
    // that passes until it is known better.
    assert!(got <= LIMIT + TIMES * LIMIT / 8, "{got} of {LIMIT}");
}

/// Most of what was spent is known to nodes that nobody asks any more.
#[test]
fn a_record_that_vanishes_is_told_again_by_nodes_that_are_idle() {
    let fleet = Fleet::of(4);
    let mut clients = fleet.clients();
    eventually("each knows of the others", || {
        clients.iter_mut().all(|client| client.data("system.status", &json!({}))["peers"] == 3)
    });
    for round in 0..3 {
        let identifier = format!("idle {round}");
        let asked = asked(&identifier);
        let mut got = 0;
        for (client, times) in clients.iter_mut().zip([20, 70, 70, 70]) {
            got += (0..times).filter(|_| heard(client, &asked).admitted).count() as u64;
        }
        assert_eq!(got, 230);
        vanish(&fleet, &format!("idle%20{round}"));
        // One node goes on alone, until it is refused for good.
        let mut refused = 0;
        while refused < 50 {
            let seen = heard(&mut clients[0], &asked);
            got += u64::from(seen.admitted);
            refused = if seen.admitted { 0 } else { refused + 1 };
            pause(Duration::from_millis(5));
        }
        // It was lent an eighth of what seemed free, and what it was refused then it is refused rightly.
        assert!(got <= LIMIT + LIMIT / 4, "{got} of {LIMIT}");
        let keys = fleet.redis.ask(&["KEYS", "rl:*"]);
        let key = keys.lines().find(|key| key.contains(&format!("idle%20{round}")));
        let counted = fleet.redis.ask(&["HGET", key.expect("a record"), "g"]);
        let counted: u64 = counted.parse().expect("a count");
        assert!(counted >= LIMIT.min(got), "{counted} is known of {got}");
    }
}

/// Of all that Redis holds, one record is gone.
fn vanish(fleet: &Fleet, written: &str) {
    let keys = fleet.redis.ask(&["KEYS", "rl:*"]);
    if let Some(key) = keys.lines().find(|key| key.contains(written)) {
        fleet.redis.ask(&["DEL", key]);
    }
}
