//! Walks a chain from its first row to its head and says where it is not what was written.
//! It reads a few rows at a time and holds nobody up; rows that are added meanwhile are for the next walk.

use std::fmt;

use super::SealKey;
use super::link::{GENESIS, PAGE, StoredLink, old_rows};
use crate::bind::{binds, unsigned};
use crate::db::{Pools, Purpose};
use crate::{Store, StoreError};

/// What a walk found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainReport {
    /// Rows that were looked at, those from before the chain too.
    pub rows: u64,
    /// Where the chain ends, and its last hash: kept elsewhere, it shows later what no database can show of itself.
    pub head: Option<(u64, Vec<u8>)>,
    pub first_bad: Option<BadLink>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLink {
    /// Its place in the chain, from 1; 0 for what is older than a chain without links.
    pub position: u64,
    pub trouble: ChainTrouble,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainTrouble {
    /// The row, or one from before the chain if this is the first, is not what was written.
    Changed,
    Missing,
    /// A row that was never written here, or not in this place.
    OutOfPlace,
    /// The record of where the chain ends is gone, or names another row.
    End,
    /// The record of the end was not written by a server with this secret.
    Seal,
}

/// The end of a chain at one moment: all of it from one statement.
#[derive(Debug, sqlx::FromRow)]
struct End {
    position: Option<i64>,
    hash: Option<Vec<u8>>,
    seal: Option<Vec<u8>>,
    last: Option<i64>,
}

/// How far a walk has come.
struct Walk {
    rows: u64,
    position: i64,
    seq: i64,
    hash: Vec<u8>,
}

// === impl Store ===

impl Store {
    /// Looks at every row of this tenant's chain.
    pub async fn verify_changes(&self, tenant_id: &str) -> Result<ChainReport, StoreError> {
        const END: &str = "SELECT h.position, h.hash, h.seal,
                (SELECT MAX(position) FROM admin_audit WHERE tenant_id = $1) AS last
            FROM (SELECT 1 AS one) o LEFT JOIN admin_audit_heads h ON h.tenant_id = $1";
        let from = self.db.read(Purpose::Admin);
        let end: End = from.one(END, binds![tenant_id]).await?;
        let mut walk = Walk::from_before(from, tenant_id).await?;
        let first_bad = walk.follow(from, tenant_id, &end, self.seal.as_deref()).await?;
        let head = end.position.zip(end.hash).map(|(place, hash)| (unsigned(place), hash));
        Ok(ChainReport { rows: walk.rows, head, first_bad })
    }

    /// Every tenant that has, or should have, a chain.
    pub async fn chained_tenants(&self) -> Result<Vec<String>, StoreError> {
        const ALL: &str = "SELECT tenant_id FROM admin_audit_heads
            UNION SELECT tenant_id FROM admin_audit UNION SELECT id FROM tenants ORDER BY 1";
        let rows: Vec<(String,)> = self.db.read(Purpose::Admin).all(ALL, &[]).await?;
        Ok(rows.into_iter().map(|(tenant_id,)| tenant_id).collect())
    }
}

// === impl Walk ===

impl Walk {
    /// What the first link stands on.
    async fn from_before(from: Pools<'_>, tenant_id: &str) -> Result<Self, StoreError> {
        let (mut rows, mut hash, mut after) = (0, GENESIS, i64::MIN);
        loop {
            let page = old_rows(from, tenant_id, after).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            rows += page.len() as u64;
            hash = page.iter().fold(hash, |hash, row| row.link().hash(&hash));
        }
        Ok(Self { rows, position: 0, seq: i64::MIN, hash: hash.to_vec() })
    }

    async fn follow(
        &mut self,
        from: Pools<'_>,
        tenant_id: &str,
        end: &End,
        seal: Option<&SealKey>,
    ) -> Result<Option<BadLink>, StoreError> {
        let (Some(head), Some(hash)) = (end.position, &end.hash) else {
            return Ok(Some(bad(end.last.unwrap_or(0), ChainTrouble::End)));
        };
        if let Some(bad) = self.rows_to(from, tenant_id, head).await? {
            return Ok(Some(bad));
        }
        if self.position < head {
            return Ok(Some(bad(self.position + 1, ChainTrouble::Missing)));
        }
        if end.last.is_some_and(|last| last > head) {
            return Ok(Some(bad(head + 1, ChainTrouble::OutOfPlace)));
        }
        if self.hash != *hash {
            // Without any link, the head itself stands on the rows from before.
            let trouble = if head > 0 { ChainTrouble::End } else { ChainTrouble::Changed };
            return Ok(Some(bad(head, trouble)));
        }
        let sealed = |key: &SealKey| {
            end.seal.as_ref().is_some_and(|seal| key.holds(seal, tenant_id, head, hash))
        };
        let unsealed = seal.is_some_and(|key| !sealed(key));
        Ok(unsealed.then(|| bad(head, ChainTrouble::Seal)))
    }

    /// The rows up to this place; the first that is not as it was written.
    async fn rows_to(
        &mut self,
        from: Pools<'_>,
        tenant_id: &str,
        head: i64,
    ) -> Result<Option<BadLink>, StoreError> {
        const NEXT: &str = "SELECT seq, position, hash, at, tenant_id, root_key_id, action, target,
                before, after
            FROM admin_audit WHERE tenant_id = $1 AND position <= $2
                AND (position > $3 OR (position = $3 AND seq > $4))
            ORDER BY position, seq LIMIT $5";
        let mut read = (i64::MIN, i64::MIN);
        loop {
            let binds = binds![tenant_id, head, read.0, read.1, PAGE];
            let page: Vec<StoredLink> = from.all(NEXT, binds).await?;
            let Some(last) = page.last() else { return Ok(None) };
            read = (last.position.unwrap_or(i64::MAX), last.seq);
            for row in &page {
                if let Some(trouble) = self.step(row) {
                    return Ok(Some(bad(self.position + 1, trouble)));
                }
            }
        }
    }

    fn step(&mut self, row: &StoredLink) -> Option<ChainTrouble> {
        self.rows += 1;
        let position = row.position.unwrap_or(0);
        if position > self.position + 1 {
            return Some(ChainTrouble::Missing);
        }
        // Numbers are given out in the order of the rows, so one that falls was not given out by the database.
        if position <= self.position || row.seq <= self.seq {
            return Some(ChainTrouble::OutOfPlace);
        }
        let hash = row.link().hash(&self.hash).to_vec();
        if row.hash.as_ref() != Some(&hash) {
            return Some(ChainTrouble::Changed);
        }
        (self.position, self.seq, self.hash) = (position, row.seq, hash);
        None
    }
}

fn bad(position: i64, trouble: ChainTrouble) -> BadLink {
    BadLink { position: unsigned(position), trouble }
}

impl fmt::Display for ChainTrouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Changed => "the row, or one from before the chain, was changed",
            Self::Missing => "a row is missing",
            Self::OutOfPlace => "a row was added behind our back, or moved",
            Self::End => "the record of the chain's end was taken away or changed",
            Self::Seal => "the record of the chain's end was not written with this server's secret",
        })
    }
}
