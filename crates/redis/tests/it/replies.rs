//! Every reply belongs to the call that waits for it, whatever happens to other calls on the same connection.

use std::time::Duration;

use tollkeeper_redis::{Arg, At, CallError};
use tollkeeper_testkit::{Fault, FaultProxy, RedisServer};

use crate::{ECHO, PATIENT, connected, count, echo, pair, until};

/// Some calls are dropped before they are sent, some while they wait, some run to a deadline they can hardly keep.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_calls_never_hand_their_replies_to_others() {
    let server = RedisServer::start().unwrap();
    let redis = connected(&server.url()).await;
    let callers = (0..16_u64).map(|caller| {
        let redis = redis.clone();
        tokio::spawn(async move {
            let mut answered = 0;
            for call in 0..500_u64 {
                let own = caller * 1_000 + call;
                let args = [Arg::from(own)];
                let deadline = Duration::from_micros(50 + 200 * (own % 7) * (own % 7));
                let run = redis.run(1, ECHO, &[b"k:{1}"], &args, deadline);
                let cancelled = Duration::from_micros(own % 11 * 300);
                match tokio::time::timeout(cancelled, run).await {
                    Ok(Ok(value)) => {
                        assert_eq!(pair(&value).1, own.to_string());
                        answered += 1;
                    }
                    Ok(Err(error)) => assert_eq!(error, CallError::Late),
                    Err(_) => {}
                }
            }
            answered
        })
    });
    let mut answered = 0;
    for caller in callers.collect::<Vec<_>>() {
        answered += caller.await.unwrap();
    }
    assert!((500..8_000).contains(&answered), "{answered} of 8000 were answered");
    let stats = redis.stats();
    assert!(stats.calls_ok >= answered && stats.took.buckets.iter().sum::<u64>() > answered);
    assert_eq!(redis.servers()[0].generation, 1);
}

/// Only the caller can know that an answer is not for it; then not one more is taken from that connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_mixed_up_its_answers_is_not_used_again_once_distrusted() {
    let server = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(server.port()).unwrap();
    let redis = connected(&format!("redis://{}", proxy.address())).await;
    proxy.set(Fault::SkipReplies { seed: 1, per_mille: 1000 });
    assert_eq!(count(&redis, 1, Duration::from_millis(20)).await, Err(CallError::Late));
    proxy.set(Fault::Pass);
    let late = tokio::spawn({
        let redis = redis.clone();
        async move { echo(&redis, "first").await }
    });
    until("the first call waits", async || server.ask(&["PING"]) == "PONG").await;
    // It waits for an answer that was skipped, and is given that of the second.
    let _ = redis.run(1, ECHO, &[b"k:{1}"], &["second".into()], PATIENT).await;
    let mixed_up = late.await.unwrap();
    if mixed_up.as_ref().is_ok_and(|(_, said)| said != "first") {
        redis.distrust(At::Tag(1));
    }
    until("it is vetted again", async || redis.servers()[0].generation == 2).await;
    assert_eq!(echo(&redis, "x").await.unwrap().1, "x");
}
