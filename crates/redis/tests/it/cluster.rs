//! A cluster: calls find the primary of their slot, follow it when it moves, and never run twice.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;
use tollkeeper_core::Boot;
use tollkeeper_decide::Origin;
use tollkeeper_redis::{At, CallError, HOME, Redis, RedisOrigin, Refusal, Trouble, cmd};
use tollkeeper_testkit::{RedisCluster, RedisServer};

use crate::{PATIENT, connected, count, options, start, start_with, until};

/// `CLUSTER KEYSLOT {17}`, on the third primary; tag 1 is on the second.
const TAG: u16 = 17;
const SLOT: u16 = 12304;
const OWNER: usize = 2;
/// `CLUSTER KEYSLOT {home}`, on the second; no tag has it too.
const HOME_SLOT: u16 = 10814;
/// On the first primary.
const BYSTANDER: u16 = 3;

async fn get(redis: &Redis) -> Result<tollkeeper_redis::Value, CallError> {
    let key = cmd("GET").arg(format!("count:{{{TAG}}}")).take();
    redis.command(At::Tag(TAG), &key, PATIENT).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_moves_under_calls_and_every_call_counts_once() {
    let cluster = RedisCluster::start().unwrap();
    let seen: Arc<Mutex<Vec<(u16, bool)>>> = Arc::default();
    let noted = seen.clone();
    let options = options().checked_by(move |fresh| {
        let (port, noted) = (fresh.address().port, noted.clone());
        Box::pin(async move {
            // Long enough for a call that does not wait for the end of this to be seen.
            let _ = timeout(Duration::from_millis(100), std::future::pending::<()>()).await;
            noted.lock().unwrap().push((port, fresh.tags().contains(At::Tag(TAG))));
            Ok(())
        })
    });
    let redis = start_with(&cluster.url(), options);
    until("it is connected", async || count(&redis, TAG, PATIENT).await.is_ok()).await;
    for tag in (0..1024).filter(|tag| *tag != TAG) {
        until("its server is connected", async || count(&redis, tag, PATIENT).await.is_ok()).await;
    }
    // Another tag of the server that the slot moves to; nothing may happen to its calls.
    let bystander = tokio::spawn({
        let redis = redis.clone();
        async move {
            loop {
                count(&redis, BYSTANDER, PATIENT).await.unwrap();
            }
        }
    });
    let mut counted = 1;
    let mut counts = async |times: u64| {
        for _ in 0..times {
            let mut answer = Err(CallError::Away);
            // While a busy machine finds the slot's new owner a call may not be sent at all: then it counts nothing.
            until("the slot has an owner", async || {
                answer = count(&redis, TAG, PATIENT).await;
                answer != Err(CallError::Away)
            })
            .await;
            assert_eq!(answer, Ok(counted + 1));
            counted += 1;
        }
    };
    let last_asked = || *seen.lock().unwrap().last().unwrap();
    // There and back again: what went on elsewhere meanwhile is lost history too.
    for (from, to) in [(OWNER, 0), (0, OWNER)] {
        cluster.begin_move(SLOT, from, to);
        counts(5).await;
        cluster.move_keys(SLOT, from, to);
        counts(5).await;
        assert!(cluster.nodes[from].ask(&["GET", "count:{17}"]).starts_with("ASK"));
        cluster.finish_move(SLOT, from, to);
        counts(1).await;
        assert_eq!(last_asked(), (cluster.nodes[to].port(), true));
        counts(4).await;
        assert!(cluster.nodes[from].ask(&["GET", "count:{17}"]).starts_with("MOVED"));
        let views = redis.servers();
        let serving = views.iter().filter(|view| view.tags.contains(At::Tag(TAG)));
        let ports: Vec<_> = serving.map(|view| view.address.as_ref().unwrap().port).collect();
        assert_eq!(ports, [cluster.nodes[to].port()]);
    }
    assert_eq!(cluster.nodes[OWNER].ask(&["GET", "count:{17}"]), "31");
    assert!(!bystander.is_finished(), "{:?}", bystander.await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_primary_is_replaced_and_a_cluster_that_is_down_says_so() {
    let mut cluster = RedisCluster::start().unwrap();
    let redis = connected(&cluster.url()).await;
    let origin = RedisOrigin::start(&cluster.url().parse().unwrap(), Boot(1), &Handle::current());
    until("all servers are known", async || origin.servers() == 3).await;
    let numbering = origin.numbering();
    assert_eq!(count(&redis, TAG, PATIENT).await, Ok(1));
    cluster.kill(OWNER);
    let mut errors = Vec::new();
    let took = until("the replica has taken over", async || match get(&redis).await {
        Ok(_) => true,
        Err(error) => {
            errors.push(error);
            false
        }
    })
    .await;
    assert!(took < Duration::from_secs(10), "{took:?}");
    let strange = |error: &CallError| matches!(error, CallError::Strange(_) | CallError::Unvetted);
    assert!(!errors.iter().any(strange), "{errors:?}");
    assert!(count(&redis, TAG, PATIENT).await.is_ok());
    let new = redis.servers().into_iter().find(|view| view.tags.contains(At::Tag(TAG))).unwrap();
    assert_eq!(new.address.unwrap().port, cluster.nodes[OWNER + 3].port());
    until("servers are numbered anew", async || origin.numbering() > numbering).await;
    // Now nobody is left for these slots.
    cluster.kill(OWNER + 3);
    until("the cluster is down", async || {
        let other = count(&redis, 1, PATIENT).await;
        matches!(other, Err(CallError::Refused(Refusal::ClusterDown(_))))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_without_any_cells_is_not_asked_about_them_and_is_no_trouble() {
    let cluster = RedisCluster::start().unwrap();
    // It keeps the home keys, so it stays a primary that everybody knows.
    cluster.give_all_but(HOME_SLOT, 1, 0);
    let origin = RedisOrigin::start(&cluster.url().parse().unwrap(), Boot(1), &Handle::current());
    until("all three are connected", async || {
        let views = origin.redis().servers();
        views.len() == 3 && views.iter().all(|view| view.connected)
    })
    .await;
    until("two of them have all cells", async || origin.servers() == 2).await;
    for server in 0..2 {
        until("each answers", async || origin.probe(server).await.is_ok()).await;
    }
    assert!(origin.members().await.is_ok());
    // Who shows servers finds each by its address, and this one nowhere.
    let views = origin.redis().servers();
    let places: Vec<_> = views.iter().map(|view| origin.place_of(view.address.as_ref())).collect();
    let idle = views.iter().position(|view| view.tags.iter().next().is_none()).unwrap();
    assert_eq!(places.iter().position(Option::is_none), Some(idle));
    assert_eq!(places.iter().flatten().copied().collect::<Vec<_>>(), [0, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn home_keys_and_messages_work_in_a_cluster() {
    let cluster = RedisCluster::start().unwrap();
    let redis = connected(&cluster.url()).await;
    let join = cmd("SADD").arg(format!("tk:members:{HOME}")).arg("me").take();
    redis.command(At::Home, &join, PATIENT).await.unwrap();
    // A key of another slot is found too, but moves nothing.
    let stray = cmd("SET").arg("stray").arg(1).take();
    redis.command(At::Home, &stray, PATIENT).await.unwrap();
    let before: u64 = redis.servers().iter().map(|view| view.generation).sum();
    redis.command(At::Home, &join, PATIENT).await.unwrap();
    assert_eq!(redis.servers().iter().map(|view| view.generation).sum::<u64>(), before);
    let mut subscription = redis.subscribe("tk:bus");
    subscription.next().await;
    redis.publish("tk:bus", b"hello", PATIENT).await.unwrap();
    let heard = timeout(PATIENT, subscription.next()).await.unwrap();
    assert_eq!(heard, tollkeeper_redis::Heard::Message(b"hello".to_vec()));
    // A single server's URL cannot follow a slot, and says what to do.
    let single = start(&cluster.nodes[0].url());
    until("it is connected", async || single.servers()[0].connected).await;
    let failed = count(&single, TAG, PATIENT).await.unwrap_err();
    assert!(failed.to_string().contains("redis-cluster://") && !failed.maybe_applied());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_cluster_is_named_as_the_trouble() {
    let server = RedisServer::start().unwrap();
    let redis = start(&format!("redis-cluster://{}", server.address()));
    until("the reason is known", async || {
        matches!(&redis.servers()[0].trouble, Some(Trouble::Refused(Refusal::Other(why))) if why.contains("cluster"))
    })
    .await;
    assert_eq!(count(&redis, 1, PATIENT).await, Err(CallError::Away));
}
