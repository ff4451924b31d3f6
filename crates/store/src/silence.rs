//! Leases of credits whose process has not been heard of for so long that it has stopped spending from them. They are in no
//! balance. Should the process come back, or the next one read its journal, what was not spent is there again, unless the
//! balance was set or filled up meanwhile: then the lease counts as spent for good.
//!
//! Silence is measured by the clock of the database alone, which wrote down when it heard of the process.

use tollkeeper_decide::LEASE_LIFE_MS;

use crate::bind::binds;
use crate::db::{Conn, Purpose};
use crate::{Store, StoreError};

/// Text with the time of the database in every gap, for SQLite and for PostgreSQL.
macro_rules! by_clock {
    ($first:expr $(, $next:expr)*) => {
        [
            concat!($first $(, "CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER)", $next)*),
            concat!(
                $first $(, "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)", $next)*
            ),
        ]
    };
}

/// After it comes the time of the database. A build that does not know that it has to stop leaves `heard_at` empty; such a
/// process says something of each lease once a day, or gives it back.
macro_rules! silent_before {
    () => {
        "COALESCE(heard_at, updated_at + 86400000) < -600000 + "
    };
}

pub(crate) use {by_clock, silent_before};

const _: () = assert!(2 * LEASE_LIFE_MS == 600_000, "the statements say how long silence is");

/// A journal that is brought back after a month brings no credits back.
const KEPT_MS: i64 = 30 * 86_400_000;

// === impl Store ===

impl Store {
    /// What this process held counts as spent: it is dead, and nobody knows how much of it was.
    pub async fn void_leases_of(&self, boot: [u8; 16]) -> Result<u64, StoreError> {
        const VOID: &str =
            "UPDATE credit_leases SET spent = granted WHERE boot = $1 AND granted > spent";
        self.db.write(Purpose::Background).run(VOID, binds![boot.as_slice()]).await
    }

    /// The same for all processes but these. For who is sure that no other one is alive.
    pub async fn void_leases_but(&self, known: &[[u8; 16]]) -> Result<u64, StoreError> {
        const HOLDERS: &str = "SELECT DISTINCT boot FROM credit_leases WHERE granted > spent";
        let holders: Vec<(Vec<u8>,)> = self.db.read(Purpose::Background).all(HOLDERS, &[]).await?;
        let lost = holders
            .into_iter()
            .filter_map(|(boot,)| <[u8; 16]>::try_from(boot).ok())
            .filter(|boot| !known.contains(boot));
        let mut voided = 0;
        for boot in lost {
            voided += self.void_leases_of(boot).await?;
        }
        Ok(voided)
    }

    /// For good, so that they are forgotten like every lease of which nothing is out.
    pub async fn void_old_leases(&self) -> Result<u64, StoreError> {
        const VOID: [&str; 2] = by_clock!(
            concat!(
                "UPDATE credit_leases SET spent = granted WHERE granted > spent AND ",
                silent_before!()
            ),
            " - $1"
        );
        let to = self.db.write(Purpose::Background);
        to.run(to.which(VOID), binds![KEPT_MS]).await
    }
}

/// To be called with the key's row locked, by whoever makes the balance a number that leases it does not count must not add to.
pub(crate) async fn void_silent(conn: Conn<'_>, key_id: &str) -> Result<(), StoreError> {
    const VOID: [&str; 2] = by_clock!(
        concat!(
            "UPDATE credit_leases SET spent = granted WHERE key_id = $1 AND ",
            silent_before!()
        ),
        ""
    );
    let void = conn.which(VOID);
    conn.run(void, binds![key_id]).await?;
    Ok(())
}
