//! Entries of the shared cache on a real server: what is newer stays, whatever order nodes come in.

use std::time::Duration;

use tokio::runtime::Handle;
use tollkeeper_core::Boot;
use tollkeeper_decide::Origin;
use tollkeeper_redis::{ConfigCache, EntryKind, EntryName, Kept, Over, RedisOrigin, RedisUrl};
use tollkeeper_testkit::{RedisCluster, RedisServer};

use crate::until;

const MINUTE: Duration = Duration::from_mins(1);

async fn connected(url: &str) -> (RedisOrigin, ConfigCache) {
    let url: RedisUrl = url.parse().unwrap();
    let origin = RedisOrigin::start(&url, Boot(1), &Handle::current());
    until("it is connected", async || {
        let servers = origin.servers();
        servers > 0 && (0..servers).all(|server| origin.is_connected(server))
    })
    .await;
    let cache = ConfigCache::new(origin.redis().clone());
    (origin, cache)
}

fn entry(revision: u64, text: &str) -> Kept {
    Kept { revision, sealed: text.as_bytes().to_vec() }
}

#[tokio::test]
async fn a_slow_load_takes_the_place_of_neither_a_newer_one_nor_a_notice() {
    let server = RedisServer::start().unwrap();
    let (_origin, cache) = connected(&server.url()).await;
    let name = EntryName::new(EntryKind::Key, [7; 16]);
    assert_eq!(cache.recall(&name).await.unwrap(), None);
    let notice = entry(12, "");
    let steps = [
        (entry(10, "ten"), Over::OlderOrSame, true),
        (entry(9, "nine"), Over::OlderOrSame, false),
        (entry(10, "ten again"), Over::OlderOrSame, true),
        (notice.clone(), Over::Older, true),
        (notice.clone(), Over::Older, false),
        (entry(11, "read before the change"), Over::OlderOrSame, false),
        (entry(12, "\0read\r\nafter it"), Over::OlderOrSame, true),
        // The same change, followed by a slower node.
        (notice, Over::Older, false),
        (entry((1 << 53) - 1, "the last"), Over::OlderOrSame, true),
        (entry((1 << 53) - 2, "the last but one"), Over::OlderOrSame, false),
    ];
    let mut held = None;
    for (kept, over, expected) in steps {
        assert_eq!(cache.keep(&name, &kept, over, MINUTE).await, Ok(expected), "{kept:?}");
        held = if expected { Some(kept) } else { held };
        assert_eq!(cache.recall(&name).await.unwrap(), held);
    }
    let other = EntryName::new(EntryKind::Key, [8; 16]);
    assert_eq!(cache.recall(&other).await.unwrap(), None);
}

#[tokio::test]
async fn an_entry_ends_when_its_time_is_over_and_a_renewed_one_later() {
    let server = RedisServer::start().unwrap();
    let (_origin, cache) = connected(&server.url()).await;
    let name = EntryName::new(EntryKind::ProjectBySlug, [1; 16]);
    let left = || server.ask(&["PTTL", name.text()]).parse::<u64>().unwrap();
    cache.keep(&name, &entry(1, "a"), Over::OlderOrSame, Duration::from_secs(10)).await.unwrap();
    assert!((1..=10_000).contains(&left()));
    cache.keep(&name, &entry(1, "a"), Over::OlderOrSame, MINUTE).await.unwrap();
    assert!((50_000..=60_000).contains(&left()));
}

#[tokio::test]
async fn what_another_version_or_program_left_there_is_no_entry_and_is_written_over() {
    let server = RedisServer::start().unwrap();
    let (_origin, cache) = connected(&server.url()).await;
    let name = EntryName::new(EntryKind::Key, [2; 16]);
    server.ask(&["SET", name.text(), "something else altogether"]);
    assert_eq!(cache.recall(&name).await.unwrap(), None);
    assert_eq!(cache.keep(&name, &entry(1, "a"), Over::Older, MINUTE).await, Ok(true));
    assert_eq!(cache.recall(&name).await.unwrap(), Some(entry(1, "a")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_cluster_every_entry_is_found_on_the_server_of_its_name() {
    let cluster = RedisCluster::start().unwrap();
    let (_origin, cache) = connected(&cluster.url()).await;
    for number in 0..100_u8 {
        let name = EntryName::new(EntryKind::Key, [number; 16]);
        let kept = entry(u64::from(number), "a");
        until("its server takes it", async || {
            cache.keep(&name, &kept, Over::OlderOrSame, MINUTE).await == Ok(true)
        })
        .await;
        assert_eq!(cache.recall(&name).await.unwrap(), Some(kept));
    }
}
