//! Independent servers on a ring: each serves its tags and only those, and fails alone.

use tokio::runtime::Handle;
use tollkeeper_core::Boot;
use tollkeeper_decide::Origin;
use tollkeeper_redis::{At, CallError, RedisOrigin};
use tollkeeper_testkit::RedisServer;

use crate::{PATIENT, connected, count, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_server_serves_its_own_tags_and_fails_alone() {
    let mut servers: Vec<_> = (0..3).map(|_| RedisServer::start().unwrap()).collect();
    let hosts: Vec<_> = servers.iter().map(RedisServer::address).collect();
    let redis = connected(&format!("redis-ring://{}", hosts.join(","))).await;
    for tag in 0..300 {
        assert_eq!(count(&redis, tag, PATIENT).await, Ok(1), "{tag}");
    }
    let sizes: Vec<u64> =
        servers.iter().map(|server| server.ask(&["DBSIZE"]).parse().unwrap()).collect();
    assert_eq!(sizes.iter().sum::<u64>(), 300);
    assert!(sizes.iter().all(|size| *size > 30), "{sizes:?}");
    let views = redis.servers();
    assert_eq!(views.iter().filter(|view| view.tags.contains(At::Home)).count(), 1);
    let lost = views.iter().find(|view| view.address.as_ref().unwrap().port == servers[1].port());
    let lost = lost.unwrap().tags.clone();
    servers[1].kill();
    let tag = lost.iter().next().unwrap();
    until("its loss is noticed", async || {
        count(&redis, tag, PATIENT).await == Err(CallError::Away)
    })
    .await;
    for tag in 0..300 {
        assert_eq!(count(&redis, tag, PATIENT).await.is_ok(), !lost.contains(At::Tag(tag)));
    }
}

/// One that is never probed for ends after seven days, and its tag learns although nothing was lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_epoch_is_kept_whatever_the_number_of_servers() {
    /// Sooner than those that are kept end.
    const SOON: &str = "for _, key in ipairs(redis.call('KEYS', 'tk:ep:*')) do redis.call('PEXPIRE', key, 400000000) end";
    const ENDING_SOON: &str = "local count = 0 \
        for _, key in ipairs(redis.call('KEYS', 'tk:ep:*')) do \
        if redis.call('PTTL', key) <= 400000000 then count = count + 1 end end return count";
    let servers: Vec<_> = (0..2).map(|_| RedisServer::start().unwrap()).collect();
    let hosts: Vec<_> = servers.iter().map(RedisServer::address).collect();
    let url = format!("redis-ring://{}", hosts.join(",")).parse().unwrap();
    let origin = RedisOrigin::start(&url, Boot(1), &Handle::current());
    until("all epochs are there", async || {
        let sizes = servers.iter().map(|server| server.ask(&["DBSIZE"]).parse::<u64>().unwrap());
        (0..2).all(|server| origin.is_connected(server)) && sizes.sum::<u64>() >= 1024
    })
    .await;
    for server in &servers {
        server.ask(&["EVAL", SOON, "0"]);
    }
    // As a node does, one after the other.
    for _ in 0..1024 {
        for server in 0..2 {
            origin.probe(server).await.unwrap();
        }
    }
    for server in &servers {
        assert_eq!(server.ask(&["EVAL", ENDING_SOON, "0"]), "0");
    }
}
