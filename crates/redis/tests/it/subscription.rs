//! What is published is heard, and what may have been missed is said.

use std::time::Duration;

use tokio::time::timeout;
use tollkeeper_redis::{Heard, Subscription};
use tollkeeper_testkit::RedisServer;

use crate::{LIMIT, PATIENT, connected, until};

async fn heard(subscription: &mut Subscription) -> Heard {
    timeout(LIMIT, subscription.next()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_come_in_order_and_a_lost_connection_is_a_gap() {
    let mut server = RedisServer::start().unwrap();
    let redis = connected(&server.url()).await;
    let mut subscription = redis.subscribe("tk:bus");
    assert_eq!(heard(&mut subscription).await, Heard::Gap);
    for n in 0..100_u8 {
        redis.publish("tk:bus", &[n], PATIENT).await.unwrap();
    }
    redis.publish("tk:other", b"no", PATIENT).await.unwrap();
    for n in 0..100_u8 {
        assert_eq!(heard(&mut subscription).await, Heard::Message(vec![n]));
    }
    server.ask(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    assert_eq!(heard(&mut subscription).await, Heard::Gap);
    redis.publish("tk:bus", b"after", PATIENT).await.unwrap();
    assert_eq!(heard(&mut subscription).await, Heard::Message(b"after".to_vec()));
    server.kill();
    server.again().unwrap();
    assert_eq!(heard(&mut subscription).await, Heard::Gap);
    until("it is back", async || redis.publish("tk:bus", b"new", PATIENT).await.is_ok()).await;
    assert_eq!(heard(&mut subscription).await, Heard::Message(b"new".to_vec()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hung_server_is_noticed_by_a_silent_subscription() {
    let server = RedisServer::start().unwrap();
    let redis = connected(&server.url()).await;
    let mut subscription = redis.subscribe("tk:bus");
    assert_eq!(heard(&mut subscription).await, Heard::Gap);
    server.pause();
    let nothing = timeout(Duration::from_millis(2_500), subscription.next()).await;
    assert!(nothing.is_err());
    server.resume();
    assert_eq!(heard(&mut subscription).await, Heard::Gap);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_is_too_slow_hears_of_a_gap() {
    let server = RedisServer::start().unwrap();
    let redis = connected(&server.url()).await;
    let mut subscription = redis.subscribe("tk:bus");
    assert_eq!(heard(&mut subscription).await, Heard::Gap);
    for _ in 0..1_100 {
        redis.publish("tk:bus", b"x", PATIENT).await.unwrap();
    }
    let mut gaps = 0;
    let mut messages = 0;
    while let Ok(heard) = timeout(Duration::from_millis(300), subscription.next()).await {
        match heard {
            Heard::Gap => gaps += 1,
            Heard::Message(_) => messages += 1,
        }
    }
    assert!(gaps > 0 && (1024..1100).contains(&messages), "{gaps} gaps, {messages} messages");
}
