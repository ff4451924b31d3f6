//! Some nodes are cut off from Redis, or only from what it says: they go on with what they hold and then with their share,
//! and nothing that Redis heard counts twice.

use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tollkeeper_testkit::{Fault, FaultProxy, RedisServer, Tollkeeper};

use super::{Asked, PATIENT, Tally, admitted, body, clients, drive, heard, one};
use crate::time::{eventually, now, pause};
use crate::world::{Client, LONG_MS, side_by_side, start};

/// Each with its own way to the one Redis.
struct Ways {
    redis: RedisServer,
    proxies: Vec<FaultProxy>,
    nodes: Vec<(Tollkeeper, TempDir)>,
}

// === impl Ways ===

impl Ways {
    fn of(nodes: usize) -> Self {
        Self::with(nodes, &[])
    }

    fn with(nodes: usize, env: &[(&str, &str)]) -> Self {
        let redis = RedisServer::start().expect("a Redis");
        let proxy = |_| FaultProxy::start(redis.port()).expect("a proxy");
        let proxies: Vec<FaultProxy> = (0..nodes).map(proxy).collect();
        let nodes = side_by_side(nodes, |at| {
            let folder = tempfile::tempdir().expect("a folder");
            (node(folder.path(), &proxies[at], env), folder)
        });
        Self { redis, proxies, nodes }
    }
}

fn node(folder: &std::path::Path, proxy: &FaultProxy, env: &[(&str, &str)]) -> Tollkeeper {
    let url = format!("redis://{}", proxy.address());
    let env = [&[("TOLLKEEPER_REDIS_URL", url.as_str())], env].concat();
    start(folder, &env).expect("the node starts")
}

fn asked(identifier: &str, limit: u64) -> Asked {
    Asked { body: body(identifier, limit, LONG_MS, "fixed_window"), cost: 1 }
}

#[test]
fn nodes_that_are_cut_off_admit_their_share_and_no_more() {
    const LIMIT: u64 = 300;
    let ways = Ways::of(3);
    let mut clients = clients(&ways.nodes);
    let asked = asked("cut", LIMIT);
    // Each has heard of the others by then.
    pause(Duration::from_millis(1_200));
    let mut got: u64 =
        clients.iter_mut().map(|client| u64::from(heard(client, &asked).admitted)).sum();
    ways.proxies[2].set(Fault::Cut);
    let mut alone = 0;
    eventually("the node knows that it is cut off", || {
        let seen = one(&mut clients[2], &asked);
        alone += u64::from(seen.admitted);
        seen.admitted && seen.degraded
    });
    got += alone;
    let seen = drive(&ways.nodes, 6, Duration::from_millis(1_500), 1_500, |_| asked.clone());
    got += admitted(&seen);
    // One of three: what the others can have, and a third of what was left for the one that is alone.
    assert!(got <= LIMIT + LIMIT / 3, "{got} of {LIMIT}");
    assert!(got >= LIMIT, "the others are refused what is theirs: {got}");
    ways.proxies[2].set(Fault::Pass);
    eventually("it is heard again", || !one(&mut clients[2], &asked).degraded);
    let more = drive(&ways.nodes, 3, Duration::from_millis(500), 600, |_| asked.clone());
    assert_eq!(admitted(&more), 0, "what it admitted alone counts");
}

#[test]
fn a_node_killed_after_redis_heard_it_and_before_it_heard_redis_counts_nothing_twice() {
    const LIMIT: u64 = 200;
    let mut ways = Ways::with(2, &[PATIENT]);
    let mut clients = clients(&ways.nodes);
    let asked = asked("killed", LIMIT);
    let mut tally = Tally::default();
    tally.spend(&mut clients[0], &asked, 50);
    ways.proxies[0].set(Fault::DropReplies);
    for _ in 0..20 {
        tally.ask(&mut clients[0], &asked);
    }
    let (mortal, folder) = &mut ways.nodes[0];
    mortal.kill9().expect("it can be killed");
    ways.proxies[0].set(Fault::Pass);
    *mortal = node(folder.path(), &ways.proxies[0], &[PATIENT]);
    clients[0] = Client::new(mortal.url(), mortal.root_key());
    // What the dead one held and had surely not spent comes back, also what it never heard that it was lent; then all that
    // is left can be had. An eighth of its last lease counts as spent, and so does each call whose answer nobody heard.
    let lost = tally.unheard + LIMIT / 8;
    eventually("all that is surely left can be had", || {
        while (0..2).any(|at| tally.ask(&mut clients[at], &asked)) {}
        pause(Duration::from_millis(100));
        tally.got + lost >= LIMIT
    });
    // What was admitted without Redis is no secret of the dead: it is only not known to the living.
    assert!(tally.got <= LIMIT + tally.alone, "{tally:?} of {LIMIT}");
    let keys = ways.redis.ask(&["KEYS", "rl:*"]);
    let key = keys.lines().find(|key| key.contains("killed")).expect("a record");
    let counted: u64 = ways.redis.ask(&["HGET", key, "g"]).parse().expect("a count");
    assert!(counted <= LIMIT, "{counted}");
}

#[test]
fn a_reset_that_the_bus_lost_is_known_once_the_bus_is_back() {
    const LIMIT: u64 = 20;
    let ways = Ways::of(2);
    let mut clients = clients(&ways.nodes);
    let asked = asked("reset", LIMIT);
    eventually("it is used up", || (0..10).all(|n| !heard(&mut clients[n % 2], &asked).admitted));
    let before = ways.redis.ask(&["CLIENT", "LIST", "TYPE", "pubsub"]).lines().count();
    assert_eq!(before, 2, "each node hears the bus");
    // Remembered as refused for seconds from here on.
    pause(Duration::from_secs(5));
    assert!(!heard(&mut clients[1], &asked).admitted);
    // From here on nobody can subscribe, and nobody is.
    ways.redis.ask(&["ACL", "SETUSER", "default", "-subscribe"]);
    ways.redis.ask(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    let of = json!({"namespace": "fleet", "identifier": "reset"});
    let reset = clients[0].data("limits.reset", &of);
    assert!(reset["cells"].as_u64() >= Some(1), "{reset}");
    pause(Duration::from_millis(100));
    ways.redis.ask(&["ACL", "SETUSER", "default", "+subscribe"]);
    let began = now();
    eventually("the other node admits again", || one(&mut clients[1], &asked).admitted);
    // Two seconds is the promise; a refusal is remembered for five.
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

/// Nothing ends and nothing is slow: what one node says does not come to the other, that is all.
#[test]
fn a_reset_that_got_lost_on_a_bus_that_stays_whole_is_known_within_two_seconds() {
    const LIMIT: u64 = 20;
    let ways = Ways::of(2);
    let mut clients = clients(&ways.nodes);
    let asked = asked("reset", LIMIT);
    let hearers = || {
        let list = ways.redis.ask(&["CLIENT", "LIST", "TYPE", "pubsub"]);
        let id = |line: &str| line.split_whitespace().next().map(str::to_owned);
        list.lines().filter_map(id).collect::<Vec<String>>()
    };
    eventually("it is used up", || (0..10).all(|n| !heard(&mut clients[n % 2], &asked).admitted));
    let before = hearers();
    assert_eq!(before.len(), 2, "each node hears the bus");
    // Remembered as refused for five seconds from here on.
    pause(Duration::from_secs(5));
    assert!(!heard(&mut clients[1], &asked).admitted);
    ways.proxies[1].set(Fault::SwallowMessages);
    let of = json!({"namespace": "fleet", "identifier": "reset"});
    let reset = clients[0].data("limits.reset", &of);
    assert!(reset["cells"].as_u64() >= Some(1), "{reset}");
    let began = now();
    eventually("the other node admits again", || one(&mut clients[1], &asked).admitted);
    // Two seconds is the promise.
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!(hearers(), before, "over the same connections");
}
