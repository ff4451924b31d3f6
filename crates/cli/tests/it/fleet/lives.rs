//! The lives of nodes: killed, frozen, told to end, cloned, upgraded one after the other. No limit is passed by any of it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use tollkeeper_testkit::{RedisServer, Tollkeeper};

use super::{Asked, Fleet, Seen, admitted, body, by_window, clients, drive, heard, one, times};
use crate::time::{eventually, now, pause};
use crate::world::{BINARY, Client, LONG_MS, side_by_side, start};

/// Another build to upgrade from; without it a node is replaced by its like.
const OTHER_BINARY: &str = "TOLLKEEPER_OTHER_BINARY";

fn asked(identifier: &str, limit: u64) -> Asked {
    Asked { body: body(identifier, limit, LONG_MS, "fixed_window"), cost: 1 }
}

/// What one caller got until the node was gone; an answer that was lost with it is not counted.
fn until_gone(url: &str, root_key: &str, asked: &Asked) -> u64 {
    let mut client = Client::new(url, root_key);
    let mut body = asked.body.clone();
    body["cost"] = json!(asked.cost);
    let mut got = 0;
    while let Ok(answer) = client.try_post("ratelimit.limit", &body) {
        got += u64::from(answer.json["data"]["success"] == true);
        pause(Duration::from_millis(1));
    }
    got
}

fn signal(node: &Tollkeeper, name: &str) {
    let sent = Command::new("kill").args([name, &node.pid().to_string()]).status();
    assert!(sent.expect("a signal").success());
}

fn record(redis: &RedisServer, part: &str) -> String {
    let keys = redis.ask(&["KEYS", "rl:*"]);
    keys.lines().find(|key| key.contains(part)).expect("a record").to_owned()
}

fn field(redis: &RedisServer, key: &str, name: &str) -> u64 {
    redis.ask(&["HGET", key, name]).parse().unwrap_or(0)
}

#[test]
fn a_node_that_is_killed_under_load_is_ready_again_soon_and_passes_no_limit() {
    let kills = times("FLEET_KILLS", 8);
    let limit = 400 * kills;
    let mut fleet = Fleet::of(2);
    let url = fleet.redis.url();
    let asked = asked("killed", limit);
    let (mut got, mut ready) = (0, Vec::new());
    for kill in 0..kills {
        let (mortal, other) = (&fleet.nodes[0].0, &fleet.nodes[1..]);
        let seen = side_by_side(4, |thread| match thread {
            0 => {
                pause(Duration::from_millis(150 + 23 * (kill % 8)));
                signal(mortal, "-KILL");
                0
            }
            1 => admitted(&drive(other, 1, Duration::from_millis(300), 200, |_| asked.clone())),
            _ => until_gone(mortal.url(), mortal.root_key(), &asked),
        });
        got += seen.iter().sum::<u64>();
        let (mortal, folder) = &mut fleet.nodes[0];
        mortal.kill9().expect("it has ended");
        let began = now();
        *mortal = start(folder.path(), &[("TOLLKEEPER_REDIS_URL", &url)]).expect("it starts again");
        let mut client = Client::new(mortal.url(), mortal.root_key());
        eventually("it is ready", || client.get("/readyz").status == 200);
        ready.push(began.elapsed());
    }
    ready.sort_unstable();
    // Half of the starts, so that one hiccup of a busy machine says nothing.
    assert!(ready[ready.len() / 2] < Duration::from_secs(2), "{ready:?}");
    got += admitted(&drive(&fleet.nodes, 4, Duration::from_secs(1), 4_000, |_| asked.clone()));
    assert!(got <= limit, "{got} of {limit}");
}

#[test]
fn a_node_that_was_frozen_while_redis_was_wiped_tells_what_it_had_spent_once_it_wakes() {
    const LIMIT: u64 = 300;
    let fleet = Fleet::of(2);
    let mut clients = fleet.clients();
    let mut body = body("asleep", LIMIT, LONG_MS, "fixed_window");
    body["onOutage"] = json!("deny");
    let asked = Asked { body, cost: 1 };
    let spent = (0..250).filter(|_| heard(&mut clients[1], &asked).admitted).count() as u64;
    assert_eq!(spent, 250);
    signal(&fleet.nodes[1].0, "-STOP");
    fleet.redis.flushall();
    // Long enough for Redis to learn from those that are awake.
    pause(Duration::from_secs(3));
    signal(&fleet.nodes[1].0, "-CONT");
    pause(Duration::from_secs(2));
    let more = (0..LIMIT).filter(|_| one(&mut clients[0], &asked).admitted).count() as u64;
    assert!(spent + more <= LIMIT, "{spent} + {more} of {LIMIT}");
}

/// A bucket's lease lives for ten seconds, so that long it must be to show that it ended.
#[test]
fn a_node_that_was_frozen_spends_nothing_of_leases_that_ended_meanwhile() {
    const LIMIT: u64 = 60;
    let kinds = [("fixed_window", 2_000), ("sliding_window", 2_000), ("token_bucket", 60_000)];
    let fleet = Fleet::of(2);
    let began = now();
    let seen = side_by_side(kinds.len() + 1, |thread| {
        let Some((algorithm, width)) = kinds.get(thread) else {
            pause(Duration::from_millis(700));
            signal(&fleet.nodes[1].0, "-STOP");
            pause(Duration::from_millis(10_500));
            signal(&fleet.nodes[1].0, "-CONT");
            return Vec::new();
        };
        let ask = |_| Asked { body: body("frozen", LIMIT, *width, algorithm), cost: 1 };
        // Requests of the frozen node wait with it, and are decided when it wakes up.
        drive(&fleet.nodes, 4, Duration::from_secs(13), 240, ask)
    });
    let whole = began.elapsed().as_secs() + 1;
    for (seen, (algorithm, _)) in seen.iter().zip(kinds).take(2) {
        let windows = by_window(seen);
        assert!(windows.len() >= 5, "{algorithm}: {windows:?}");
        assert!(windows.values().all(|got| *got <= LIMIT), "{algorithm}: {windows:?}");
    }
    let got = admitted(&seen[2]);
    assert!(got <= LIMIT + whole, "a full bucket and one more each second: {got} in {whole} s");
}

#[test]
fn a_node_that_ends_in_order_under_load_leaves_in_redis_exactly_what_was_spent() {
    const LIMIT: u64 = 100_000;
    const CALLERS: usize = 4;
    let mut fleet = Fleet::of(2);
    let asked = asked("ended", LIMIT);
    let mut got = 0;
    for place in 0..2 {
        let mortal = &fleet.nodes[place].0;
        let seen = side_by_side(CALLERS + 1, |thread| {
            if thread < CALLERS {
                return until_gone(mortal.url(), mortal.root_key(), &asked);
            }
            pause(Duration::from_millis(500));
            signal(mortal, "-TERM");
            0
        });
        got += seen.iter().sum::<u64>();
        let told = now();
        let status = fleet.nodes[place].0.terminate().expect("it ends by itself");
        assert!(status.success(), "{status}: {}", fleet.nodes[place].0.stderr());
        assert!(told.elapsed() < Duration::from_secs(5), "{:?}", told.elapsed());
    }
    let key = record(&fleet.redis, "ended");
    let counted = field(&fleet.redis, &key, "g");
    assert_eq!(field(&fleet.redis, &key, "o"), 0, "nothing is lent any more");
    // One request per caller may have been carried out while its answer was lost on the way.
    let most = got + 2 * CALLERS as u64;
    assert!(got > 0 && (got..=most).contains(&counted), "{counted} counted, {got} answered");
}

#[test]
fn two_nodes_on_copies_of_one_data_directory_share_nothing_but_redis() {
    const LIMIT: u64 = 400;
    let mut fleet = Fleet::of(1);
    let url = fleet.redis.url();
    let asked = asked("cloned", LIMIT);
    let mut got =
        admitted(&drive(&fleet.nodes, 2, Duration::from_millis(400), 200, |_| asked.clone()));
    let (node, folder) = &mut fleet.nodes[0];
    assert!(node.terminate().expect("it ends").success());
    let clone = tempfile::tempdir().expect("a folder");
    let copied =
        Command::new("cp").arg("-a").arg(folder.path().join(".")).arg(clone.path()).status();
    assert!(copied.expect("a copy").success());
    // Both at once, and both with leases in hand when they are killed: neither may give back what the other holds.
    let env = [("TOLLKEEPER_REDIS_URL", url.as_str())];
    let begin = |folder: &Path| start(folder, &env).expect("it starts");
    *node = begin(folder.path());
    let twin = begin(clone.path());
    fleet.nodes.push((twin, clone));
    got += admitted(&drive(&fleet.nodes, 4, Duration::from_millis(300), 300, |_| asked.clone()));
    let boots = fleet.redis.ask(&["HKEYS", &record(&fleet.redis, "cloned")]);
    let boots = boots.lines().filter(|name| name.len() == 11).count();
    assert_eq!(boots, 3, "each life has a name of its own");
    for (node, folder) in &mut fleet.nodes {
        node.kill9().expect("it can be killed");
        *node = begin(folder.path());
    }
    let mut clients = clients(&fleet.nodes);
    let more = (0..LIMIT).filter(|n| {
        let client = &mut clients[usize::try_from(n % 2).unwrap()];
        heard(client, &asked).admitted
    });
    got += more.count() as u64;
    assert!(got <= LIMIT, "{got} of {LIMIT}");
    assert!(got >= LIMIT * 3 / 4, "{got} of {LIMIT}");
}

#[test]
fn a_fleet_that_is_replaced_one_by_one_fails_no_request_and_passes_no_limit() {
    const LIMIT: u64 = 600;
    #[allow(
        clippy::disallowed_methods,
        reason = "which build to upgrade from is up to whoever runs this"
    )]
    let other = std::env::var(OTHER_BINARY).unwrap_or_else(|_| BINARY.to_owned());
    let redis = RedisServer::start().expect("a Redis");
    let url = redis.url();
    let env = [("TOLLKEEPER_REDIS_URL", url.as_str())];
    let begin =
        |binary: &str, folder: &Path| Tollkeeper::start(binary, folder, &env).expect("it starts");
    let mut nodes: Vec<_> = side_by_side(3, |_| {
        let folder = tempfile::tempdir().expect("a folder");
        (begin(&other, folder.path()), folder)
    });
    let asked = asked("rolling", LIMIT);
    let mut seen: Vec<Seen> = Vec::new();
    for _ in 0..3 {
        let (mut old, folder) = nodes.remove(0);
        let (mut during, fresh) = std::thread::scope(|scope| {
            let replaced = scope.spawn(|| {
                pause(Duration::from_millis(200));
                assert!(old.terminate().expect("it ends").success());
                begin(BINARY, folder.path())
            });
            let during = drive(&nodes, 4, Duration::from_millis(1_500), 160, |_| asked.clone());
            (during, replaced.join().expect("it is replaced"))
        });
        seen.append(&mut during);
        nodes.push((fresh, folder));
    }
    let mut got = admitted(&seen);
    assert!(got > 0);
    got += admitted(&drive(&nodes, 3, Duration::from_secs(2), 600, |_| asked.clone()));
    assert!(got <= LIMIT, "{got} of {LIMIT}");
    assert!(got >= LIMIT * 9 / 10, "{got} of {LIMIT}");
    let degraded = seen.iter().filter(|one| one.degraded).count();
    assert!(degraded * 5 < seen.len(), "{degraded} of {} were refused unheard", seen.len());
}
