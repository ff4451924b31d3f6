//! How long usage by the minute is kept, and with it the ledger. Sums by day stay for good.

use tollkeeper_core::Millis;

use crate::bind::binds;
use crate::db::Purpose;
use crate::{Store, StoreError};

const DAY_MS: u64 = 86_400_000;

/// Usage by the minute, and the ledger with it.
pub const USAGE_KEPT_MS: u64 = 40 * DAY_MS;

/// Totals of minutes before this are not taken any more. A day less than the ledger remembers: no clock of the fleet is so
/// far off that something is taken again after its row has gone.
pub(super) const TOLD_MS: u64 = USAGE_KEPT_MS - DAY_MS;

/// Rows that one statement takes away: so few that it never runs into its time-out, and others get their turn in between.
macro_rules! some_of {
    ($table:literal, $columns:literal, $which:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE (",
            $columns,
            ") IN (SELECT ",
            $columns,
            " FROM ",
            $table,
            " WHERE ",
            $which,
            " ORDER BY minute LIMIT 5000)"
        )
    };
}

// === impl Store ===

impl Store {
    pub async fn forget_usage(&self, now: Millis) -> Result<(), StoreError> {
        const FORGET_TOLD: &str =
            some_of!("usage_ledger", "minute, boot, project_id, key_id", "minute < $1");
        const NEXT: &str = "SELECT MIN(project_id) FROM usage_minute WHERE project_id > $1";
        const FORGET: &str = some_of!(
            "usage_minute",
            "project_id, minute, key_id",
            "project_id = $2 AND minute < $1"
        );
        let before = Millis(now.0.saturating_sub(USAGE_KEPT_MS));
        let (read, write) = (self.db.read(Purpose::Background), self.db.write(Purpose::Background));
        while write.run(FORGET_TOLD, binds![before]).await? > 0 {}
        // From one project to the next by the index: to ask for all of them would read the table.
        let mut project_id = String::new();
        loop {
            let (next,): (Option<String>,) = read.one(NEXT, binds![&project_id]).await?;
            let Some(next) = next else { return Ok(()) };
            while write.run(FORGET, binds![before, &next]).await? > 0 {}
            project_id = next;
        }
    }
}
