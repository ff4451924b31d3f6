//! Storage in memory, which can be made to fail, and made to take its time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;
use tollkeeper_core::{IdentityRecord, KeyRecord, Millis, Override, Permissions, Quota, Width};
use tollkeeper_decide::{
    CellKey, Directory, Due, KeyHash, KeyHashes, Loading, NamespaceRecord, OriginError, ParkedCell,
    RootKey, Shelf, Tenant, Which,
};

#[derive(Clone, Debug)]
pub(crate) struct MemoryShelf(Arc<ShelfInner>);

#[derive(Debug)]
struct ShelfInner {
    cells: Mutex<HashMap<CellKey, ParkedCell>>,
    failing: AtomicBool,
    full: AtomicBool,
    /// Puts wait here while `held`.
    gate: Semaphore,
    held: Mutex<Option<Hold>>,
}

/// Where a held put stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    BeforeWriting,
    BeforeAnswering,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryDirectory(Arc<DirectoryInner>);

#[derive(Debug, Default)]
struct DirectoryInner {
    namespaces: Mutex<Vec<NamespaceRecord>>,
    keys: Mutex<HashMap<KeyHash, KeyRecord>>,
    identities: Mutex<Vec<IdentityRecord>>,
    failing: AtomicBool,
    loads: AtomicUsize,
}

pub(crate) fn tenant() -> Tenant {
    Tenant {
        id: "ws_1".into(),
        slug: "acme".into(),
        enabled: true,
        has_imports: false,
        requests_per_minute: None,
    }
}

pub(crate) fn root_key(grants: &[&str]) -> Arc<RootKey> {
    let permissions: Permissions = grants.iter().copied().collect();
    Arc::new(RootKey {
        id: "rk_1".into(),
        tenant: tenant(),
        permissions,
        enabled: true,
        expires: None,
        operator: false,
        noted: Due::default(),
    })
}

pub(crate) fn override_of(identifier: &str, quota: u64, width_ms: u64) -> Override {
    Override {
        id: format!("rlor_{identifier}").into(),
        identifier: identifier.to_owned(),
        quota: Quota::new(quota).unwrap(),
        width: Width::from_millis(width_ms).unwrap(),
        created_at: Millis(0),
    }
}

// === impl MemoryShelf ===

impl ShelfInner {
    fn keeping(cells: HashMap<CellKey, ParkedCell>) -> Self {
        let (gate, held) = (Semaphore::new(0), Mutex::new(None));
        let (failing, full) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { cells: Mutex::new(cells), failing, full, gate, held }
    }
}

impl Default for MemoryShelf {
    fn default() -> Self {
        Self(Arc::new(ShelfInner::keeping(HashMap::new())))
    }
}

impl MemoryShelf {
    pub(crate) fn fail(&self, failing: bool) {
        self.0.failing.store(failing, Ordering::Relaxed);
    }

    /// Nothing can be put, all the rest works.
    pub(crate) fn fill(&self, full: bool) {
        self.0.full.store(full, Ordering::Relaxed);
    }

    pub(crate) fn hold(&self, hold: Hold) {
        *self.0.held.lock().unwrap() = Some(hold);
    }

    /// Lets the one put through that was held.
    pub(crate) fn release(&self) {
        *self.0.held.lock().unwrap() = None;
        self.0.gate.add_permits(1);
    }

    /// Takes back what [`MemoryShelf::release`] gave and no put needed.
    pub(crate) fn close(&self) {
        self.0.gate.forget_permits(usize::MAX);
    }

    /// The puts of a process that died do not go on in the next one.
    pub(crate) fn survive(&self) -> Self {
        let cells = self.0.cells.lock().unwrap().clone();
        Self(Arc::new(ShelfInner::keeping(cells)))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.cells.lock().unwrap().len()
    }

    fn answer<T: Send + 'static>(&self, made: T) -> Loading<T> {
        let failing = self.0.failing.load(Ordering::Relaxed);
        Box::pin(async move { if failing { Err(OriginError::new("off")) } else { Ok(made) } })
    }
}

impl Shelf for MemoryShelf {
    fn put(&self, cells: Vec<ParkedCell>) -> Loading<()> {
        let shelf = Arc::clone(&self.0);
        let hold = *shelf.held.lock().unwrap();
        let failing = shelf.failing.load(Ordering::Relaxed) || shelf.full.load(Ordering::Relaxed);
        let write = move |shelf: &ShelfInner| {
            let mut kept = shelf.cells.lock().unwrap();
            kept.extend(cells.into_iter().map(|cell| (cell.key, cell)));
        };
        Box::pin(async move {
            if failing {
                return Err(OriginError::new("off"));
            }
            if hold == Some(Hold::BeforeWriting) {
                shelf.gate.acquire().await.unwrap().forget();
            }
            write(&shelf);
            if hold == Some(Hold::BeforeAnswering) {
                shelf.gate.acquire().await.unwrap().forget();
            }
            Ok(())
        })
    }

    fn find(&self, keys: Vec<CellKey>) -> Loading<Vec<ParkedCell>> {
        let kept = self.0.cells.lock().unwrap();
        self.answer(keys.iter().filter_map(|key| kept.get(key).cloned()).collect())
    }

    fn remove(&self, which: Which) -> Loading<Vec<CellKey>> {
        let mut kept = self.0.cells.lock().unwrap();
        let gone = kept.extract_if(|key, cell| match which {
            Which::Subject(subject) => key.subject == subject,
            Which::Namespace(namespace) => cell.namespace == namespace,
        });
        let gone = gone.map(|(key, _)| key).collect();
        self.answer(gone)
    }

    fn sweep(&self, now: Millis) -> Loading<Vec<CellKey>> {
        let mut kept = self.0.cells.lock().unwrap();
        kept.retain(|_, cell| u64::from(cell.idle_at_s) * 1000 > now.0);
        self.answer(kept.keys().copied().collect())
    }
}

// === impl MemoryDirectory ===

impl MemoryDirectory {
    pub(crate) fn add(&self, name: &str, overrides: Vec<Override>) {
        self.record(name, false, overrides);
    }

    pub(crate) fn replace(&self, name: &str, overrides: Vec<Override>) {
        self.0.namespaces.lock().unwrap().retain(|one| *one.name != *name);
        self.add(name, overrides);
    }

    pub(crate) fn add_deleted(&self, name: &str) {
        self.record(name, true, Vec::new());
    }

    fn record(&self, name: &str, deleted: bool, overrides: Vec<Override>) {
        let id = format!("rlns_{name}").into();
        let record = NamespaceRecord { id, name: name.into(), deleted, overrides };
        self.0.namespaces.lock().unwrap().push(record);
    }

    pub(crate) fn add_key(&self, hash: KeyHash, record: KeyRecord) {
        self.0.keys.lock().unwrap().insert(hash, record);
    }

    pub(crate) fn add_identity(&self, identity: IdentityRecord) {
        self.0.identities.lock().unwrap().push(identity);
    }

    pub(crate) fn fail(&self, failing: bool) {
        self.0.failing.store(failing, Ordering::Relaxed);
    }

    pub(crate) fn loads(&self) -> usize {
        self.0.loads.load(Ordering::Relaxed)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.namespaces.lock().unwrap().iter().map(|one| one.name.to_string()).collect()
    }
}

impl Directory for MemoryDirectory {
    fn root_key(&self, _: KeyHash) -> Loading<Option<RootKey>> {
        Box::pin(async { Ok(None) })
    }

    fn key(&self, hashes: KeyHashes) -> Loading<Option<KeyRecord>> {
        self.0.loads.fetch_add(1, Ordering::Relaxed);
        let keys = self.0.keys.lock().unwrap();
        let found = keys.get(&hashes.ours).or_else(|| keys.get(&hashes.imported)).cloned();
        let failing = self.0.failing.load(Ordering::Relaxed);
        Box::pin(async move { if failing { Err(OriginError::new("off")) } else { Ok(found) } })
    }

    fn namespace(&self, tenant_id: &str, name_or_id: &str) -> Loading<Option<NamespaceRecord>> {
        self.0.loads.fetch_add(1, Ordering::Relaxed);
        let namespaces = self.0.namespaces.lock().unwrap();
        let called = |one: &&NamespaceRecord| *one.name == *name_or_id || *one.id == *name_or_id;
        let found = namespaces.iter().find(called).filter(|_| tenant_id == "ws_1").cloned();
        let failing = self.0.failing.load(Ordering::Relaxed);
        Box::pin(async move { if failing { Err(OriginError::new("off")) } else { Ok(found) } })
    }

    fn identity(&self, tenant_id: &str, external_id: &str) -> Loading<Option<IdentityRecord>> {
        self.0.loads.fetch_add(1, Ordering::Relaxed);
        let identities = self.0.identities.lock().unwrap();
        let called = |one: &&IdentityRecord| *one.external_id == *external_id;
        let found = identities.iter().find(called).filter(|_| tenant_id == "ws_1").cloned();
        Box::pin(async move { Ok(found) })
    }

    fn create_namespace(&self, _: &str, name: &str) -> Loading<()> {
        self.add(name, Vec::new());
        Box::pin(async { Ok(()) })
    }
}
