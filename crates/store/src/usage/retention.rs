//! How long usage by the minute is kept, and with it the ledger. Sums by day stay for good.

use tollkeeper_core::Millis;

use crate::bind::{binds, signed, unsigned};
use crate::db::Purpose;
use crate::{Store, StoreError};

const DAY_MS: u64 = 86_400_000;
const HOUR_MS: u64 = 3_600_000;

/// Usage by the minute, and the ledger with it.
pub const USAGE_KEPT_MS: u64 = 40 * DAY_MS;

/// Totals of minutes before this are not taken any more. A day less than the ledger remembers: no clock of the fleet is so
/// far off that something is taken again after its row has gone.
pub(super) const TOLD_MS: u64 = USAGE_KEPT_MS - DAY_MS;

// === impl Store ===

impl Store {
    /// An hour of one table at a time, so that no statement takes long and others get their turn.
    pub async fn forget_usage(&self, now: Millis) -> Result<(), StoreError> {
        const FIRST_TOLD: &str = "SELECT MIN(minute) FROM usage_ledger";
        const FORGET_TOLD: &str = "DELETE FROM usage_ledger WHERE minute < $1";
        const PROJECTS: &str = "SELECT DISTINCT project_id FROM usage_minute";
        const FIRST: &str = "SELECT MIN(minute) FROM usage_minute WHERE project_id = $1";
        const FORGET: &str = "DELETE FROM usage_minute WHERE project_id = $2 AND minute < $1";
        let before = now.0.saturating_sub(USAGE_KEPT_MS);
        let (read, write) = (self.db.read(Purpose::Background), self.db.write(Purpose::Background));
        loop {
            let (first,): (Option<i64>,) = read.one(FIRST_TOLD, &[]).await?;
            let Some(until) = step(first, before) else { break };
            write.run(FORGET_TOLD, binds![until]).await?;
        }
        let projects: Vec<(String,)> = read.all(PROJECTS, &[]).await?;
        for (project_id,) in &projects {
            loop {
                let (first,): (Option<i64>,) = read.one(FIRST, binds![project_id]).await?;
                let Some(until) = step(first, before) else { break };
                write.run(FORGET, binds![until, project_id]).await?;
            }
        }
        Ok(())
    }
}

/// The end of the next hour that may go, if there is one.
fn step(first: Option<i64>, before: u64) -> Option<i64> {
    let first = unsigned(first?);
    (first < before).then(|| signed((first + HOUR_MS).min(before)))
}
