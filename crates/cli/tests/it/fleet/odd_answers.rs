//! A Redis that forgets its scripts, throws its clients out, or sits behind a proxy that mixes answers up: no request fails, no
//! limit is passed, and nobody hears what was meant for another.

use std::time::Duration;

use serde_json::json;
use tollkeeper_testkit::{Fault, FaultProxy, RedisServer};

use super::{
    Asked, Fleet, PATIENT, Seen, admitted, body, by_window, clients, drive, nodes_at, one,
};
use crate::time::{eventually, now, pause};
use crate::world::{LONG_MS, side_by_side};

fn asked(identifier: &str, limit: u64) -> Asked {
    let mut body = body(identifier, limit, LONG_MS, "fixed_window");
    body["onOutage"] = json!("deny");
    Asked { body, cost: 1 }
}

#[test]
fn a_redis_that_forgets_its_scripts_again_and_again_fails_no_request_and_passes_no_limit() {
    const LIMIT: u64 = 200;
    let fleet = Fleet::with(2, &[PATIENT]);
    let seen = side_by_side(2, |thread| {
        if thread == 0 {
            return drive(&fleet.nodes, 4, Duration::from_secs(3), 400, |_| asked("script", LIMIT));
        }
        let begun = now();
        while begun.elapsed() < Duration::from_millis(2_500) {
            fleet.redis.ask(&["SCRIPT", "FLUSH"]);
            pause(Duration::from_millis(100));
        }
        Vec::new()
    });
    let mut got = admitted(&seen[0]);
    let mut clients = fleet.clients();
    eventually("all of the limit can be had", || {
        let seen: Vec<Seen> =
            (0..20).map(|n| one(&mut clients[n % 2], &asked("script", LIMIT))).collect();
        got += admitted(&seen);
        admitted(&seen) == 0 && seen.iter().all(|one| !one.degraded)
    });
    assert_eq!(got, LIMIT);
}

#[test]
fn a_user_whose_rights_are_taken_away_is_an_outage_until_they_are_given_back() {
    let redis = RedisServer::start().expect("a Redis");
    let rights = ["ACL", "SETUSER", "tk", "on", ">right", "~*", "&*", "+@all"];
    assert_eq!(redis.ask(&rights), "OK");
    let nodes = nodes_at(&format!("redis://tk:right@{}", redis.address()), 1, &[]);
    let mut client = clients(&nodes).remove(0);
    let mut allowed = asked("revoked", 10_000);
    allowed.body["onOutage"] = json!("allow");
    eventually("it is heard", || !one(&mut client, &allowed).degraded);
    redis.ask(&["ACL", "SETUSER", "tk", "resetpass", ">other"]);
    redis.ask(&["CLIENT", "KILL", "USER", "tk"]);
    eventually("the policy takes over", || {
        let seen = one(&mut client, &allowed);
        seen.admitted && seen.degraded
    });
    // It is asked again and again, but never without a pause: a second of that are a few attempts and not thousands.
    let attempts = || {
        let stats = redis.ask(&["INFO", "stats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
        line.and_then(|line| line.trim().parse::<u64>().ok()).expect("a count")
    };
    let before = attempts();
    pause(Duration::from_secs(2));
    let tried = attempts() - before;
    assert!(tried < 100, "{tried} attempts in two seconds");
    let said = nodes[0].0.stderr();
    assert!(said.contains("WRONGPASS"), "{said}");
    assert!(!said.contains("right"), "{said}");
    assert_eq!(redis.ask(&["ACL", "SETUSER", "tk", ">right"]), "OK");
    eventually("it is heard again", || !one(&mut client, &allowed).degraded);
}

#[test]
fn answers_that_went_to_the_wrong_call_are_never_used() {
    const LIMIT: u64 = 100;
    let redis = RedisServer::start().expect("a Redis");
    let proxy = FaultProxy::start(redis.port()).expect("a proxy");
    let nodes = nodes_at(&format!("redis://{}", proxy.address()), 2, &[]);
    let mut clients = clients(&nodes);
    let mut all_are_well = || {
        for client in &mut clients {
            eventually("all is well", || !one(client, &asked("beside", 100_000)).degraded);
        }
    };
    // One limit is narrow and used up, the others are wide: an answer about one of those would let everything pass. Each wide
    // one is new, so that every one of them costs a call and there are always other calls whose answer can be taken.
    let drive = |round: u64| {
        drive(&nodes, 16, Duration::from_secs(2), 1_200, |n| {
            let mut asked = if n % 4 == 0 {
                Asked { body: body("narrow", LIMIT, 1_000, "fixed_window"), cost: 1 }
            } else {
                let wide = format!("wide {round} {n}");
                Asked { body: body(&wide, 1_000_000, 1_000, "fixed_window"), cost: 2 }
            };
            asked.body["onOutage"] = json!("deny");
            asked
        })
    };
    // A node whose connection broke before anything was mixed up has to come back to be tried again.
    let mut round = 0;
    eventually("answers were mixed up", || {
        round += 1;
        proxy.set(Fault::Pass);
        all_are_well();
        proxy.set(Fault::SkipReplies { seed: round, per_mille: 20 });
        let narrow: Vec<Seen> = drive(round).into_iter().filter(|one| one.cost == 1).collect();
        let windows = by_window(&narrow);
        assert!(windows.values().all(|got| *got <= LIMIT), "{windows:?}");
        let said: String = nodes.iter().map(|(node, _)| node.stderr()).collect();
        said.contains("an answer to another call")
    });
    proxy.set(Fault::Pass);
    all_are_well();
}
