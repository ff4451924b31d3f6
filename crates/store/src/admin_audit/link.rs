//! One link of the chain: what of a row is covered, and in which bytes.
//! Anybody with a copy of the table can compute it; docs/AUDIT.md says how.

use sha2::{Digest, Sha256};
use sqlx::postgres::PgExecutor;
use sqlx::sqlite::SqliteExecutor;

use crate::bind::binds;
use crate::patience::Patient;
use crate::{Bind, Each, StoreError};

/// Stands before the first link of a tenant without older rows.
pub(super) const GENESIS: [u8; 32] = [0; 32];

/// Names what is hashed, so that no other hash of ours can be taken for a link.
const DOMAIN: &[u8] = b"tollkeeper admin audit 1";

pub(super) const LINK_COLUMNS: usize = 9;

/// Rows are read so many at a time: a page is a few hundred kilobytes.
pub(super) const PAGE: i64 = 1_000;

/// What a hash covers beside the hash before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link<'a> {
    /// From 1; 0 for rows from before there was a chain.
    pub(super) position: i64,
    pub(super) at: i64,
    pub(super) tenant_id: &'a str,
    pub(super) root_key_id: Option<&'a str>,
    pub(super) action: &'a str,
    pub(super) target: &'a str,
    pub(super) before: Option<&'a str>,
    pub(super) after: Option<&'a str>,
}

/// A row as it is stored.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct StoredLink {
    pub(super) seq: i64,
    pub(super) position: Option<i64>,
    pub(super) hash: Option<Vec<u8>>,
    pub(super) at: i64,
    pub(super) tenant_id: String,
    pub(super) root_key_id: Option<String>,
    pub(super) action: String,
    pub(super) target: String,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

// === impl Link ===

impl<'a> Link<'a> {
    pub(super) fn columns(&self, hash: &'a [u8]) -> [Bind<'a>; LINK_COLUMNS] {
        [
            Bind::from(self.at),
            Bind::from(self.tenant_id),
            Bind::from(self.root_key_id),
            Bind::from(self.action),
            Bind::from(self.target),
            Bind::from(self.before),
            Bind::from(self.after),
            Bind::from(self.position),
            Bind::from(hash),
        ]
    }

    /// Every text is led by its length and every absence is said, so that no two rows share their bytes.
    pub(super) fn hash(&self, before: &[u8]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(DOMAIN);
        text(&mut hash, Some(before));
        hash.update(self.position.to_be_bytes());
        hash.update(self.at.to_be_bytes());
        text(&mut hash, Some(self.tenant_id.as_bytes()));
        text(&mut hash, self.root_key_id.map(str::as_bytes));
        text(&mut hash, Some(self.action.as_bytes()));
        text(&mut hash, Some(self.target.as_bytes()));
        text(&mut hash, self.before.map(str::as_bytes));
        text(&mut hash, self.after.map(str::as_bytes));
        hash.finalize().into()
    }
}

fn text(hash: &mut Sha256, text: Option<&[u8]>) {
    match text {
        None => hash.update([0]),
        Some(text) => {
            hash.update([1]);
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        }
    }
}

// === impl StoredLink ===

impl StoredLink {
    pub(super) fn link(&self) -> Link<'_> {
        Link {
            position: self.position.unwrap_or(0),
            at: self.at,
            tenant_id: &self.tenant_id,
            root_key_id: self.root_key_id.as_deref(),
            action: &self.action,
            target: &self.target,
            before: self.before.as_deref(),
            after: self.after.as_deref(),
        }
    }
}

/// Rows from before there was a chain, after this one.
pub(super) async fn old_rows<'c, Lite, Pg>(
    from: Each<Lite, Pg>,
    tenant_id: &str,
    after: i64,
) -> Result<Vec<StoredLink>, StoreError>
where
    Lite: SqliteExecutor<'c>,
    Pg: PgExecutor<'c> + Patient,
{
    const OLD: &str = "SELECT seq, position, hash, at, tenant_id, root_key_id, action, target,
            before, after
        FROM admin_audit WHERE tenant_id = $1 AND position IS NULL AND seq > $2
        ORDER BY seq LIMIT $3";
    from.all(OLD, binds![tenant_id, after, PAGE]).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> Link<'static> {
        Link {
            position: 1,
            at: 2,
            tenant_id: "ws_1",
            root_key_id: Some("rk_1"),
            action: "keys.create",
            target: "key_1",
            before: None,
            after: Some("{}"),
        }
    }

    /// What docs/AUDIT.md describes: a change here makes every stored chain unreadable.
    #[test]
    fn the_bytes_of_a_link_never_change() {
        let hash = link().hash(&GENESIS);
        let hex: Vec<_> = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex.concat(),
            "7452e855ada25e475cf34f069f1fbda05d1ba4ae60c499fc134cac6999f6303c"
        );
    }

    #[test]
    fn no_other_row_has_the_same_hash() {
        let changed: [fn(&mut Link<'static>); 10] = [
            |link| link.position = 2,
            |link| link.at = 3,
            |link| link.tenant_id = "ws_2",
            |link| link.root_key_id = None,
            |link| link.root_key_id = Some(""),
            |link| link.action = "keys.creat",
            |link| link.target = "ekey_1",
            |link| link.before = Some(""),
            |link| link.after = None,
            |link| (link.before, link.after) = (Some("{}"), None),
        ];
        let mut hashes = vec![link().hash(&GENESIS), link().hash(&[1; 32])];
        for change in changed {
            let mut other = link();
            change(&mut other);
            hashes.push(other.hash(&GENESIS));
        }
        let count = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), count);
    }
}
