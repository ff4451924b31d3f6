//! Redis in every shape: a failover by Sentinel, a cluster that loses a primary, a ring of independent servers.

use std::time::Duration;

use serde_json::json;
use tollkeeper_testkit::{RedisCluster, RedisSentinel, RedisServer};

use super::{Asked, PATIENT, Tally, admitted, body, clients, drive, heard, nodes_at, one};
use crate::time::eventually;
use crate::world::{LONG_MS, side_by_side};

const LIMIT: u64 = 60;

fn asked(identifier: &str) -> Asked {
    let mut body = body(identifier, LIMIT, LONG_MS, "fixed_window");
    body["onOutage"] = json!("deny");
    Asked { body, cost: 1 }
}

#[test]
fn a_failover_by_sentinel_passes_no_limit_and_is_followed() {
    let mut redis = RedisSentinel::start().expect("a Redis with sentinels");
    let nodes = nodes_at(&redis.url(), 2, &[]);
    let mut clients = clients(&nodes);
    let before =
        (0..40).filter(|_| heard(&mut clients[0], &asked("moved")).admitted).count() as u64;
    assert!(before >= 30, "{before}");
    redis.servers[0].kill();
    let mut after = 0;
    eventually("the new primary is found", || {
        let seen = one(&mut clients[1], &asked("moved"));
        after += u64::from(seen.admitted);
        seen.admitted && !seen.degraded
    });
    after += admitted(&drive(&nodes, 2, Duration::from_millis(500), 400, |_| asked("moved")));
    assert!(before + after <= LIMIT, "{before} + {after} of {LIMIT}");
}

#[test]
fn a_cluster_counts_once_and_survives_the_loss_of_a_primary() {
    let mut redis = RedisCluster::start().expect("a cluster");
    let nodes = nodes_at(&redis.url(), 2, &[]);
    let mut clients = clients(&nodes);
    let identifiers: Vec<String> = (0..12).map(|number| format!("part {number}")).collect();
    let mut got = vec![0; identifiers.len()];
    let round = |clients: &mut Vec<crate::world::Client>, got: &mut Vec<u64>, times: u64| {
        for _ in 0..times {
            for (identifier, got) in identifiers.iter().zip(got.iter_mut()) {
                for client in clients.iter_mut() {
                    *got += u64::from(heard(client, &asked(identifier)).admitted);
                }
            }
        }
    };
    round(&mut clients, &mut got, 15);
    assert!(got.iter().sum::<u64>() >= 300, "{got:?}");
    redis.kill(0);
    eventually("every part has a primary again", || {
        identifiers.iter().all(|identifier| {
            let seen = one(&mut clients[1], &asked(&format!("new {identifier}")));
            seen.admitted && !seen.degraded
        })
    });
    round(&mut clients, &mut got, 30);
    assert!(got.iter().all(|got| *got <= LIMIT), "{got:?}");
    assert!(got.iter().sum::<u64>() >= 600, "{got:?}");
}

#[test]
fn a_ring_of_independent_servers_shares_the_cells_out() {
    let servers: Vec<_> = (0..3).map(|_| RedisServer::start().expect("a Redis")).collect();
    let addresses: Vec<String> = servers.iter().map(RedisServer::address).collect();
    let nodes = nodes_at(&format!("redis-ring://{}", addresses.join(",")), 2, &[]);
    let mut clients = clients(&nodes);
    for number in 0..30 {
        let asked = asked(&format!("ring {number}"));
        for client in &mut clients {
            assert!(heard(client, &asked).admitted);
        }
    }
    for server in &servers {
        let keys = server.ask(&["KEYS", "rl:*"]);
        let count = keys.lines().filter(|line| line.contains("rl:{")).count();
        assert!((2..=20).contains(&count), "{count} of 30 records");
    }
}

/// Of a ring one server is gone for good, with leases out; another one forgets.
#[test]
fn a_server_that_is_away_holds_up_nothing_that_another_one_must_be_told() {
    // So many that all calls which a node makes at once could be to the one that is gone, over and over.
    const CELLS: usize = 1_000;
    const THREADS: usize = 4;
    let mut servers: Vec<_> = (0..2).map(|_| RedisServer::start().expect("a Redis")).collect();
    let addresses: Vec<String> = servers.iter().map(RedisServer::address).collect();
    // Few shards, so that cells of both servers are in each.
    let env = [PATIENT, ("TOLLKEEPER_MAX_CELLS", "10000")];
    let nodes = nodes_at(&format!("redis-ring://{}", addresses.join(",")), 1, &env);
    let asked = |number: usize| Asked {
        body: body(&format!("cell {number}"), 1_000, LONG_MS, "fixed_window"),
        cost: 1,
    };
    side_by_side(THREADS, |thread| {
        let mut client = clients(&nodes).remove(0);
        for number in (thread..CELLS).step_by(THREADS) {
            Tally::default().spend(&mut client, &asked(number), 8);
        }
    });
    let records = |server: &RedisServer| {
        server.ask(&["KEYS", "rl:*"]).lines().filter(|key| key.contains("cell")).count()
    };
    let before = records(&servers[1]);
    assert!(before > CELLS / 4 && records(&servers[0]) > CELLS / 4, "{before} of {CELLS}");
    servers[0].kill();
    // What it is admitted alone must be told too, as soon as there is anybody to tell.
    let mut client = clients(&nodes).remove(0);
    (0..CELLS).for_each(|number| {
        one(&mut client, &Asked { cost: 200, ..asked(number) });
    });
    servers[1].flushall();
    eventually("the one that forgot is told everything", || records(&servers[1]) == before);
}
