//! A server that would drop records on its own is not used, and says why.

use tollkeeper_redis::{CallError, Trouble};
use tollkeeper_testkit::RedisServer;

use crate::{connected, echo, start, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_evicts_is_refused_in_words_until_it_is_told_not_to() {
    for policy in ["allkeys-lru", "volatile-ttl"] {
        let bounded = ["--maxmemory", "100mb", "--maxmemory-policy", policy];
        let server = RedisServer::start_with(&bounded).unwrap();
        let redis = start(&server.url());
        until("the reason is known", async || redis.servers()[0].trouble.is_some()).await;
        let trouble = redis.servers()[0].trouble.clone().unwrap();
        assert_eq!(trouble, Trouble::Evicts(policy.into()));
        assert!(trouble.to_string().contains("noeviction"), "{trouble}");
        assert_eq!(echo(&redis, "x").await, Err(CallError::Away));
        server.ask(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        until("it is used", async || echo(&redis, "x").await.is_ok()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_memory_has_no_bound_evicts_nothing_whatever_its_policy_says() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "allkeys-lru"]).unwrap();
    let redis = connected(&server.url()).await;
    assert!(echo(&redis, "x").await.is_ok());
}
