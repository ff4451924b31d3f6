//! The primary that the sentinels name is followed, and the new one is vetted before it does anything.

use std::time::Duration;

use tollkeeper_redis::{CallError, Trouble};
use tollkeeper_testkit::RedisSentinel;

use crate::{PATIENT, connected, count, echo, start, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_is_followed_and_the_new_primary_is_vetted_first() {
    let mut fleet = RedisSentinel::start().unwrap();
    let redis = connected(&fleet.url()).await;
    let (first, _) = echo(&redis, "x").await.unwrap();
    let before = redis.servers()[0].clone();
    assert_eq!(before.address.as_ref().unwrap().port, fleet.servers[0].port());
    fleet.servers[0].kill();
    let elected = async || fleet.primary_port().is_some_and(|port| port != fleet.servers[0].port());
    until("the sentinels have a new primary", elected).await;
    let mut second = String::new();
    let took = until("the new primary answers", async || match echo(&redis, "x").await {
        Ok((run, _)) => {
            second = run;
            true
        }
        Err(error) => {
            assert!(!matches!(error, CallError::Unvetted | CallError::Strange(_)), "{error:?}");
            false
        }
    })
    .await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    let after = redis.servers()[0].clone();
    assert_ne!((&first, before.address), (&second, after.address));
    assert_eq!((after.run_id.as_deref(), after.generation), (Some(second.as_str()), 2));
    // The old primary comes back and takes itself for one; nothing goes there any more.
    fleet.servers[0].again().unwrap();
    for _ in 0..50 {
        let answered = echo(&redis, "x").await;
        assert_eq!(answered.map(|(run, _)| run), Ok(second.clone()));
    }
    assert!(!fleet.servers[0].ask(&["INFO", "commandstats"]).contains("evalsha"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orderly_failover_takes_no_wrong_turn() {
    let fleet = RedisSentinel::start().unwrap();
    let redis = connected(&fleet.url()).await;
    let before = redis.servers()[0].address.clone();
    let asked = fleet.sentinels[0].ask(&["SENTINEL", "FAILOVER", "main"]);
    assert_eq!(asked, "OK");
    until("another primary answers", async || {
        count(&redis, 1, PATIENT).await.is_ok() && redis.servers()[0].address != before
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_sentinel_that_answers_is_enough_and_an_unknown_name_is_said() {
    let mut fleet = RedisSentinel::start().unwrap();
    fleet.sentinels[0].kill();
    fleet.sentinels[1].pause();
    let redis = connected(&fleet.url()).await;
    assert!(echo(&redis, "x").await.is_ok());
    fleet.sentinels[2].kill();
    assert!(echo(&redis, "x").await.is_ok(), "the primary is used while no sentinel answers");
    fleet.sentinels[1].resume();
    let host = fleet.sentinels[1].address();
    let wrong = start(&format!("redis-sentinel://{host}/other"));
    until("the reason is known", async || {
        matches!(&wrong.servers()[0].trouble, Some(Trouble::NoPrimary(why)) if why.contains("other"))
    })
    .await;
}
