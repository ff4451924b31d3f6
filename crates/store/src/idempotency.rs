//! Answers remembered for callers that try again. What is kept is a ciphertext, because an answer may hold a new key's text.

use tollkeeper_core::Millis;

use crate::bind::{binds, unsigned};
use crate::db::Purpose;
use crate::{Fault, Store, StoreError};

/// What names a call: who called, what, and the name they gave it.
#[derive(Clone, Copy, Debug)]
pub struct CallName<'a> {
    pub root_key_id: &'a str,
    pub route: &'a str,
    pub key: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    pub body_hash: [u8; 32],
    pub answer: Vec<u8>,
    pub at: Millis,
}

// === impl Store ===

impl Store {
    /// The answer that was given since then.
    pub async fn remembered(
        &self,
        call: CallName<'_>,
        since: Millis,
    ) -> Result<Option<Remembered>, StoreError> {
        const FIND: &str = "SELECT body_hash, answer, at FROM idempotency
            WHERE root_key_id = $1 AND route = $2 AND key = $3 AND at >= $4";
        let from = self.db.read(Purpose::Admin);
        let binds = binds![call.root_key_id, call.route, call.key, since];
        let found: Option<(Vec<u8>, Vec<u8>, i64)> = from.optional(FIND, binds).await?;
        let Some((body_hash, answer, at)) = found else { return Ok(None) };
        let body_hash = body_hash.try_into().map_err(|_| Fault::Unreadable("remembered answer"))?;
        Ok(Some(Remembered { body_hash, answer, at: Millis(unsigned(at)) }))
    }

    /// Whether this is the answer to remember: the first one is, unless it is older than `since`.
    pub async fn remember(
        &self,
        call: CallName<'_>,
        answer: &Remembered,
        since: Millis,
    ) -> Result<bool, StoreError> {
        const PUT: &str = "INSERT INTO idempotency (root_key_id, route, key, body_hash, answer, at)
            VALUES ($1, $2, $3, $4, $5, $6)
            ON CONFLICT (root_key_id, route, key) DO UPDATE SET
                body_hash = excluded.body_hash, answer = excluded.answer, at = excluded.at
                WHERE idempotency.at < $7";
        let binds = binds![
            call.root_key_id,
            call.route,
            call.key,
            answer.body_hash.as_slice(),
            &answer.answer,
            answer.at,
            since,
        ];
        Ok(self.db.write(Purpose::Admin).run(PUT, binds).await? > 0)
    }

    pub async fn forget_answers(&self, before: Millis) -> Result<u64, StoreError> {
        const PURGE: &str = "DELETE FROM idempotency WHERE at < $1";
        self.db.write(Purpose::Background).run(PURGE, binds![before]).await
    }
}
