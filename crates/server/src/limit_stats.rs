//! Writes down, every few seconds, what limits counted: asks, denials, and what watching rules would have denied.
//! Statistics, not accounts: a process that is killed loses the last seconds of them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tollkeeper_core::Millis;
use tollkeeper_decide::{CountOf, Counted, Counts, Decider};
use tollkeeper_store::{IdentityUse, LimitStat, Store, StoreError};

use crate::clock::Clock;
use crate::status::chain;

const WRITE: Duration = Duration::from_secs(5);

/// Runs until dropped. What cannot be written is counted again.
pub async fn keep(decider: Arc<Decider>, store: Store, clock: Clock) {
    let mut beats = interval(WRITE);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    loop {
        beats.tick().await;
        let written = write(&decider, &store, clock.now()).await;
        match &written {
            Err(error) if !failing => {
                tracing::error!("statistics of limits could not be written: {}", chain(error));
            }
            Ok(()) if failing => tracing::info!("statistics of limits are written again"),
            _ => {}
        }
        failing = written.is_err();
    }
}

/// What was counted since the last time; also at the end.
pub async fn write(decider: &Decider, store: &Store, now: Millis) -> Result<(), StoreError> {
    let drained = decider.counts().drain();
    if drained.is_empty() {
        return Ok(());
    }
    let (owners, limits): (Vec<_>, Vec<_>) =
        drained.into_iter().partition(|(of, _)| of.kind == Counted::Identity);
    let rows: Vec<_> = limits.iter().map(|one| row(one, now)).collect();
    // Of many rows some may be there although the whole failed: these few are counted twice, none is lost.
    if let Err(error) = store.add_limit_stats(&rows).await {
        decider.counts().put_back(limits);
        decider.counts().put_back(owners);
        return Err(error);
    }
    let uses: Vec<_> = owners.iter().map(of_identity).collect();
    let noted = store.note_identity_uses(&uses).await;
    if noted.is_err() {
        decider.counts().put_back(owners);
    }
    noted
}

fn row((of, counts): &(CountOf, Counts), now: Millis) -> LimitStat {
    LimitStat {
        tenant_id: of.tenant_id.to_string(),
        minute: now,
        kind: of.kind,
        subject: of.subject.to_string(),
        name: of.name.to_string(),
        hits: counts.hits,
        denied: counts.denied,
        shadow: counts.shadow,
    }
}

fn of_identity((of, counts): &(CountOf, Counts)) -> IdentityUse {
    let (identity_id, exceeded) = (of.subject.to_string(), counts.denied);
    IdentityUse { identity_id, exceeded, last_request_at: counts.seen_at }
}
