//! The archive's daily run inside a server. Of a fleet one node does it, by a lock in the database.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tollkeeper_archive::{ArchiveError, Outcome, Place, archive};
use tollkeeper_core::Millis;
use tollkeeper_store::Store;

use crate::clock::Clock;
use crate::settings::cloud_environment;

const DAY_MS: u64 = 86_400_000;

/// A month ends once in a month; a day is how long a run that failed may go unnoticed by the next.
const DAILY: Duration = Duration::from_hours(24);

/// Runs until dropped. The first run comes with the start, since a server may not live for a day.
pub async fn archive_daily(store: Store, place: String, days: u64, clock: Clock) {
    let mut beats = interval(DAILY);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beats.tick().await;
        let before = Millis(clock.now().0.saturating_sub(days.saturating_mul(DAY_MS)));
        match run(&store, &place, before).await {
            Ok(Outcome::Done(months)) => {
                for month in months {
                    let (label, object) = (month.month, &month.object);
                    tracing::info!("archived {} audit rows of {label} as {object}", month.rows);
                }
            }
            Ok(Outcome::Busy) => tracing::debug!("another node archives"),
            Err(error) => {
                tracing::error!(
                    "the archive failed and is tried again tomorrow: {}",
                    with_causes(&error)
                );
            }
        }
    }
}

async fn run(store: &Store, place: &str, before: Millis) -> Result<Outcome, ArchiveError> {
    let place = Place::open(place, &cloud_environment())?;
    archive(store, &place, before, &mut |_| {}).await
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
