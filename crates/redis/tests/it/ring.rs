//! Independent servers on a ring: each serves its tags and only those, and fails alone.

use tollkeeper_redis::{At, CallError};
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
