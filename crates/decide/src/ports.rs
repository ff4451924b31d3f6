//! What the engine needs from durable storage, as traits. The engine knows no SQL;
//! whoever implements these decides where records live. Nothing here is called on the hot path.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tollkeeper_core::{IdentityRecord, KeyRecord, Millis, Override, Permissions, State};

use crate::CellKey;
use crate::due::Due;

/// An answer that is on its way from storage.
pub type Loading<T> = Pin<Box<dyn Future<Output = Result<T, OriginError>> + Send>>;

/// Storage did not answer. Whoever asked must not read this as "not there".
#[derive(Clone, Debug, thiserror::Error)]
pub enum OriginError {
    #[error("storage did not answer: {0}")]
    Silent(Arc<str>),
    /// It answered that nothing can be written: its disk is full, or fails.
    #[error("storage has no room: {0}")]
    Full(Arc<str>),
    /// Not even asked: too many loads had found nothing.
    #[error("storage was not asked: too many unknown keys at once")]
    Spared,
    /// What all nodes count was not set back, or not all of it.
    #[error("redis did not answer to a reset")]
    NotReset,
    /// A text that no database stores; the edges refuse it before it comes here.
    #[error("storage was not asked: a text holds the character U+0000")]
    NulText,
}

/// A key's hash: all that is ever stored or looked up of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash(pub [u8; 32]);

/// All the ways in which one key text may be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyHashes {
    pub ours: KeyHash,
    /// Plain SHA-256, as imported keys carry it.
    pub imported: KeyHash,
}

#[derive(Clone, Debug)]
pub struct Tenant {
    pub id: Arc<str>,
    /// Names the tenant inside cell keys: the same on every node and after every restore.
    pub slug: Arc<str>,
    pub enabled: bool,
    /// Holds keys that came from elsewhere, whose text need not have our checksum.
    pub has_imports: bool,
    /// Calls of the API in a minute, where somebody set a bound. Kept at the edge; no decision depends on it.
    pub requests_per_minute: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct RootKey {
    pub id: Arc<str>,
    pub tenant: Tenant,
    pub permissions: Permissions,
    pub enabled: bool,
    pub expires: Option<Millis>,
    /// The operator's own key: the only one that may manage tenants.
    pub operator: bool,
    /// Its use is noted now and then.
    pub noted: Due,
}

#[derive(Clone, Debug)]
pub struct NamespaceRecord {
    pub id: Arc<str>,
    pub name: Arc<str>,
    /// A deleted namespace is remembered, so that its name answers "gone" and not "unknown".
    pub deleted: bool,
    pub overrides: Vec<Override>,
}

/// Keys, root keys and namespaces.
pub trait Directory: Send + Sync + 'static {
    fn root_key(&self, hash: KeyHash) -> Loading<Option<RootKey>>;

    /// The key with either hash, of whichever tenant: whoever asks must compare. One query.
    fn key(&self, hashes: KeyHashes) -> Loading<Option<KeyRecord>>;

    /// By name or by id, within one tenant (by its id).
    fn namespace(&self, tenant_id: &str, name_or_id: &str) -> Loading<Option<NamespaceRecord>>;

    /// By the name that its tenant's users know it by, with its limits, quota and block.
    fn identity(&self, tenant_id: &str, external_id: &str) -> Loading<Option<IdentityRecord>>;

    /// Makes the namespace unless it is there; two callers at once make one.
    fn create_namespace(&self, tenant_id: &str, name: &str) -> Loading<()>;
}

/// What one process holds of a key's credits, in totals of its life: repeating a message changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreditLease {
    pub granted: u64,
    pub spent: u64,
    /// What is left in storage, for anybody.
    pub left: u64,
}

/// How long a process may spend from a lease of credits after the bank last heard of it. Five minutes: longer than a
/// database takes to fail over. The bank counts a lease as lost after twice as long, so that neither a message that was
/// under way nor a clock that was set makes both spend the same units.
pub const LEASE_LIFE_MS: u64 = 300_000;

/// Where credits are kept. Money: every call may be repeated, and none may grant twice.
///
/// The bank keeps one row of totals per key and boot, for as long as the process may live, and at every moment
/// `balance + Σ granted` of a key is what it ever had. Totals of `spent` are merged by max and never
/// pass `granted`. A call that failed was applied before any later call about the same key, or never will be:
/// whoever locks the key's row before changing anything has that for free.
pub trait Bank: Send + Sync + 'static {
    /// Refills if that is due, then brings `granted` up to `known.granted + want`, as far as the balance goes.
    /// Where the row has so much already, an answer got lost, or the process gave back and forgot:
    /// the row is the answer. `None`: the key has no limit on credits (or is gone).
    fn lease(
        &self,
        key_id: &str,
        boot: [u8; 16],
        known: CreditLease,
        want: u64,
        now: Millis,
    ) -> Loading<Option<CreditLease>>;

    /// Notes what was spent, so that others see the true balance, and that this process was heard of.
    fn report(&self, key_id: &str, boot: [u8; 16], spent: u64) -> Loading<()>;

    /// Returns what was granted and not spent to the balance, and leaves the row with `granted = spent`: a
    /// later lease of the same boot goes on from those totals, which its journal knows. Nothing to do
    /// where there is no row.
    fn give_back(&self, key_id: &str, boot: [u8; 16], spent: u64) -> Loading<()>;
}

/// The storage that an engine hangs on, and whose life it is.
#[derive(Clone)]
pub struct Ports {
    pub directory: Arc<dyn Directory>,
    pub shelf: Arc<dyn Shelf>,
    pub bank: Arc<dyn Bank>,
    /// Names this process in the bank's books.
    pub boot: [u8; 16],
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
        Self::Silent(text.to_string().into())
    }
}

// === impl Ports ===

impl std::fmt::Debug for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ports").finish_non_exhaustive()
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
