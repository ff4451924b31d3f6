//! Credits leased to processes. Every message holds totals of one process's life, so a repeated one changes nothing,
//! and the key's row is locked while units move, so no two processes are granted the same ones.
//! A process says something of each lease while it spends from it: where it says nothing for long enough, it has stopped,
//! or is dead. Such a lease is in no balance any more, see [`crate::silence`].

use tollkeeper_core::Millis;
use tollkeeper_decide::{Bank, CreditLease, Loading};

use crate::bind::{binds, signed, unsigned};
use crate::credits::lock_purse;
use crate::db::{Conn, Purpose};
use crate::directory::loading;
use crate::silence::by_clock;
use crate::{Store, StoreError};

/// The larger of what is known and what is told, and never more than was granted.
macro_rules! most_spent {
    () => {
        "CASE WHEN $3 > granted THEN granted WHEN $3 > spent THEN $3 ELSE spent END"
    };
}

// === impl Bank ===

impl Bank for Store {
    fn lease(
        &self,
        key_id: &str,
        boot: [u8; 16],
        known: CreditLease,
        want: u64,
        now: Millis,
    ) -> Loading<Option<CreditLease>> {
        let (store, key_id) = (self.clone(), key_id.to_owned());
        loading(async move { store.lease_credits(&key_id, boot, known, want, now).await })
    }

    fn report(&self, key_id: &str, boot: [u8; 16], spent: u64) -> Loading<()> {
        let (store, key_id) = (self.clone(), key_id.to_owned());
        loading(async move { store.note_spending(&key_id, boot, spent).await })
    }

    fn give_back(&self, key_id: &str, boot: [u8; 16], spent: u64) -> Loading<()> {
        let (store, key_id) = (self.clone(), key_id.to_owned());
        loading(async move { store.end_lease(&key_id, boot, spent).await })
    }
}

// === impl Store ===

impl Store {
    async fn lease_credits(
        &self,
        key_id: &str,
        boot: [u8; 16],
        known: CreditLease,
        want: u64,
        now: Millis,
    ) -> Result<Option<CreditLease>, StoreError> {
        const SPENT: [&str; 2] = by_clock!(
            "UPDATE credit_leases SET spent = $3, updated_at = $4, heard_at = ",
            " WHERE key_id = $1 AND boot = $2"
        );
        const TAKE: &str = "UPDATE keys SET credits_remaining = $2 WHERE id = $1";
        const PUT: [&str; 2] = by_clock!(
            "INSERT INTO credit_leases (key_id, boot, granted, spent, updated_at, heard_at)
            VALUES ($1, $2, $3, $4, $5, ",
            ") ON CONFLICT (key_id, boot) DO UPDATE SET
                granted = excluded.granted, spent = excluded.spent,
                updated_at = excluded.updated_at, heard_at = excluded.heard_at"
        );
        let mut begun = self.db.begin(Purpose::Miss).await?;
        let Some(locked) = lock_purse(begun.conn(), key_id).await? else {
            return Ok(None);
        };
        // What is known to be spent was spent before the refill: it is not counted as held.
        let held = lease_of(begun.conn(), key_id, boot).await?;
        if let Some((granted, spent)) = held {
            let spent = signed(spent.max(known.spent).min(granted));
            let note = begun.conn().which(SPENT);
            begun.conn().run(note, binds![key_id, boot.as_slice(), spent, now]).await?;
        }
        let purse = locked.refilled(begun.conn(), key_id, now).await?;
        let (lease, remaining) = grant(held, known, want, purse.remaining);
        let boot = boot.as_slice();
        begun.conn().run(TAKE, binds![key_id, remaining]).await?;
        let (granted, spent) = (signed(lease.granted), signed(lease.spent));
        let put = begun.conn().which(PUT);
        begun.conn().run(put, binds![key_id, boot, granted, spent, now]).await?;
        begun.commit().await?;
        Ok(Some(lease))
    }

    /// No lease, or one that knows of more already: nothing to do.
    async fn note_spending(
        &self,
        key_id: &str,
        boot: [u8; 16],
        spent: u64,
    ) -> Result<(), StoreError> {
        const NOTE: [&str; 2] = by_clock!(
            concat!("UPDATE credit_leases SET spent = ", most_spent!(), ", heard_at = "),
            ", updated_at = CASE WHEN updated_at > ",
            " THEN updated_at ELSE ",
            " END WHERE key_id = $1 AND boot = $2"
        );
        let to = self.db.write(Purpose::Background);
        let note = to.which(NOTE);
        to.run(note, binds![key_id, boot.as_slice(), signed(spent)]).await?;
        Ok(())
    }

    /// The key's row goes first, as everywhere: two ways to lock the same two rows would wait for each other.
    async fn end_lease(&self, key_id: &str, boot: [u8; 16], spent: u64) -> Result<(), StoreError> {
        const LOCK: &str = "UPDATE keys SET credits_remaining = credits_remaining
            WHERE id = $1 RETURNING id";
        const SPENT: &str = concat!(
            "UPDATE credit_leases SET spent = ",
            most_spent!(),
            " WHERE key_id = $1 AND boot = $2 RETURNING granted - spent"
        );
        const END: &str =
            "UPDATE credit_leases SET granted = spent WHERE key_id = $1 AND boot = $2";
        const RETURN: &str =
            "UPDATE keys SET credits_remaining = credits_remaining + $2 WHERE id = $1";
        let boot = boot.as_slice();
        let mut begun = self.db.begin(Purpose::Background).await?;
        let key: Option<(String,)> = begun.conn().optional(LOCK, binds![key_id]).await?;
        if key.is_none() {
            return Ok(());
        }
        let unspent: Option<(i64,)> =
            begun.conn().optional(SPENT, binds![key_id, boot, signed(spent)]).await?;
        let Some((unspent,)) = unspent else { return Ok(()) };
        begun.conn().run(END, binds![key_id, boot]).await?;
        begun.conn().run(RETURN, binds![key_id, unspent]).await?;
        begun.commit().await
    }

    /// The keys of which this process holds credits: what a start after its death has to settle.
    pub async fn leases_of(&self, boot: [u8; 16]) -> Result<Vec<String>, StoreError> {
        const HELD: &str =
            "SELECT key_id FROM credit_leases WHERE boot = $1 AND granted > spent ORDER BY key_id";
        let mut begun = self.db.begin(Purpose::Background).await?;
        let held: Vec<(String,)> = begun.conn().all(HELD, binds![boot.as_slice()]).await?;
        Ok(held.into_iter().map(|(key_id,)| key_id).collect())
    }

    /// Forgets leases of which nothing is out and nothing was heard since: of processes that ended long ago.
    pub async fn forget_ended_leases(&self, before: Millis) -> Result<u64, StoreError> {
        const FORGET: &str = "DELETE FROM credit_leases WHERE granted = spent AND updated_at < $1";
        self.db.write(Purpose::Background).run(FORGET, binds![before]).await
    }
}

async fn lease_of(
    conn: Conn<'_>,
    key_id: &str,
    boot: [u8; 16],
) -> Result<Option<(u64, u64)>, StoreError> {
    const FIND: &str = "SELECT granted, spent FROM credit_leases WHERE key_id = $1 AND boot = $2";
    let found: Option<(i64, i64)> = conn.optional(FIND, binds![key_id, boot.as_slice()]).await?;
    Ok(found.map(|(granted, spent)| (unsigned(granted), unsigned(spent))))
}

/// One step from what the row says and what the process says to the new lease and what is left in the key's row.
///
/// The process wants `want` on top of what it knows to have. If the row says more, an earlier answer got lost: those
/// units count first. Without a row nothing is out: what the process has spent it has spent, and the rest is not its own.
fn grant(
    held: Option<(u64, u64)>,
    known: CreditLease,
    want: u64,
    remaining: i64,
) -> (CreditLease, i64) {
    let (granted, spent) = held.unwrap_or((known.spent, known.spent));
    let spent = spent.max(known.spent).min(granted);
    let in_hand = if held.is_some() { known.granted.saturating_sub(known.spent) } else { 0 };
    let lost = (granted - spent).saturating_sub(in_hand);
    let more = signed(want.saturating_sub(lost)).min(remaining.max(0));
    let granted = granted.saturating_add(unsigned(more));
    let left = remaining - more;
    (CreditLease { granted, spent, left: unsigned(left) }, left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(granted: u64, spent: u64) -> CreditLease {
        CreditLease { granted, spent, left: 0 }
    }

    #[test]
    fn a_grant_repeated_gives_the_same_units_and_no_more() {
        let (first, left) = grant(None, known(0, 0), 10, 25);
        assert_eq!((first.granted, first.left, left), (10, 15, 15));
        let (again, left) = grant(Some((10, 0)), known(0, 0), 10, left);
        assert_eq!((again.granted, left), (10, 15));
        let (more, left) = grant(Some((10, 0)), known(10, 7), 10, left);
        assert_eq!((more.granted, more.spent, left), (20, 7, 5));
        let (rest, left) = grant(Some((20, 7)), known(20, 20), 10, left);
        assert_eq!((rest.granted, rest.left, left), (25, 0, 0));
    }

    #[test]
    fn a_debt_grants_nothing_and_stays() {
        let (lease, left) = grant(None, known(0, 0), 5, -3);
        assert_eq!((lease.granted, lease.left, left), (0, 0, -3));
    }

    #[test]
    fn what_was_given_back_is_not_claimed_again() {
        let (lease, left) = grant(None, known(30, 12), 5, 100);
        assert_eq!((lease.granted, lease.spent, left), (17, 12, 95));
    }
}
