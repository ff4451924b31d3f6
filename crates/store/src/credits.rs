//! The credits of a key: what nobody holds yet (in the key's row) and what processes hold (their leases).
//! Refills happen on the way, once per due moment, in whichever transaction comes first.

use serde_json::json;
use tollkeeper_core::{AMOUNT_MAX, CreditRefill, Millis, RefillEvery};

use crate::announce::announce_key;
use crate::bind::{binds, moment, signed, unsigned};
use crate::change::{By, Written};
use crate::db::Conn;
use crate::silence::{by_clock, silent_before, void_silent};
use crate::{Store, StoreError, Thing};

/// Of a key that has a limit on them; `None` in its place is a key that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credits {
    pub remaining: u64,
    pub refill: Option<CreditRefill>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditsChange {
    /// `None`: unlimited, and never refilled.
    Set(Option<u64>),
    Increment(u64),
    /// Down to zero at most.
    Decrement(u64),
}

/// A limited key's credits while its row is locked: nobody is granted any meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purse {
    pub(crate) remaining: i64,
    pub(crate) refill: Option<CreditRefill>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LockedPurse {
    purse: Purse,
    refilled_at: Millis,
}

#[derive(sqlx::FromRow)]
struct PurseRow {
    credits_remaining: Option<i64>,
    refill_every: Option<String>,
    refill_day: Option<i64>,
    refill_amount: Option<i64>,
    refilled_at: Option<i64>,
}

// === impl Store ===

impl Store {
    /// The balance counts what processes hold and have not spent: setting it never grants those units twice.
    pub async fn update_credits(
        &self,
        by: By<'_>,
        key_id: &str,
        wanted: CreditsChange,
    ) -> Result<Written<Option<Credits>>, StoreError> {
        const OF_TENANT: &str =
            "SELECT id FROM keys WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL";
        let mut change = self.change(by.now).await?;
        let mine: Option<(String,)> =
            change.sql().optional(OF_TENANT, binds![by.tenant_id, key_id]).await?;
        if mine.is_none() {
            return Err(StoreError::no(Thing::Key, key_id));
        }
        let purse = open_purse(change.sql(), key_id, by.now).await?;
        let out = outstanding(change.sql(), key_id).await?;
        let balance = |purse: Purse| unsigned(purse.remaining + out);
        let set = match (wanted, purse) {
            (CreditsChange::Set(amount), _) => amount,
            (CreditsChange::Increment(more), Some(purse)) => {
                let sum = balance(purse).saturating_add(more);
                // Above it a number is not the same number in every client's JSON.
                if sum > AMOUNT_MAX {
                    return Err(StoreError::CreditsBeyond { max: AMOUNT_MAX });
                }
                Some(sum)
            }
            (CreditsChange::Decrement(less), Some(purse)) => {
                Some(balance(purse).saturating_sub(less))
            }
            (_, None) => return Err(StoreError::CreditsUnlimited),
        };
        let refill = purse.and_then(|purse| purse.refill).filter(|_| set.is_some());
        if matches!(wanted, CreditsChange::Set(_)) {
            void_silent(change.sql(), key_id).await?;
        }
        let after = set.map(|remaining| Credits { remaining, refill });
        set_balance(change.sql(), key_id, set, out, by.now).await?;
        announce_key(&mut change, key_id).await?;
        let shown = |credits: Option<u64>| Some(json!({ "remaining": credits }));
        let (before, now) = (shown(purse.map(balance)), shown(set));
        change.audit(by, "keys.updateCredits", key_id, before, now).await?;
        change.commit(after).await
    }
}

/// Locks the key's row until the transaction ends, and refills it if that is due. `None`: no limit on credits, or no key.
pub(crate) async fn open_purse(
    mut conn: Conn<'_>,
    key_id: &str,
    now: Millis,
) -> Result<Option<Purse>, StoreError> {
    match lock_purse(conn.again(), key_id).await? {
        Some(locked) => Ok(Some(locked.refilled(conn, key_id, now).await?)),
        None => Ok(None),
    }
}

/// For who has something to write down between the lock and the refill.
pub(crate) async fn lock_purse(
    conn: Conn<'_>,
    key_id: &str,
) -> Result<Option<LockedPurse>, StoreError> {
    // An update that changes nothing is the one lock on a row that both databases know.
    const LOCK: &str = "UPDATE keys SET credits_remaining = credits_remaining
        WHERE id = $1 AND deleted_at IS NULL
        RETURNING credits_remaining, refill_every, refill_day, refill_amount, refilled_at";
    let row: Option<PurseRow> = conn.optional(LOCK, binds![key_id]).await?;
    Ok(row.and_then(|row| {
        let refill = refill_of(row.refill_every.as_deref(), row.refill_day, row.refill_amount);
        let purse = Purse { remaining: row.credits_remaining?, refill };
        Some(LockedPurse { purse, refilled_at: moment(row.refilled_at).unwrap_or_default() })
    }))
}

// === impl LockedPurse ===

impl LockedPurse {
    pub(crate) async fn refilled(
        self,
        mut conn: Conn<'_>,
        key_id: &str,
        now: Millis,
    ) -> Result<Purse, StoreError> {
        const REFILL: &str =
            "UPDATE keys SET credits_remaining = $2, refilled_at = $3 WHERE id = $1";
        let Self { mut purse, refilled_at } = self;
        if let Some((due, amount)) = due_refill(purse.refill, refilled_at, now) {
            write_off(conn.again(), key_id, refilled_at).await?;
            let out = outstanding(conn.again(), key_id).await?;
            if amount - out > purse.remaining {
                void_silent(conn.again(), key_id).await?;
                purse.remaining = amount - out;
            }
            conn.run(REFILL, binds![key_id, purse.remaining, due]).await?;
        }
        Ok(purse)
    }
}

/// The moment that is due and the amount the balance is brought up to.
pub(crate) fn due_refill(
    refill: Option<CreditRefill>,
    last: Millis,
    now: Millis,
) -> Option<(Millis, i64)> {
    let refill = refill?;
    let due = refill.every.last_due(now);
    (due > last).then_some((due, signed(refill.amount)))
}

/// Leases of which nothing was heard since the refill before this one: their process is gone for a day or a month,
/// and what it held was part of a balance that is over.
async fn write_off(conn: Conn<'_>, key_id: &str, last_refill: Millis) -> Result<(), StoreError> {
    const WRITE_OFF: &str =
        "UPDATE credit_leases SET spent = granted WHERE key_id = $1 AND updated_at < $2";
    conn.run(WRITE_OFF, binds![key_id, last_refill]).await?;
    Ok(())
}

/// What living processes hold of this key and have not spent, as far as they told.
pub(crate) async fn outstanding(conn: Conn<'_>, key_id: &str) -> Result<i64, StoreError> {
    const SUM: [&str; 2] = by_clock!(
        concat!(
            "SELECT CAST(COALESCE(SUM(granted - spent), 0) AS BIGINT)
            FROM credit_leases WHERE key_id = $1 AND NOT ",
            silent_before!()
        ),
        ""
    );
    let sum = conn.which(SUM);
    let (out,): (i64,) = conn.one(sum, binds![key_id]).await?;
    Ok(out)
}

/// What is out on lease cannot be called back: below it, the row holds the difference as a debt.
pub(crate) async fn set_balance(
    conn: Conn<'_>,
    key_id: &str,
    balance: Option<u64>,
    out: i64,
    now: Millis,
) -> Result<(), StoreError> {
    const SET: &str = "UPDATE keys SET credits_remaining = $2, updated_at = $3,
            refilled_at = COALESCE(refilled_at, $3) WHERE id = $1";
    const UNLIMIT: &str = "UPDATE keys SET credits_remaining = NULL, refill_every = NULL,
            refill_day = NULL, refill_amount = NULL, refilled_at = NULL, updated_at = $2
        WHERE id = $1";
    if let Some(balance) = balance {
        let remaining = signed(balance).saturating_sub(out);
        conn.run(SET, binds![key_id, remaining, now]).await?;
    } else {
        // Leases stay: what is out counts again should there be a limit again.
        conn.run(UNLIMIT, binds![key_id, now]).await?;
    }
    Ok(())
}

pub(crate) fn refill_of(
    every: Option<&str>,
    day: Option<i64>,
    amount: Option<i64>,
) -> Option<CreditRefill> {
    let every = match every? {
        "daily" => RefillEvery::Day,
        _ => RefillEvery::Month { on: u8::try_from(day.unwrap_or(1)).unwrap_or(1) },
    };
    Some(CreditRefill { every, amount: unsigned(amount?) })
}

/// `refill_every`, `refill_day` and `refill_amount`.
pub(crate) fn refill_columns(
    refill: Option<CreditRefill>,
) -> (Option<&'static str>, Option<i64>, Option<i64>) {
    match refill {
        None => (None, None, None),
        Some(CreditRefill { every, amount }) => match every {
            RefillEvery::Day => (Some("daily"), None, Some(signed(amount))),
            RefillEvery::Month { on } => {
                (Some("monthly"), Some(i64::from(on)), Some(signed(amount)))
            }
        },
    }
}

/// What a reader is shown, who must not write: a refill that is due counts as done.
pub(crate) fn shown_balance(
    remaining: i64,
    out: i64,
    refill: Option<CreditRefill>,
    refilled_at: Option<i64>,
    now: Millis,
) -> u64 {
    let last = moment(refilled_at).unwrap_or_default();
    let remaining = match due_refill(refill, last, now) {
        Some((_, amount)) => remaining.max(amount - out),
        None => remaining,
    };
    unsigned(remaining + out)
}
