//! Whether the servers that these settings name can be used, for who looks before serving. It changes nothing there.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{interval, timeout};
use tollkeeper_redis::{Options, Redis, RedisUrl, ServerView};
use tollkeeper_store::{Store, StoreError};

use crate::settings::{Database, Settings};

/// Several attempts of half a second each: a server that is just starting is found.
const REDIS_PATIENCE: Duration = Duration::from_secs(3);
const REDIS_LOOK: Duration = Duration::from_millis(20);

/// `None` where the database is a file: whoever looks at folders looks at that one's.
pub async fn look_at_database(settings: &Settings) -> Option<Result<String, StoreError>> {
    let Database::Postgres { url, .. } = &settings.database else { return None };
    let found = match Store::look_at(url.expose()).await {
        Ok((at, version)) => format!("PostgreSQL {version} answers at {at}"),
        Err(error) => return Some(Err(error)),
    };
    Some(Ok(found))
}

/// What is wrong, if anything, in words for whoever runs it. Every server is vetted as it is before it is used: its release, that
/// it is a primary, that it keeps what it is given.
pub async fn look_at_redis(url: &RedisUrl) -> Result<String, String> {
    let redis = Redis::start(url, Options::default(), &Handle::current());
    let mut looks = interval(REDIS_LOOK);
    let connected = async {
        loop {
            looks.tick().await;
            let servers = redis.servers();
            if !servers.is_empty() && servers.iter().all(|server| server.connected) {
                return servers.len();
            }
        }
    };
    match timeout(REDIS_PATIENCE, connected).await {
        Ok(1) => Ok(format!("{url} answers and can be used")),
        Ok(servers) => Ok(format!("all {servers} servers of {url} answer and can be used")),
        Err(_) => Err(redis
            .servers()
            .iter()
            .find_map(trouble)
            .unwrap_or_else(|| format!("{url} does not answer"))),
    }
}

fn trouble(server: &ServerView) -> Option<String> {
    let address = server.address.as_ref().map(ToString::to_string).unwrap_or_default();
    let trouble = server.trouble.as_ref().filter(|_| !server.connected)?;
    Some(format!("{address}: {trouble}"))
}
