//! What changed, one row per thing that somebody may have near, numbered in the order in which it became true.
//! Whoever missed the news reads on from the last number it knows.

use tollkeeper_core::Millis;
use tollkeeper_decide::KeyHash;

use crate::bind::{binds, signed, unsigned};
use crate::db::{Conn, Purpose};
use crate::{Bind, Each, Fault, Store, StoreError};

/// The channel of PostgreSQL on which nodes tell each other that there is something to read.
pub(crate) const CHANNEL: &str = "tollkeeper_changes";

/// Held while a change writes its announcements and commits, so that a lower revision never appears after a higher
/// one has been read. Any number that nobody else locks by.
const ORDER_LOCK: &str = "SELECT CAST(pg_advisory_xact_lock(8400207311) AS TEXT)";

/// Seven values a row, far below what either database may bind.
const INSERT_ROWS: usize = 500;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxEntry {
    pub revision: u64,
    pub tenant_id: String,
    pub changed: Changed,
    pub at: Millis,
}

/// A thing that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    Key {
        id: String,
        hash: StoredHash,
    },
    /// More keys of the tenant than are worth naming one by one.
    KeysOfTenant,
    RootKey {
        id: String,
        hash: KeyHash,
    },
    Tenant,
    Project {
        id: String,
        slug: String,
    },
    Namespace {
        id: String,
        name: String,
    },
    Identity {
        id: String,
        external_id: String,
    },
    /// Where limits are counted, of the fleet or of a tenant.
    Modes,
    /// The tenant's set of rules.
    Rules,
}

/// A key's hash as its row holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoredHash {
    pub hash: KeyHash,
    pub kind: HashKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HashKind {
    /// HMAC-SHA-256 under our pepper.
    Hmac,
    /// Plain SHA-256, of a key that came from elsewhere.
    Sha256,
}

#[derive(sqlx::FromRow)]
struct OutboxRow {
    revision: i64,
    kind: String,
    tenant_id: String,
    subject_id: String,
    name: Option<String>,
    hash: Option<Vec<u8>>,
    hash_kind: Option<String>,
    at: i64,
}

// === impl Store ===

impl Store {
    /// At most `limit` changes after `revision`, in order.
    pub async fn outbox_since(
        &self,
        revision: u64,
        limit: u32,
    ) -> Result<Vec<OutboxEntry>, StoreError> {
        let from = self.db.read(Purpose::Background);
        let entries = read_outbox(from, revision, limit).await?;
        self.feed.seen(entries.last().map_or(0, |last| last.revision));
        Ok(entries)
    }

    /// The number of the last change; 0 before the first.
    pub async fn current_revision(&self) -> Result<u64, StoreError> {
        let from = self.db.read(Purpose::Background);
        let (revision,): (i64,) = from.one(NEWEST, &[]).await?;
        self.feed.seen(unsigned(revision));
        Ok(unsigned(revision))
    }

    /// Forgets changes older than this, which every node must have read long ago. The newest stays, because the
    /// current revision is read from it.
    pub async fn trim_outbox(&self, before: Millis) -> Result<u64, StoreError> {
        const TRIM: &str = "DELETE FROM outbox
            WHERE at < $1 AND revision < (SELECT MAX(revision) FROM outbox)";
        self.db.write(Purpose::Background).run(TRIM, binds![before]).await
    }
}

pub(crate) const NEWEST: &str = "SELECT COALESCE(MAX(revision), 0) FROM outbox";

pub(crate) async fn read_outbox(
    from: crate::db::Pools<'_>,
    revision: u64,
    limit: u32,
) -> Result<Vec<OutboxEntry>, StoreError> {
    const SINCE: &str = "SELECT revision, kind, tenant_id, subject_id, name, hash, hash_kind, at
        FROM outbox WHERE revision > $1 ORDER BY revision LIMIT $2";
    let rows: Vec<OutboxRow> = from.all(SINCE, binds![signed(revision), i64::from(limit)]).await?;
    Ok(rows.into_iter().map(OutboxEntry::try_from).collect::<Result<_, _>>()?)
}

pub(crate) async fn write_outbox(
    mut conn: Conn<'_>,
    said: Vec<(String, Changed)>,
    now: Millis,
) -> Result<Vec<OutboxEntry>, StoreError> {
    const TELL: &str = "SELECT CAST(pg_notify($1, $2) AS TEXT)";
    if said.is_empty() {
        return Ok(Vec::new());
    }
    let is_server = matches!(conn, Each::Pg(_));
    if is_server {
        conn.again().one::<(Option<String>,)>(ORDER_LOCK, &[]).await?;
    }
    let mut told = Vec::with_capacity(said.len());
    let mut said = said.into_iter().peekable();
    while said.peek().is_some() {
        let chunk: Vec<_> = said.by_ref().take(INSERT_ROWS).collect();
        let revisions = insert(conn.again(), &chunk, now).await?;
        told.extend(revisions.into_iter().zip(chunk).map(|(revision, (tenant_id, changed))| {
            OutboxEntry { revision, tenant_id, changed, at: now }
        }));
    }
    if let Some(last) = told.last().filter(|_| is_server) {
        let newest = last.revision.to_string();
        conn.one::<(Option<String>,)>(TELL, binds![CHANNEL, &newest]).await?;
    }
    Ok(told)
}

/// Numbers rise in the order of the rows, whatever order they are given back in.
async fn insert(
    conn: Conn<'_>,
    chunk: &[(String, Changed)],
    now: Millis,
) -> Result<Vec<u64>, StoreError> {
    const INSERT: &str =
        "INSERT INTO outbox (kind, tenant_id, subject_id, name, hash, hash_kind, at)
        VALUES {} RETURNING revision";
    let mut binds: Vec<Bind<'_>> = Vec::with_capacity(chunk.len() * 7);
    for (tenant_id, changed) in chunk {
        let (kind, subject_id, name, hash) = changed.columns();
        binds.extend_from_slice(binds![
            kind,
            tenant_id,
            subject_id,
            name,
            hash.map(|(hash, _)| hash.as_slice()),
            hash.map(|(_, kind)| kind),
            now,
        ]);
    }
    let rows: Vec<(i64,)> = conn.all_rows(INSERT, 7, &binds).await?;
    let mut revisions: Vec<_> = rows.into_iter().map(|(revision,)| unsigned(revision)).collect();
    revisions.sort_unstable();
    Ok(revisions)
}

type Columns<'a> = (&'static str, &'a str, Option<&'a str>, Option<(&'a [u8; 32], &'static str)>);

// === impl Changed ===

impl Changed {
    fn columns(&self) -> Columns<'_> {
        match self {
            Self::Key { id, hash } => ("key", id, None, Some((&hash.hash.0, hash.kind.text()))),
            Self::KeysOfTenant => ("keys_of_tenant", "", None, None),
            Self::RootKey { id, hash } => ("root_key", id, None, Some((&hash.0, "hmac"))),
            Self::Tenant => ("tenant", "", None, None),
            Self::Project { id, slug } => ("project", id, Some(slug), None),
            Self::Namespace { id, name } => ("namespace", id, Some(name), None),
            Self::Identity { id, external_id } => ("identity", id, Some(external_id), None),
            Self::Modes => ("modes", "", None, None),
            Self::Rules => ("rules", "", None, None),
        }
    }
}

impl TryFrom<OutboxRow> for OutboxEntry {
    type Error = Fault;

    fn try_from(row: OutboxRow) -> Result<Self, Fault> {
        let unreadable = || Fault::Unreadable("change");
        let hash = |bytes: Option<Vec<u8>>| hash_of(&bytes.unwrap_or_default());
        let changed = match row.kind.as_str() {
            "key" => {
                let kind = HashKind::of(row.hash_kind.as_deref().unwrap_or_default())?;
                Changed::Key {
                    id: row.subject_id,
                    hash: StoredHash { hash: hash(row.hash)?, kind },
                }
            }
            "keys_of_tenant" => Changed::KeysOfTenant,
            "root_key" => Changed::RootKey { id: row.subject_id, hash: hash(row.hash)? },
            "project" => {
                Changed::Project { id: row.subject_id, slug: row.name.ok_or_else(unreadable)? }
            }
            "namespace" => {
                Changed::Namespace { id: row.subject_id, name: row.name.ok_or_else(unreadable)? }
            }
            "identity" => {
                let external_id = row.name.ok_or_else(unreadable)?;
                Changed::Identity { id: row.subject_id, external_id }
            }
            "modes" => Changed::Modes,
            "rules" => Changed::Rules,
            // "tenant", or a kind of a newer version: whatever that is about, forgetting all of the tenant covers it.
            _ => Changed::Tenant,
        };
        let (revision, at) = (unsigned(row.revision), Millis(unsigned(row.at)));
        Ok(Self { revision, tenant_id: row.tenant_id, changed, at })
    }
}

// === impl HashKind ===

impl HashKind {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Hmac => "hmac",
            Self::Sha256 => "tenant_sha256",
        }
    }

    pub(crate) fn of(text: &str) -> Result<Self, Fault> {
        match text {
            "hmac" => Ok(Self::Hmac),
            // The second is from before imports were bound to their tenants.
            "tenant_sha256" | "sha256" => Ok(Self::Sha256),
            _ => Err(Fault::Unreadable("kind of hash")),
        }
    }
}

pub(crate) fn hash_of(bytes: &[u8]) -> Result<KeyHash, Fault> {
    bytes.try_into().map(KeyHash).map_err(|_| Fault::Unreadable("hash"))
}
