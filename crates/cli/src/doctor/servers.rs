//! Whether PostgreSQL and Redis, where the settings name them, can be used from here.
//! It only looks: no table is made and no script loaded.

use std::io;

use tollkeeper_server::offline::{look_at_database, look_at_redis};
use tollkeeper_server::settings::Settings;

use super::finding::Finding;

pub(super) fn check(settings: &Settings) -> Vec<Finding> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let looked = runtime.map(|runtime| runtime.block_on(look(settings)));
    looked.unwrap_or_else(|error: io::Error| {
        vec![Finding::warn(
            "servers",
            format!("not looked at: {error}"),
            "see the limits of this user",
        )]
    })
}

async fn look(settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    match look_at_database(settings).await {
        None => {}
        Some(Ok(found)) => findings.push(Finding::ok("database", found)),
        Some(Err(error)) => {
            // The text of the fault says what to do.
            let next = std::error::Error::source(&error).map(ToString::to_string);
            let next = next.unwrap_or_else(|| "check TOLLKEEPER_DATABASE_URL".to_owned());
            findings.push(Finding::fail("database", error.to_string(), next));
        }
    }
    if let Some(url) = &settings.redis {
        findings.push(match look_at_redis(url).await {
            Ok(found) => Finding::ok("redis", found),
            // A server starts without it, and limits go by what they say for an outage.
            Err(trouble) => Finding::fail(
                "redis",
                trouble,
                "see that it runs and can be reached from here, or correct TOLLKEEPER_REDIS_URL",
            ),
        });
    }
    findings
}
