//! Redis gone, hung, wiped, full: no request fails, every limit does what its policy says, and all is exact again soon.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Asked, Fleet, admitted, body, drive, heard, nodes_at, one};
use crate::time::{eventually, now, pause};
use crate::world::{Client, LONG_MS, side_by_side, start};

fn ask(client: &mut Client, identifier: &str, on_outage: &str) -> Value {
    let mut body = body(identifier, 30, LONG_MS, "fixed_window");
    body["onOutage"] = json!(on_outage);
    client.limit(&body)
}

#[test]
fn while_redis_is_gone_each_limit_does_what_its_policy_says_and_nothing_fails() {
    let mut fleet = Fleet::of(3);
    let mut clients = fleet.clients();
    // Each has heard of the others by then.
    pause(Duration::from_millis(1_200));
    fleet.redis.kill();
    eventually("every node knows that Redis is away", || {
        clients.iter_mut().all(|client| ask(client, "allowed", "allow")["success"] == true)
    });
    for client in &mut clients {
        let data = ask(client, "allowed", "allow");
        assert_eq!((&data["success"], &data["degraded"]), (&json!(true), &json!(true)), "{data}");
        let data = ask(client, "denied", "deny");
        assert_eq!((&data["success"], &data["degraded"]), (&json!(false), &json!(true)), "{data}");
    }
    let shared = drive(&fleet.nodes, 3, Duration::from_millis(600), 600, |_| Asked {
        body: body("shared", 30, LONG_MS, "fixed_window"),
        cost: 1,
    });
    assert!(shared.iter().all(|one| one.degraded));
    let got = admitted(&shared);
    assert!((3..=30).contains(&got), "a third for each of three: {got}");

    fleet.redis.again().expect("it starts again");
    let back = now();
    eventually("limits are exact again", || {
        clients.iter_mut().all(|client| ask(client, "later", "deny").get("degraded").is_none())
    });
    let took = back.elapsed();
    assert!(took < Duration::from_secs(5), "exact again after {took:?}");
    // What was admitted without it counts.
    let more = drive(&fleet.nodes, 3, Duration::from_millis(400), 600, |_| Asked {
        body: body("shared", 30, LONG_MS, "fixed_window"),
        cost: 1,
    });
    assert!(got + admitted(&more) <= 30, "{got} + {}", admitted(&more));
}

#[test]
fn nodes_that_start_without_redis_share_a_limit_as_they_did_before() {
    const LIMIT: u64 = 30;
    let mut fleet = Fleet::of(3);
    let url = fleet.redis.url();
    eventually("each has kept how many there are", || {
        let kept = |folder: &Path| std::fs::read_to_string(folder.join("nodes"));
        fleet.nodes.iter().all(|(_, folder)| kept(folder.path()).is_ok_and(|kept| kept == "3\n"))
    });
    fleet.redis.kill();
    for (node, _) in &mut fleet.nodes {
        node.kill9().expect("it has ended");
    }
    let again = side_by_side(3, |number| {
        let (_, folder) = &fleet.nodes[number];
        start(folder.path(), &[("TOLLKEEPER_REDIS_URL", &url)]).expect("it starts again")
    });
    for ((node, _), again) in fleet.nodes.iter_mut().zip(again) {
        *node = again;
    }
    // One that nobody has told of the others starts beside them.
    let strange = nodes_at(&url, 1, &[]);
    let mut clients = fleet.clients();
    clients.extend(super::clients(&strange));
    eventually("every node knows that Redis is away", || {
        clients.iter_mut().all(|client| ask(client, "allowed", "allow")["success"] == true)
    });
    let asked = || Asked { body: body("shared", LIMIT, LONG_MS, "fixed_window"), cost: 1 };
    let shared = drive(&fleet.nodes, 3, Duration::from_millis(600), 600, |_| asked());
    assert!(shared.iter().all(|one| one.degraded));
    assert_eq!(admitted(&shared), LIMIT, "a third for each of three");
    let strangers = drive(&strange, 1, Duration::from_millis(200), 200, |_| asked());
    assert!(strangers.iter().all(|one| one.degraded));
    assert_eq!(admitted(&strangers), LIMIT, "it knows of nobody else");
    fleet.redis.again().expect("it starts again");
    eventually("limits are exact again", || {
        clients.iter_mut().all(|client| ask(client, "later", "share").get("degraded").is_none())
    });
}

#[test]
fn a_hung_redis_costs_a_moment_and_no_request() {
    let fleet = Fleet::of(2);
    let mut clients = fleet.clients();
    eventually("it is heard", || ask(&mut clients[0], "hung", "share").get("degraded").is_none());
    fleet.redis.pause();
    eventually("the node stops asking", || {
        ask(&mut clients[0], "other", "allow")["success"] == true
    });
    let begun = now();
    for number in 0..100 {
        let data = ask(&mut clients[0], &format!("id{number}"), "allow");
        assert_eq!(data["success"], true, "{data}");
    }
    let each = begun.elapsed() / 100;
    assert!(each < Duration::from_millis(10), "{each:?} for a request while Redis hangs");
    fleet.redis.resume();
    eventually("it is heard again", || {
        ask(&mut clients[0], "hung", "share").get("degraded").is_none()
    });
}

#[test]
fn a_wiped_redis_forgets_nothing_that_a_node_still_knows() {
    const LIMIT: u64 = 60;
    let fleet = Fleet::of(2);
    let mut clients = fleet.clients();
    let asked = |policy| {
        let mut body = body("wiped", LIMIT, LONG_MS, "fixed_window");
        body["onOutage"] = json!(policy);
        Asked { body, cost: 1 }
    };
    let before = (0..50).filter(|_| heard(&mut clients[0], &asked("deny")).admitted).count() as u64;
    assert_eq!(before, 50);
    fleet.redis.flushall();
    // The other node has no history of its own, and is the first to ask.
    let begun = now();
    let mut after = 0;
    while begun.elapsed() < Duration::from_secs(4) {
        after += u64::from(one(&mut clients[1], &asked("deny")).admitted);
        pause(Duration::from_millis(5));
    }
    assert!(before + after <= LIMIT, "{before} + {after} of {LIMIT}");
    assert!(after >= 1, "and what is left can be had");
}

#[test]
fn a_full_redis_is_an_outage_and_not_an_error() {
    let fleet = Fleet::of(1);
    let mut clients = fleet.clients();
    let (memory, full) = (["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"]);
    fleet.redis.ask(&memory);
    eventually("the policy takes over", || {
        ask(&mut clients[0], "full", "allow")["success"] == true
    });
    eventually("why is said", || {
        let said = fleet.nodes[0].0.stderr();
        said.contains("no limit can be counted: Redis refused: it is out of memory")
    });
    fleet.redis.ask(&full);
    eventually("room again", || ask(&mut clients[0], "roomy", "deny").get("degraded").is_none());
}

#[test]
fn a_key_whose_limit_says_deny_is_unavailable_while_redis_is_gone() {
    let mut fleet = Fleet::of(1);
    let mut client = fleet.clients().remove(0);
    let api = client.data("apis.createApi", &json!({"name": "api"}));
    let limit = json!({"name": "calls", "limit": 10, "duration": 60_000, "autoApply": true, "onOutage": "deny"});
    let made =
        client.data("keys.createKey", &json!({"apiId": api["apiId"], "ratelimits": [limit]}));
    let verify = |client: &mut Client| {
        let data = client.data("keys.verifyKey", &json!({"key": made["key"]}));
        data["code"].as_str().expect("a code").to_owned()
    };
    eventually("it is heard", || verify(&mut client) == "VALID");
    fleet.redis.kill();
    // What is in hand may be spent first.
    eventually("the policy speaks", || verify(&mut client) == "UNAVAILABLE");
    fleet.redis.again().expect("it starts again");
    eventually("it is back", || verify(&mut client) == "VALID");
}
