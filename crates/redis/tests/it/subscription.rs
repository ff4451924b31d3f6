//! What is published is heard, and what may have been missed is said.

use std::time::Duration;

use tokio::time::timeout;
use tollkeeper_redis::{Heard, Subscription};
use tollkeeper_testkit::{Fault, FaultProxy, RedisServer};

use crate::{LIMIT, PATIENT, connected, now, until};

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

/// The publisher has its own way to the server; that of the subscriber loses messages and stays open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_lost_on_a_connection_that_stays_whole_is_a_gap_within_two_seconds() {
    let server = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(server.port()).unwrap();
    let (publisher, hearer) =
        (connected(&server.url()).await, connected(&format!("redis://{}", proxy.address())).await);
    let mut subscription = hearer.subscribe("tk:bus");
    assert_eq!(heard(&mut subscription).await, Heard::Gap);
    let subscriber = server.ask(&["CLIENT", "LIST", "TYPE", "pubsub"]);
    let id = subscriber.split_whitespace().next().unwrap().to_owned();
    for round in 0..3_u8 {
        publisher.publish("tk:bus", b"heard", PATIENT).await.unwrap();
        assert_eq!(heard(&mut subscription).await, Heard::Message(b"heard".to_vec()));
        proxy.set(Fault::SwallowMessages);
        publisher.publish("tk:bus", b"lost", PATIENT).await.unwrap();
        let lost = now();
        if round == 1 {
            // Also where another message shows it before anybody looks.
            until("it is lost", async || lost.elapsed() > Duration::from_millis(50)).await;
            proxy.set(Fault::Pass);
            publisher.publish("tk:bus", b"next", PATIENT).await.unwrap();
        }
        assert_eq!(heard(&mut subscription).await, Heard::Gap);
        assert!(lost.elapsed() < Duration::from_secs(2), "{:?}", lost.elapsed());
        proxy.set(Fault::Pass);
        if round == 1 {
            assert_eq!(heard(&mut subscription).await, Heard::Message(b"next".to_vec()));
        }
    }
    let still = server.ask(&["CLIENT", "LIST", "TYPE", "pubsub"]);
    assert!(still.starts_with(&format!("{id} ")), "{still}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_traffic_is_taken_for_a_gap_and_a_wiped_server_is_one() {
    let server = RedisServer::start().unwrap();
    let redis = connected(&server.url()).await;
    let mut subscription = redis.subscribe("tk:bus");
    assert_eq!(heard(&mut subscription).await, Heard::Gap);
    let (publisher, began) = (redis.clone(), now());
    // Long enough for three looks at the count, all of them while messages are under way.
    let publishing = tokio::spawn(async move {
        let mut said = 0_u64;
        while began.elapsed() < Duration::from_millis(3_500) {
            publisher.publish("tk:bus", b"x", PATIENT).await.unwrap();
            said += 1;
        }
        said
    });
    let mut got = 0_u64;
    while let Ok(said) = timeout(Duration::from_secs(1), subscription.next()).await {
        assert_eq!(said, Heard::Message(b"x".to_vec()), "after {got}");
        got += 1;
    }
    assert_eq!(got, publishing.await.unwrap());
    server.flushall();
    assert_eq!(heard(&mut subscription).await, Heard::Gap);
    // Once, not with every message and every look from then on.
    redis.publish("tk:bus", b"after", PATIENT).await.unwrap();
    assert_eq!(heard(&mut subscription).await, Heard::Message(b"after".to_vec()));
    let more = timeout(Duration::from_millis(2_500), subscription.next()).await;
    assert!(more.is_err(), "{more:?}");
    let ttl: i64 = server.ask(&["PTTL", "tk:bus:{home}"]).parse().unwrap();
    assert!(ttl > 0, "the count has an end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_server_passes_messages_on_without_counting_them() {
    let server = RedisServer::start().unwrap();
    let redis = connected(&server.url()).await;
    let mut subscription = redis.subscribe("tk:bus");
    assert_eq!(heard(&mut subscription).await, Heard::Gap);
    server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    redis.publish("tk:bus", b"full", PATIENT).await.unwrap();
    assert_eq!(heard(&mut subscription).await, Heard::Message(b"full".to_vec()));
    server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    redis.publish("tk:bus", b"not", PATIENT).await.unwrap();
    assert_eq!(heard(&mut subscription).await, Heard::Message(b"not".to_vec()));
}
