//! What the engine needs from durable storage, as traits. The engine knows no SQL;
//! whoever implements these decides where records live. Nothing here is called on the hot path.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tollkeeper_core::{Millis, Override, Permissions, State};

use crate::CellKey;

/// An answer that is on its way from storage.
pub type Loading<T> = Pin<Box<dyn Future<Output = Result<T, OriginError>> + Send>>;

/// Storage did not answer. Whoever asked must not read this as "not there".
#[derive(Clone, Debug, thiserror::Error)]
#[error("storage did not answer: {0}")]
pub struct OriginError(pub Arc<str>);

/// A root key's HMAC: all that is ever stored or looked up of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash(pub [u8; 32]);

#[derive(Clone, Debug)]
pub struct Tenant {
    pub id: Arc<str>,
    /// Names the tenant inside cell keys: the same on every node and after every restore.
    pub slug: Arc<str>,
    pub enabled: bool,
}

#[derive(Clone, Debug)]
pub struct RootKey {
    pub id: Arc<str>,
    pub tenant: Tenant,
    pub permissions: Permissions,
    pub enabled: bool,
}

#[derive(Clone, Debug)]
pub struct NamespaceRecord {
    pub id: Arc<str>,
    pub name: Arc<str>,
    /// A deleted namespace is remembered, so that its name answers "gone" and not "unknown".
    pub deleted: bool,
    pub overrides: Vec<Override>,
}

/// Root keys and namespaces.
pub trait Directory: Send + Sync + 'static {
    fn root_key(&self, hash: KeyHash) -> Loading<Option<RootKey>>;

    /// By name or by id, within one tenant (by its id).
    fn namespace(&self, tenant_id: &str, name_or_id: &str) -> Loading<Option<NamespaceRecord>>;

    /// Makes the namespace unless it is there; two callers at once make one.
    fn create_namespace(&self, tenant_id: &str, name: &str) -> Loading<()>;
}

/// A cell's counters outside the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedCell {
    pub key: CellKey,
    /// Which namespace it counts for, as [`crate::NamespaceTag`] says.
    pub namespace: u64,
    /// From this unix second on it is as good as fresh.
    pub idle_at_s: u32,
    pub fill: u16,
    pub state: State,
}

/// Where cells go that the table has no room for, and come back from when they are asked for again.
pub trait Shelf: Send + Sync + 'static {
    /// Keeps these, replacing older states of the same cells. All or none.
    fn put(&self, cells: Vec<ParkedCell>) -> Loading<()>;

    fn find(&self, keys: Vec<CellKey>) -> Loading<Vec<ParkedCell>>;

    /// Forgets these, and says which there were.
    fn remove(&self, which: Which) -> Loading<Vec<CellKey>>;

    /// Forgets what is idle at `now` and lists the keys of the rest.
    fn sweep(&self, now: Millis) -> Loading<Vec<CellKey>>;
}

/// Which cells of a namespace a reset is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All cells of one identifier in one namespace: they share their key's subject.
    Subject(u64),
    /// All cells of one namespace.
    Namespace(u64),
}

// === impl OriginError ===

impl OriginError {
    pub fn new(text: impl std::fmt::Display) -> Self {
        Self(text.to_string().into())
    }
}

// === impl KeyHash ===

impl std::fmt::Debug for KeyHash {
    /// Four bytes tell two hashes apart in a log without being of use to anybody.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [first, second, third, fourth, ..] = self.0;
        write!(f, "KeyHash({first:02x}{second:02x}{third:02x}{fourth:02x}…)")
    }
}
