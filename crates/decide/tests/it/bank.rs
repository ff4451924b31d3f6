//! A bank in memory: one vault for all nodes, and between each node and the vault a wire on which calls
//! can be late, refused, lost after they were applied, or applied twice.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tollkeeper_core::Millis;
use tollkeeper_decide::{Bank, CreditLease, Loading, OriginError, Ports};

use crate::memory::{MemoryDirectory, MemoryShelf};

pub(crate) type Boot = [u8; 16];

#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryBank {
    pub(crate) vault: Arc<Mutex<Vault>>,
    pub(crate) wire: Arc<Wire>,
}

#[derive(Debug, Default)]
pub(crate) struct Vault {
    pub(crate) balances: BTreeMap<String, u64>,
    /// Granted and spent.
    pub(crate) rows: BTreeMap<(String, Boot), (u64, u64)>,
}

#[derive(Debug, Default)]
pub(crate) struct Wire {
    /// What happens to the next calls; afterwards all is well.
    pub(crate) fates: Mutex<VecDeque<Fate>>,
    /// The node is dead: nothing of it arrives any more.
    pub(crate) cut: AtomicBool,
    failing: AtomicBool,
    leases: AtomicUsize,
    under_way: AtomicUsize,
    most_under_way: AtomicUsize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fate {
    /// Turns of the other tasks before it arrives, and before its answer does.
    pub(crate) late: u8,
    pub(crate) times: u8,
    pub(crate) answered: bool,
}

const WELL: Fate = Fate { late: 0, times: 1, answered: true };

pub(crate) fn ports(directory: &MemoryDirectory, shelf: &MemoryShelf, bank: &MemoryBank) -> Ports {
    Ports {
        directory: Arc::new(directory.clone()),
        shelf: Arc::new(shelf.clone()),
        bank: Arc::new(bank.clone()),
        boot: [7; 16],
    }
}

// === impl MemoryBank ===

impl MemoryBank {
    pub(crate) fn with(balance: u64) -> Self {
        let bank = Self::default();
        bank.add("key_1", balance);
        bank
    }

    /// The same vault for another node.
    pub(crate) fn for_another_node(&self) -> Self {
        Self { vault: Arc::clone(&self.vault), wire: Arc::default() }
    }

    pub(crate) fn add(&self, key_id: &str, amount: u64) {
        *self.vault.lock().unwrap().balances.entry(key_id.to_owned()).or_default() += amount;
    }

    pub(crate) fn balance(&self, key_id: &str) -> u64 {
        self.vault.lock().unwrap().balances[key_id]
    }

    pub(crate) fn row(&self, key_id: &str) -> Option<(u64, u64)> {
        let vault = self.vault.lock().unwrap();
        vault.rows.get(&(key_id.to_owned(), [7; 16])).copied()
    }

    pub(crate) fn fail(&self, failing: bool) {
        self.wire.failing.store(failing, Ordering::Relaxed);
    }

    pub(crate) fn next(&self, fate: Fate) {
        self.wire.fates.lock().unwrap().push_back(fate);
    }

    /// How often it was asked for credits.
    pub(crate) fn leases(&self) -> usize {
        self.wire.leases.load(Ordering::Relaxed)
    }

    /// How many of these calls ran at the same time, at most.
    pub(crate) fn most_under_way(&self) -> usize {
        self.wire.most_under_way.load(Ordering::Relaxed)
    }

    fn call<T: Send + 'static>(
        &self,
        apply: impl Fn(&mut Vault) -> T + Send + 'static,
    ) -> Loading<T> {
        let (vault, wire) = (Arc::clone(&self.vault), Arc::clone(&self.wire));
        let off = || OriginError::new("off");
        Box::pin(async move {
            let fate = wire.fates.lock().unwrap().pop_front().unwrap_or(WELL);
            let mut made = None;
            for _ in 0..fate.times {
                pause(fate.late).await;
                if wire.cut.load(Ordering::Relaxed) || wire.failing.load(Ordering::Relaxed) {
                    return Err(off());
                }
                made = Some(apply(&mut vault.lock().unwrap()));
            }
            pause(fate.late).await;
            made.filter(|_| fate.answered).ok_or_else(off)
        })
    }
}

pub(crate) async fn pause(turns: u8) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}

impl Bank for MemoryBank {
    fn lease(
        &self,
        key_id: &str,
        boot: Boot,
        known: CreditLease,
        want: u64,
        _: Millis,
    ) -> Loading<Option<CreditLease>> {
        let (key_id, wire) = (key_id.to_owned(), Arc::clone(&self.wire));
        let leasing = self.call(move |vault| vault.lease(&key_id, boot, known, want));
        Box::pin(async move {
            wire.leases.fetch_add(1, Ordering::Relaxed);
            let others = wire.under_way.fetch_add(1, Ordering::Relaxed);
            wire.most_under_way.fetch_max(others + 1, Ordering::Relaxed);
            let leased = leasing.await;
            wire.under_way.fetch_sub(1, Ordering::Relaxed);
            leased
        })
    }

    fn report(&self, key_id: &str, boot: Boot, spent: u64) -> Loading<()> {
        let key_id = key_id.to_owned();
        self.call(move |vault| vault.report(&key_id, boot, spent))
    }

    fn give_back(&self, key_id: &str, boot: Boot, spent: u64) -> Loading<()> {
        let key_id = key_id.to_owned();
        self.call(move |vault| vault.give_back(&key_id, boot, spent))
    }
}

// === impl Vault ===

impl Vault {
    fn lease(
        &mut self,
        key_id: &str,
        boot: Boot,
        known: CreditLease,
        want: u64,
    ) -> Option<CreditLease> {
        let balance = self.balances.get_mut(key_id)?;
        let (granted, spent) = self.rows.entry((key_id.to_owned(), boot)).or_default();
        let more = (known.granted + want).saturating_sub(*granted).min(*balance);
        *granted += more;
        *balance -= more;
        *spent = known.spent.max(*spent).min(*granted);
        Some(CreditLease { granted: *granted, spent: *spent, left: *balance })
    }

    fn report(&mut self, key_id: &str, boot: Boot, total: u64) {
        if let Some((granted, spent)) = self.rows.get_mut(&(key_id.to_owned(), boot)) {
            *spent = total.max(*spent).min(*granted);
        }
    }

    fn give_back(&mut self, key_id: &str, boot: Boot, total: u64) {
        self.report(key_id, boot, total);
        if let Some((granted, spent)) = self.rows.get_mut(&(key_id.to_owned(), boot)) {
            *self.balances.entry(key_id.to_owned()).or_default() += *granted - *spent;
            *granted = *spent;
        }
    }
}
