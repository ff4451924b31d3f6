//! Servers that are gone, hung or slow: how soon a call says so, and how soon it works again.

use std::time::Duration;

use tollkeeper_redis::{CallError, Options};
use tollkeeper_testkit::{Fault, FaultProxy, RedisServer};

use crate::{PATIENT, connected, count, echo, now, options, start_with, until};

const SHORT: Duration = Duration::from_millis(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_server_a_call_fails_at_once_and_works_within_two_seconds_of_its_return() {
    let mut server = RedisServer::start().unwrap();
    let redis = connected(&server.url()).await;
    server.stop();
    until("it is gone", async || echo(&redis, "x").await == Err(CallError::Away)).await;
    // Long enough for the waiting between attempts to reach its cap.
    let until_capped = now() + Duration::from_secs(2);
    while now() < until_capped {
        let began = now();
        assert_eq!(echo(&redis, "x").await, Err(CallError::Away));
        assert!(began.elapsed() < Duration::from_millis(50), "{:?}", began.elapsed());
        let _ = tokio::time::timeout(SHORT, std::future::pending::<()>()).await;
    }
    server.again().unwrap();
    let took = until("it is back", async || echo(&redis, "x").await.is_ok()).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(redis.stats().connects_failed > 2 && redis.servers()[0].trouble.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hung_server_is_late_by_the_deadline_and_then_away() {
    let server = RedisServer::start().unwrap();
    let redis = connected(&server.url()).await;
    server.pause();
    let began = now();
    assert_eq!(count(&redis, 1, SHORT).await, Err(CallError::Late));
    let took = began.elapsed();
    assert!((SHORT..Duration::from_millis(200)).contains(&took), "{took:?}");
    assert!(CallError::Late.maybe_applied());
    let given_up = async || count(&redis, 1, SHORT).await == Err(CallError::Away);
    let took = until("the connection is given up", given_up).await;
    assert!(took < Duration::from_secs(3), "{took:?}");
    server.resume();
    let took = until("it is back", async || echo(&redis, "x").await.is_ok()).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_reply_was_lost_is_late_though_it_was_applied() {
    let server = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(server.port()).unwrap();
    let redis = connected(&format!("redis://{}", proxy.address())).await;
    assert_eq!(count(&redis, 1, PATIENT).await, Ok(1));
    proxy.set(Fault::DropReplies);
    assert_eq!(count(&redis, 1, SHORT).await, Err(CallError::Late));
    assert_eq!(server.ask(&["GET", "count:{1}"]), "2");
    assert_eq!(redis.stats().calls_late, 1);
    proxy.set(Fault::Pass);
    let mut counted = Err(CallError::Late);
    until("it is back", async || {
        counted = count(&redis, 1, PATIENT).await;
        counted.is_ok()
    })
    .await;
    assert!(counted.is_ok_and(|count| count >= 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reply_is_never_taken_for_that_of_the_next_call() {
    let server = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(server.port()).unwrap();
    let redis = connected(&format!("redis://{}", proxy.address())).await;
    proxy.set(Fault::DelayReplies(Duration::from_millis(60)));
    for late in 1..=5 {
        assert_eq!(count(&redis, 1, SHORT).await, Err(CallError::Late));
        assert_eq!(server.ask(&["GET", "count:{1}"]), late.to_string());
    }
    assert_eq!(count(&redis, 1, PATIENT).await, Ok(6));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_lost_while_waiting_is_broken_and_maybe_applied() {
    let server = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(server.port()).unwrap();
    let redis = connected(&format!("redis://{}", proxy.address())).await;
    proxy.set(Fault::DropReplies);
    let waiting = tokio::spawn({
        let redis = redis.clone();
        async move { count(&redis, 1, PATIENT).await }
    });
    server.ask_until(&["GET", "count:{1}"], "1").unwrap();
    proxy.set(Fault::Cut);
    let failed = waiting.await.unwrap().unwrap_err();
    assert!(matches!(failed, CallError::Broken(_)) && failed.maybe_applied(), "{failed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_beyond_the_bound_are_refused_as_busy_and_not_applied() {
    let server = RedisServer::start().unwrap();
    let url = server.url();
    let redis = start_with(&url, Options { in_flight_max: 8, ..options() });
    until("it is connected", async || redis.servers()[0].connected).await;
    server.pause();
    let calls = (0..20).map(|_| {
        let redis = redis.clone();
        tokio::spawn(async move { count(&redis, 1, Duration::from_millis(300)).await })
    });
    let mut ends = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        ends.push(call.await.unwrap());
    }
    server.resume();
    let ended = |error: &CallError| ends.iter().filter(|end| end.as_ref() == Err(error)).count();
    let (busy, late) = (ended(&CallError::Busy), ended(&CallError::Late));
    assert_eq!((busy, late), (12, 8), "{ends:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_when_the_last_clone_is_gone() {
    let server = RedisServer::start().unwrap();
    let redis = connected(&server.url()).await;
    let mut subscription = redis.subscribe("tk:bus");
    subscription.next().await;
    let clone = redis.clone();
    drop(redis);
    assert!(echo(&clone, "x").await.is_ok());
    assert_eq!(server.ask(&["CLIENT", "LIST"]).lines().count(), 3);
    drop((clone, subscription));
    // The one that asks is always there.
    until("all connections are closed", async || {
        server.ask(&["CLIENT", "LIST"]).lines().count() == 1
    })
    .await;
}
