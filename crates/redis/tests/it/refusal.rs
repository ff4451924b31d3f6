//! What a server refuses, and that nothing was done then.

use tollkeeper_redis::{At, CallError, Heard, Options, Refusal, ScriptId, Trouble, cmd};
use tollkeeper_testkit::RedisServer;

use crate::{PATIENT, connected, count, echo, options, start, start_with, until};

fn with_login(server: &RedisServer, login: &str) -> String {
    format!("redis://{login}@127.0.0.1:{}", server.port())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_named_as_the_reason_and_the_right_one_works() {
    let server = RedisServer::start_with(&["--requirepass", "right"]).unwrap();
    for url in [server.url(), with_login(&server, ":wrong"), with_login(&server, "nobody:right")] {
        let redis = start(&url);
        until("the reason is known", async || {
            matches!(redis.servers()[0].trouble, Some(Trouble::Refused(Refusal::NoAuth(_))))
        })
        .await;
        assert_eq!(echo(&redis, "x").await, Err(CallError::Away));
    }
    let redis = connected(&with_login(&server, ":right")).await;
    assert!(echo(&redis, "x").await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_with_the_documented_rights_can_work_and_no_more() {
    let server = RedisServer::start().unwrap();
    let rights = "+info +role +script|load +evalsha +incr +get +set +publish +subscribe";
    let mut rule = vec!["ACL", "SETUSER", "tk", "on", ">pw", "~*", "&*"];
    rule.extend(rights.split(' '));
    assert_eq!(server.ask(&rule), "OK");
    let redis = connected(&with_login(&server, "tk:pw")).await;
    assert_eq!(count(&redis, 1, PATIENT).await, Ok(1));
    let mut subscription = redis.subscribe("tk:bus");
    assert_eq!(subscription.next().await, Heard::Gap);
    redis.publish("tk:bus", b"hello", PATIENT).await.unwrap();
    assert_eq!(subscription.next().await, Heard::Message(b"hello".to_vec()));
    let failed = redis.command(At::Home, &cmd("FLUSHALL"), PATIENT).await.unwrap_err();
    assert!(matches!(failed, CallError::Refused(Refusal::NoPermission(_))), "{failed:?}");
    assert!(!failed.maybe_applied());
    server.ask(&["ACL", "SETUSER", "tk", "-evalsha"]);
    let failed = count(&redis, 1, PATIENT).await.unwrap_err();
    assert!(matches!(failed, CallError::Refused(Refusal::NoPermission(_))), "{failed:?}");
    assert_eq!(server.ask(&["GET", "count:{1}"]), "1");
    let denied = redis.servers()[0].connected;
    assert!(denied, "a missing right is no reason to connect again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_may_not_load_scripts_never_gets_a_connection_and_is_told_why() {
    let server = RedisServer::start().unwrap();
    server.ask(&["ACL", "SETUSER", "tk", "on", ">pw", "~*", "+info", "+role", "+evalsha"]);
    let redis = start(&with_login(&server, "tk:pw"));
    until("the reason is known", async || {
        matches!(redis.servers()[0].trouble, Some(Trouble::Refused(Refusal::NoPermission(_))))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_server_refuses_before_it_writes() {
    let server = RedisServer::start().unwrap();
    let redis = connected(&server.url()).await;
    assert_eq!(count(&redis, 1, PATIENT).await, Ok(1));
    server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    let failed = count(&redis, 1, PATIENT).await;
    assert_eq!(failed, Err(CallError::Refused(Refusal::OutOfMemory)));
    server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(count(&redis, 1, PATIENT).await, Ok(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_turned_replica_refuses_as_read_only_and_is_not_asked_again() {
    let (other, server) = (RedisServer::start().unwrap(), RedisServer::start().unwrap());
    let redis = connected(&server.url()).await;
    server.ask(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]);
    let failed = count(&redis, 1, PATIENT).await.unwrap_err();
    assert_eq!(
        (failed.clone(), failed.maybe_applied()),
        (CallError::Refused(Refusal::ReadOnly), false)
    );
    assert_eq!(count(&redis, 1, PATIENT).await, Err(CallError::Away));
    until("why", async || redis.servers()[0].trouble == Some(Trouble::NotPrimary)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_loads_its_data_is_not_used_before_it_has() {
    let mut server = RedisServer::start_with(&[
        "--enable-debug-command",
        "yes",
        "--key-load-delay",
        "5000",
        "--loading-process-events-interval-bytes",
        "1024",
    ])
    .unwrap();
    server.ask(&["DEBUG", "POPULATE", "300", "key", "1000"]);
    server.ask(&["SAVE"]);
    server.kill();
    server.again().unwrap();
    let redis = start(&server.url());
    until("the reason is known", async || {
        redis.servers()[0].trouble == Some(Trouble::Refused(Refusal::Loading))
    })
    .await;
    assert_eq!(count(&redis, 1, PATIENT).await, Err(CallError::Away));
    until("it has loaded", async || count(&redis, 1, PATIENT).await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_that_fails_midway_is_maybe_applied() {
    let server = RedisServer::start().unwrap();
    let scripts = vec!["redis.call('SET', KEYS[1], 1) return redis.call('LPUSH', KEYS[1], 1)"];
    let redis = start_with(&server.url(), Options { scripts, ..options() });
    until("it is connected", async || redis.servers()[0].connected).await;
    let failed = redis.run(1, ScriptId(0), &[b"k:{1}"], &[], PATIENT).await.unwrap_err();
    assert!(matches!(failed, CallError::Aborted(_)) && failed.maybe_applied(), "{failed:?}");
    assert_eq!(server.ask(&["GET", "k:{1}"]), "1");
    let unknown = redis.run(1, ScriptId(9), &[b"k:{1}"], &[], PATIENT).await.unwrap_err();
    let nowhere = redis.run(1024, ScriptId(0), &[b"k"], &[], PATIENT).await.unwrap_err();
    assert!(!unknown.maybe_applied() && !nowhere.maybe_applied());
}
