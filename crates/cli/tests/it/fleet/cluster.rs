//! A Redis Cluster under load: slots that move, and one that is down as a whole.

use std::time::Duration;

use serde_json::json;
use tollkeeper_testkit::RedisCluster;

use super::{Asked, body, clients, drive, heard, nodes_at, one};
use crate::time::{eventually, pause};
use crate::world::{LONG_MS, side_by_side};

const SCHEMA: &str = include_str!("../../../../../docs/REDIS_SCHEMA.md");

const LIMIT: u64 = 80;
const CELLS: usize = 8;

fn asked(number: usize, on_outage: &str) -> Asked {
    let mut body = body(&format!("cell {number}"), LIMIT, LONG_MS, "fixed_window");
    body["onOutage"] = json!(on_outage);
    // Told apart by what they cost.
    Asked { body, cost: 1 + number as u64 % 2 }
}

#[test]
fn slots_that_move_under_load_pass_no_limit_and_fail_no_request() {
    let redis = RedisCluster::start().expect("a cluster");
    let nodes = nodes_at(&redis.url(), 2, &[]);
    let mut clients = clients(&nodes);
    let mut got = vec![0; CELLS];
    for (number, got) in got.iter_mut().enumerate() {
        *got += heard(&mut clients[number % 2], &asked(number, "deny")).cost;
    }
    let moved = side_by_side(CELLS + 1, |thread| {
        if thread < CELLS {
            // From both nodes.
            let how_long = Duration::from_secs(5);
            let seen = drive(&nodes, 2, how_long, 30, |_| asked(thread, "deny"));
            return super::admitted(&seen);
        }
        // Every record of the first primary goes to the second, while it is asked for.
        let keys = redis.nodes[0].ask(&["KEYS", "rl:*"]);
        let keys: Vec<&str> = keys.lines().filter(|key| key.starts_with("rl:")).collect();
        for key in &keys {
            let slot: u16 =
                redis.nodes[0].ask(&["CLUSTER", "KEYSLOT", key]).parse().expect("a slot");
            redis.begin_move(slot, 0, 1);
            pause(Duration::from_millis(150));
            redis.move_keys(slot, 0, 1);
            pause(Duration::from_millis(150));
            redis.finish_move(slot, 0, 1);
        }
        keys.len() as u64
    });
    assert!(moved[CELLS] > 0, "nothing moved");
    for (got, more) in got.iter_mut().zip(&moved) {
        *got += more;
    }
    eventually("all that is left can be had", || {
        let mut some = false;
        for (number, got) in got.iter_mut().enumerate() {
            for client in &mut clients {
                let seen = heard(client, &asked(number, "deny"));
                *got += if seen.admitted { seen.cost } else { 0 };
                some |= seen.admitted;
            }
        }
        !some
    });
    assert!(got.iter().all(|got| *got <= LIMIT), "{got:?}");
    assert!(got.iter().sum::<u64>() >= LIMIT * CELLS as u64 * 3 / 4, "{got:?}");
}

#[test]
fn a_cluster_that_is_down_is_an_outage_and_exact_again_when_it_is_up() {
    let mut redis = RedisCluster::start().expect("a cluster");
    let nodes = nodes_at(&redis.url(), 2, &[]);
    let mut clients = clients(&nodes);
    for number in 0..CELLS {
        heard(&mut clients[number % 2], &asked(number, "allow"));
    }
    // A primary and its replica: nobody is left for a third of the slots, and by default the others stop too.
    for lost in [2, 5] {
        redis.kill(lost);
    }
    eventually("every cell has its policy", || {
        (0..CELLS).all(|number| {
            let client = &mut clients[number % 2];
            let (allowed, denied) =
                (one(client, &asked(number, "allow")), one(client, &asked(number, "deny")));
            allowed.admitted && allowed.degraded && !denied.admitted && denied.degraded
        })
    });
    for lost in [2, 5] {
        redis.nodes[lost].again().expect("it starts again");
    }
    eventually("all of it is exact again", || {
        (0..CELLS).all(|number| !one(&mut clients[number % 2], &asked(number, "deny")).degraded)
    });
}

#[test]
fn the_documented_rights_are_all_that_a_node_needs_of_a_cluster() {
    let redis = RedisCluster::start().expect("a cluster");
    let mut rule: Vec<&str> = SCHEMA
        .lines()
        .skip_while(|line| !line.contains("ACL SETUSER"))
        .take_while(|line| line.starts_with("    "))
        .flat_map(str::split_whitespace)
        .filter(|word| *word != "\\")
        .collect();
    let more = SCHEMA.lines().find(|line| line.starts_with("In a cluster also")).expect("a line");
    // Some servers are too old to know of that one.
    let known = |word: &&str| word.starts_with('+') && *word != "+client|setinfo";
    rule.extend(more.split('`').filter(known));
    for node in &redis.nodes {
        assert_eq!(node.ask(&rule), "OK", "{rule:?}");
        node.ask(&["ACL", "SETUSER", "tollkeeper", "+client|setinfo"]);
    }
    let url = redis.url().replace("://", "://tollkeeper:PASSWORD@");
    let nodes = nodes_at(&url, 2, &[]);
    let mut clients = clients(&nodes);
    for number in 0..CELLS {
        for client in &mut clients {
            assert!(heard(client, &asked(number, "deny")).admitted);
        }
    }
    // A slot that moves is followed with the same rights.
    let keys = redis.nodes[0].ask(&["KEYS", "rl:*"]);
    let key = keys.lines().find(|key| key.starts_with("rl:")).expect("a record");
    let slot: u16 = redis.nodes[0].ask(&["CLUSTER", "KEYSLOT", key]).parse().expect("a slot");
    redis.begin_move(slot, 0, 1);
    redis.move_keys(slot, 0, 1);
    redis.finish_move(slot, 0, 1);
    for number in 0..CELLS {
        heard(&mut clients[number % 2], &asked(number, "deny"));
    }
    let of = json!({"namespace": "fleet", "identifier": "cell 1"});
    clients[0].data("limits.reset", &of);
    for node in &redis.nodes {
        let denied = node.ask(&["ACL", "LOG"]);
        assert!(!denied.contains("reason"), "{denied}");
    }
}
