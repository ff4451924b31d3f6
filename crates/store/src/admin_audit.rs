//! The admin audit: who changed what, each tenant's rows a chain in which every link covers the one before it.
//! Rows are only ever added, in the transaction of the change they tell of.

mod link;
mod list;
mod seal;
mod verify;

use tollkeeper_core::Millis;

use crate::bind::{binds, signed};
use crate::db::{Conn, Purpose};
use crate::{Bind, Store, StoreError};

pub use list::{AdminChange, ChangeFilter};
pub use seal::SealKey;
pub use verify::{BadLink, ChainReport, ChainTrouble};

use link::{GENESIS, LINK_COLUMNS, Link, old_rows};

/// Nine values a row, far below what either database may bind.
const INSERT_ROWS: usize = 500;

/// What somebody changed, on its way into the chain.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) tenant_id: String,
    pub(crate) root_key_id: Option<String>,
    pub(crate) action: String,
    pub(crate) target: String,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
}

/// The end of a tenant's chain.
#[derive(Debug, sqlx::FromRow)]
struct Head {
    position: i64,
    hash: Vec<u8>,
}

/// Adds the rows of one change. It comes last in its transaction: the end of the chain is locked from here to the
/// commit, and who waits for it must not hold what the one before needs.
pub(crate) async fn append(
    mut conn: Conn<'_>,
    mut notes: Vec<Note>,
    now: Millis,
    seal: Option<&SealKey>,
) -> Result<(), StoreError> {
    // In one order everywhere, so that two changes of several tenants never wait for each other in a ring.
    notes.sort_by(|one, other| one.tenant_id.cmp(&other.tenant_id));
    for of_tenant in notes.chunk_by(|one, other| one.tenant_id == other.tenant_id) {
        let Some(Note { tenant_id, .. }) = of_tenant.first() else { continue };
        let mut head = Head::lock(conn.again(), tenant_id).await?;
        for chunk in of_tenant.chunks(INSERT_ROWS) {
            head = head.link(conn.again(), chunk, now).await?;
        }
        head.put(conn.again(), tenant_id, seal).await?;
    }
    Ok(())
}

// === impl Head ===

impl Head {
    /// Nobody else adds to this chain until we are done. Every tenant has a head from its beginning on; where somebody
    /// took it away, changes go on behind the last row, with a place left out that will always be missing.
    async fn lock(mut conn: Conn<'_>, tenant_id: &str) -> Result<Self, StoreError> {
        const LOCK: &str = "INSERT INTO admin_audit_heads (tenant_id, position, hash)
            VALUES ($1, -1, $2) ON CONFLICT (tenant_id)
            DO UPDATE SET position = admin_audit_heads.position RETURNING position, hash";
        const LAST: &str = "SELECT position, hash FROM admin_audit
            WHERE tenant_id = $1 AND position IS NOT NULL ORDER BY position DESC, seq DESC LIMIT 1";
        let head: Self = conn.again().one(LOCK, binds![tenant_id, GENESIS.as_slice()]).await?;
        if head.position >= 0 {
            return Ok(head);
        }
        let last: Option<Self> = conn.optional(LAST, binds![tenant_id]).await?;
        let last = last.unwrap_or(Self { position: 0, hash: GENESIS.to_vec() });
        Ok(Self { position: last.position + 1, ..last })
    }

    /// All rows in one statement: others wait for this chain meanwhile.
    async fn link(self, conn: Conn<'_>, notes: &[Note], now: Millis) -> Result<Self, StoreError> {
        const ADD: &str = "INSERT INTO admin_audit
            (at, tenant_id, root_key_id, action, target, before, after, position, hash) VALUES {}";
        let mut links: Vec<(Link<'_>, Vec<u8>)> = Vec::with_capacity(notes.len());
        for (note, position) in notes.iter().zip(self.position + 1..) {
            let link = note.link(position, signed(now.0));
            let before = links.last().map_or(&self.hash, |(_, hash)| hash);
            let hash = link.hash(before).to_vec();
            links.push((link, hash));
        }
        let binds: Vec<Bind<'_>> =
            links.iter().flat_map(|(link, hash)| link.columns(hash)).collect();
        conn.run_rows(ADD, LINK_COLUMNS, &binds).await?;
        let last = links.pop().map(|(link, hash)| Self { position: link.position, hash });
        Ok(last.unwrap_or(self))
    }

    async fn put(
        &self,
        conn: Conn<'_>,
        tenant_id: &str,
        seal: Option<&SealKey>,
    ) -> Result<(), StoreError> {
        const PUT: &str = "UPDATE admin_audit_heads
            SET position = $2, hash = $3, seal = $4 WHERE tenant_id = $1";
        let seal = seal.map(|key| key.seal(tenant_id, self.position, &self.hash));
        let seal = seal.as_ref().map(<[u8; 32]>::as_slice);
        conn.run(PUT, binds![tenant_id, self.position, &self.hash, seal]).await?;
        Ok(())
    }
}

// === impl Note ===

impl Note {
    fn link(&self, position: i64, at: i64) -> Link<'_> {
        Link {
            position,
            at,
            tenant_id: &self.tenant_id,
            root_key_id: self.root_key_id.as_deref(),
            action: &self.action,
            target: &self.target,
            before: self.before.as_deref(),
            after: self.after.as_deref(),
        }
    }
}

// === impl Store ===

impl Store {
    /// Begins the chains of all tenants, once in the life of a database: rows from before there were chains are covered
    /// from here on. A tenant that is made later has its chain begun with it; so a head that is missing was taken away.
    pub async fn begin_chains(&self) -> Result<(), StoreError> {
        const BEGUN: &str = "SELECT COUNT(*) FROM admin_audit_heads";
        const TENANTS: &str = "SELECT id FROM tenants ORDER BY id";
        let mut begun = self.db.begin(Purpose::Admin).await?;
        let (heads,): (i64,) = begun.conn().one(BEGUN, &[]).await?;
        if heads > 0 {
            return Ok(());
        }
        let tenants: Vec<(String,)> = begun.conn().all(TENANTS, &[]).await?;
        for (tenant_id,) in tenants {
            begin(begun.conn(), &tenant_id, self.seal.as_deref()).await?;
        }
        begun.commit().await
    }
}

/// The head of a chain without links.
pub(crate) async fn begin(
    mut conn: Conn<'_>,
    tenant_id: &str,
    seal: Option<&SealKey>,
) -> Result<(), StoreError> {
    const BEGIN: &str = "INSERT INTO admin_audit_heads (tenant_id, position, hash, seal)
        VALUES ($1, 0, $2, $3) ON CONFLICT (tenant_id) DO NOTHING";
    let hash = genesis(conn.again(), tenant_id).await?;
    let seal = seal.map(|key| key.seal(tenant_id, 0, &hash));
    let seal = seal.as_ref().map(<[u8; 32]>::as_slice);
    conn.run(BEGIN, binds![tenant_id, &hash, seal]).await?;
    Ok(())
}

/// What the first link stands on: the rows from before there was a chain, one after the other.
async fn genesis(mut conn: Conn<'_>, tenant_id: &str) -> Result<Vec<u8>, StoreError> {
    let (mut hash, mut after) = (GENESIS, i64::MIN);
    loop {
        let page = old_rows(conn.again(), tenant_id, after).await?;
        let Some(last) = page.last() else { return Ok(hash.to_vec()) };
        after = last.seq;
        hash = page.iter().fold(hash, |hash, row| row.link().hash(&hash));
    }
}
