//! No script runs on a process that was not vetted, and whoever must know of a new one is asked first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tollkeeper_redis::{At, CallError, Options, Redis, Tags, Trouble, Value, cmd};
use tollkeeper_testkit::{Fault, FaultProxy, RedisServer};

use crate::{ECHO, PATIENT, connected, echo, options, start, start_with, text, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_sees_the_run_id_of_the_process_that_executes_it() {
    let server = RedisServer::start().unwrap();
    let redis = connected(&server.url()).await;
    let (run, said) = echo(&redis, "hello").await.unwrap();
    assert!(server.ask(&["INFO", "server"]).contains(&format!("run_id:{run}")));
    assert_eq!((said.as_str(), redis.servers()[0].run_id.as_deref()), ("hello", Some(&*run)));
    assert_eq!(redis.servers()[0].generation, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_forgot_the_scripts_is_unvetted_and_heals() {
    let server = RedisServer::start().unwrap();
    let redis = connected(&server.url()).await;
    server.ask(&["SCRIPT", "FLUSH"]);
    let failed = echo(&redis, "x").await.unwrap_err();
    assert_eq!((failed.clone(), failed.maybe_applied()), (CallError::Unvetted, false));
    let took = until("it heals", async || echo(&redis, "x").await.is_ok()).await;
    assert!(took.as_millis() < 1000, "{took:?}");
    assert_eq!(redis.servers()[0].generation, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_process_runs_no_script_before_it_was_vetted() {
    let mut server = RedisServer::start().unwrap();
    let redis = connected(&server.url()).await;
    let (first, _) = echo(&redis, "x").await.unwrap();
    server.kill();
    server.again().unwrap();
    let mut errors = Vec::new();
    let healed = async || match echo(&redis, "x").await {
        Ok((run, _)) => run != first,
        Err(error) => {
            errors.push(error);
            false
        }
    };
    until("the new process answers", healed).await;
    assert!(errors.iter().all(|error| !matches!(error, CallError::Strange(_))), "{errors:?}");
    assert_eq!(redis.servers()[0].generation, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_is_not_used() {
    let primary = RedisServer::start().unwrap();
    let port = primary.port().to_string();
    let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &port]).unwrap();
    let redis = start(&replica.url());
    until("it is known", async || redis.servers()[0].trouble == Some(Trouble::NotPrimary)).await;
    assert_eq!(echo(&redis, "x").await, Err(CallError::Away));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_was_a_replica_for_a_moment_is_vetted_again() {
    let other = RedisServer::start_with(&["--repl-diskless-sync-delay", "0"]).unwrap();
    let server = RedisServer::start().unwrap();
    let redis = connected(&server.url()).await;
    let before = redis.servers()[0].clone();
    server.ask(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]);
    server.ask_until(&["INFO", "replication"], "master_link_status:up").unwrap();
    server.ask(&["REPLICAOF", "NO", "ONE"]);
    until("it is vetted again", async || {
        let now = &redis.servers()[0];
        now.connected && now.generation > before.generation
    })
    .await;
    assert_eq!(redis.servers()[0].run_id, before.run_id);
}

fn asked(seen: &Arc<Mutex<Vec<(bool, Tags)>>>, refusals: u64) -> Options {
    let (seen, refusals) = (seen.clone(), AtomicU64::new(refusals));
    options().checked_by(move |fresh| {
        let changed = fresh.before().is_some_and(|before| before != fresh.identity());
        seen.lock().unwrap().push((changed, fresh.tags().clone()));
        let refuse = refusals
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_ok();
        Box::pin(async move {
            let commands: Vec<_> = (0..3)
                .map(|n| cmd("SET").arg(format!("seen:{n}")).arg(fresh.run_id()).take())
                .collect();
            let answers = fresh.commands(&commands, PATIENT).await?;
            assert!(answers.iter().all(|answer| *answer == Ok(Value::Okay)), "{answers:?}");
            fresh.run(ECHO, &[b"k"], &["x".into()], PATIENT).await?;
            if refuse { Err(CallError::Unvetted) } else { Ok(()) }
        })
    })
}

async fn once_connected(redis: &Redis, generation: u64) {
    until("it is connected", async || {
        redis.servers()[0].connected && redis.servers()[0].generation >= generation
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_hook_ends_before_the_first_call_and_learns_of_another_process() {
    let mut server = RedisServer::start().unwrap();
    let seen = Arc::default();
    let redis = start_with(&server.url(), asked(&seen, 0));
    let mut vetted = redis.vetted();
    once_connected(&redis, 1).await;
    let key = cmd("GET").arg("seen:2").take();
    let run = redis.command(At::Home, &key, PATIENT).await.unwrap();
    assert_eq!(redis.servers()[0].run_id.as_deref(), Some(text(&run).as_str()));
    server.kill();
    server.again().unwrap();
    once_connected(&redis, 2).await;
    assert_eq!(*vetted.borrow_and_update(), 2);
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen, [(false, Tags::all()), (true, Tags::all())]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_says_no_keeps_the_connection_closed_until_it_says_yes() {
    let server = RedisServer::start().unwrap();
    let seen = Arc::default();
    let redis = start_with(&server.url(), asked(&seen, 3));
    once_connected(&redis, 1).await;
    assert_eq!(seen.lock().unwrap().len(), 4);
    let stats = redis.stats();
    assert_eq!((stats.connects_ok, stats.connects_failed), (1, 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_connection_after_a_cut_is_vetted_once_more() {
    let server = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(server.port()).unwrap();
    let redis = connected(&format!("redis://{}", proxy.address())).await;
    for _ in 0..5 {
        proxy.set(Fault::Cut);
        until("the cut is noticed", async || echo(&redis, "x").await == Err(CallError::Away)).await;
        proxy.set(Fault::Pass);
        until("it is back", async || echo(&redis, "x").await.is_ok()).await;
    }
    assert_eq!(redis.servers()[0].generation, 6);
    assert_eq!(redis.stats().connects_ok, 6);
}
