//! Several nodes on one bank, nodes that die and nodes that end, and beside them a book of what was answered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::runtime::Handle;
use tollkeeper_core::Millis;
use tollkeeper_decide::{Bank, Filled, Purse};

use crate::bank::{Boot, Fate, MemoryBank, pause};

pub(crate) const KEYS: [&str; 2] = ["key_a", "key_b"];
const START: Millis = Millis(1_700_000_000_000);

pub(crate) struct World {
    now: Millis,
    bank: MemoryBank,
    nodes: Vec<Node>,
    boots: u8,
    /// Boots that ended, in order or not, and whose leases the next process looks after.
    ended: Vec<Boot>,
    book: Arc<Mutex<Book>>,
}

#[derive(Clone)]
struct Node {
    boot: Boot,
    bank: MemoryBank,
    purse: Arc<Purse>,
    alive: Arc<AtomicBool>,
}

/// What survives every process.
#[derive(Default)]
struct Book {
    /// Spent in total, as the journal of each boot has it.
    journal: BTreeMap<(&'static str, Boot), u64>,
    /// Passed requests whose answer left, added up.
    answered: BTreeMap<&'static str, u64>,
    /// All that a key ever had.
    ever: BTreeMap<&'static str, u64>,
}

/// How a request ends once it is warm.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Spend,
    /// A limit had no room.
    Denied,
    /// The process dies between deciding and writing that down: nobody ever got an answer.
    DieUnrecorded,
}

// === impl World ===

impl World {
    pub(crate) fn new(nodes: usize, balances: [u64; 2]) -> Self {
        let mut world = Self {
            now: START,
            bank: MemoryBank::default(),
            nodes: Vec::new(),
            boots: 0,
            ended: Vec::new(),
            book: Arc::default(),
        };
        for (key, balance) in KEYS.into_iter().zip(balances) {
            world.add(key, balance);
        }
        world.nodes = (0..nodes).map(|_| world.boot()).collect();
        world
    }

    /// A refill, or somebody pays.
    pub(crate) fn add(&self, key: &'static str, amount: u64) {
        self.bank.add(key, amount);
        *self.book.lock().unwrap().ever.entry(key).or_default() += amount;
    }

    pub(crate) fn advance(&mut self, ms: u64) {
        self.now = self.now + ms;
    }

    /// A request, beside whatever else is going on.
    pub(crate) fn ask(&self, node: usize, key: &'static str, cost: u64, dawdle: u8, end: End) {
        let (node, book, now) = (self.nodes[node].clone(), Arc::clone(&self.book), self.now);
        tokio::spawn(async move {
            let filled = node.purse.fill(&key.into(), cost, now).await;
            let Ok(Filled::Held(held)) = filled else { return };
            pause(dawdle).await;
            if !node.alive() || matches!(end, End::Denied) {
                return;
            }
            let taken = node.purse.take(held);
            if matches!(end, End::DieUnrecorded) {
                node.die();
            } else if taken.enough && cost > 0 {
                let mut book = book.lock().unwrap();
                let total = book.journal.entry((key, node.boot)).or_default();
                *total = taken.spent.max(*total);
                *book.answered.entry(key).or_default() += cost;
            }
        });
    }

    pub(crate) fn foretell(&self, node: usize, fates: &[Fate]) {
        self.nodes[node].bank.wire.fates.lock().unwrap().extend(fates);
    }

    pub(crate) fn give_back(&self, node: usize, key: &'static str) {
        let node = self.nodes[node].clone();
        tokio::spawn(async move { node.purse.give_back(key).await });
    }

    pub(crate) fn report(&self, node: usize) {
        let (node, now) = (self.nodes[node].clone(), self.now);
        tokio::spawn(async move { node.purse.report(1, now).await });
    }

    pub(crate) fn tidy(&self, node: usize) {
        let (node, now) = (self.nodes[node].clone(), self.now);
        tokio::spawn(async move { node.purse.tidy(now).await });
    }

    /// What it had in memory is gone; another process takes its place.
    pub(crate) fn kill(&mut self, node: usize) {
        self.nodes[node].die();
        self.bury();
    }

    /// An orderly end, which may not succeed: then it is like any other.
    pub(crate) async fn close(&mut self, node: usize) {
        pause(200).await;
        let _ = self.nodes[node].purse.close().await;
        self.kill(node);
    }

    /// Replaces the dead.
    pub(crate) fn bury(&mut self) {
        for at in 0..self.nodes.len() {
            if !self.nodes[at].alive() {
                self.ended.push(self.nodes[at].boot);
                self.nodes[at] = self.boot();
            }
        }
    }

    /// The next process gives back what the oldest of the ended ones held, by its journal.
    pub(crate) async fn recover(&mut self, fates: &[Fate]) {
        let Some(boot) = self.ended.first().copied() else { return };
        let bank = self.bank.for_another_node();
        bank.wire.fates.lock().unwrap().extend(fates);
        let mut whole = true;
        for key in KEYS {
            let spent = self.book.lock().unwrap().journal.get(&(key, boot)).copied();
            whole &= bank.give_back(key, boot, spent.unwrap_or(0)).await.is_ok();
        }
        if whole {
            self.ended.remove(0);
        }
    }

    fn boot(&mut self) -> Node {
        self.boots += 1;
        let (boot, bank) = ([self.boots; 16], self.bank.for_another_node());
        let purse = Arc::new(Purse::new(Arc::new(bank.clone()), boot, Handle::current()));
        Node { boot, bank, purse, alive: Arc::new(AtomicBool::new(true)) }
    }

    /// At every moment: the vault adds up, and nothing was spent that was not leased.
    pub(crate) fn check(&self) {
        let (vault, book) = (self.bank.vault.lock().unwrap(), self.book.lock().unwrap());
        for key in KEYS {
            let granted = vault.rows.iter().filter(|((of, _), _)| of == key).map(|(_, row)| row.0);
            assert_eq!(vault.balances[key] + granted.sum::<u64>(), book.ever[key]);
            assert!(book.answered.get(key) <= book.ever.get(key));
        }
        for ((key, boot), spent) in &book.journal {
            let (granted, known) = vault.rows[&((*key).to_owned(), *boot)];
            assert!(*spent <= granted && known <= granted, "{key}: {spent} of {granted}");
        }
    }

    /// Ends everything, and expects every credit to be either at the bank or in an answer.
    pub(crate) async fn end(mut self) {
        for node in &self.nodes {
            node.bank.wire.fates.lock().unwrap().clear();
        }
        pause(255).await;
        self.bury();
        for node in 0..self.nodes.len() {
            self.close(node).await;
        }
        while !self.ended.is_empty() {
            self.recover(&[]).await;
        }
        self.check();
        let (vault, book) = (self.bank.vault.lock().unwrap(), self.book.lock().unwrap());
        for key in KEYS {
            let answered = book.answered.get(key).copied().unwrap_or(0);
            assert_eq!(vault.balances[key] + answered, book.ever[key], "{key}");
        }
        assert!(vault.rows.values().all(|(granted, spent)| granted == spent));
    }
}

// === impl Node ===

impl Node {
    fn alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed)
    }

    /// What is on the wire and has not arrived never will.
    fn die(&self) {
        self.alive.store(false, Ordering::Relaxed);
        self.bank.wire.cut.store(true, Ordering::Relaxed);
    }
}
