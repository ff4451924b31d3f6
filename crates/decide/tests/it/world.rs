//! A small node and, beside it, a table without bounds that never forgets: the two must always agree.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tollkeeper_core::{
    Algorithm, Check, Cost, Limit, Millis, Quota, Settled, Sharing, State, Width, Window, settle,
};
use tollkeeper_decide::{
    CellHasher, Cells, Change, Decider, Lifetime, LimitAsk, LimitCheck, Limited, Missing,
    OriginError, RootKey, Warm,
};

use crate::bank::{MemoryBank, ports};
use crate::memory::{Hold, MemoryDirectory, MemoryShelf, override_of, root_key, tenant};

pub(crate) const NAMESPACES: [&str; 2] = ["plain", "ruled"];
pub(crate) const SHAPES: u8 = 5;
const START: Millis = Millis(1_700_000_000_123);

/// One check: namespace, identifier, shape, quota, cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) namespace: u8,
    pub(crate) identifier: u8,
    pub(crate) shape: u8,
    pub(crate) quota: u64,
    pub(crate) cost: u64,
}

/// Namespace, identifier, and what makes the limit's cell.
type ModelKey = (String, String, String);

pub(crate) struct World {
    pub(crate) now: Millis,
    cells_max: usize,
    caller: Arc<RootKey>,
    directory: MemoryDirectory,
    shelf: MemoryShelf,
    decider: Arc<Decider>,
    model: HashMap<ModelKey, State>,
    /// Asks that are warm and not decided, with the rounds that began since.
    held: Vec<(Vec<Asked>, Warm, u32)>,
    round: Option<JoinHandle<Result<usize, OriginError>>>,
    /// The journal: its segments, and the part of the table that the running checkpoint writes next.
    segments: Vec<Vec<Change>>,
    checkpoint: Option<usize>,
}

pub(crate) fn limit_of(shape: u8, quota: u64) -> Limit {
    let amount = Quota::new(quota).unwrap();
    let width = |ms| Width::from_millis(ms).unwrap();
    match shape {
        0 => Limit::fixed_window(amount, Window::Aligned(width(1000))),
        1 => Limit::fixed_window(amount, Window::Day),
        2 => Limit::sliding_window(amount, width(2300)),
        3 => Limit::sliding_log(amount, width(1700)).unwrap(),
        // When a bucket is idle depends on its quota, so a bucket's quota stays what it is.
        _ => Limit::token_bucket(Quota::new(3).unwrap(), width(4000), Quota::new(6)),
    }
}

fn shape_of(limit: &Limit) -> String {
    match limit.algorithm {
        Algorithm::TokenBucket { width, .. } => format!("bucket {width:?}"),
        other => format!("{other:?}"),
    }
}

// === impl World ===

impl World {
    pub(crate) fn new(cells_max: usize) -> Self {
        let directory = MemoryDirectory::default();
        directory.add(NAMESPACES[0], Vec::new());
        directory
            .add(NAMESPACES[1], vec![override_of("id3", 2, 1000), override_of("id1*", 4, 2500)]);
        let shelf = MemoryShelf::default();
        let cells = Arc::new(Cells::new(cells_max));
        Self {
            now: START,
            cells_max,
            caller: root_key(&["*"]),
            decider: decider(cells, &directory, &shelf),
            directory,
            shelf,
            model: HashMap::new(),
            held: Vec::new(),
            round: None,
            segments: vec![Vec::new()],
            checkpoint: None,
        }
    }

    /// Asks and compares, at once or later.
    pub(crate) async fn ask(&mut self, asked: Vec<Asked>, later: bool) {
        let warm = self.warm(&asked).await;
        if later {
            self.held.push((asked, warm, 0));
        } else {
            self.decide(&asked, warm);
        }
    }

    pub(crate) fn decide_held(&mut self) {
        if !self.held.is_empty() {
            let (asked, warm, _) = self.held.remove(0);
            self.decide(&asked, warm);
        }
    }

    async fn warm(&self, asked: &[Asked]) -> Warm {
        let names: Vec<String> = asked.iter().map(|one| format!("id{}", one.identifier)).collect();
        let checks = asked.iter().zip(&names).map(|(one, name)| LimitCheck {
            namespace: NAMESPACES[usize::from(one.namespace)],
            identifier: name,
            limit: limit_of(one.shape, one.quota),
            cost: Cost::new(one.cost).unwrap(),
            sharing: Sharing::default(),
        });
        let ask = LimitAsk {
            caller: Arc::clone(&self.caller),
            action: "limit",
            missing: Missing::Refuse,
            once: false,
            checks: checks.collect(),
        };
        self.decider.warm(&ask, self.now, &mut |_, _| ()).await.unwrap()
    }

    fn decide(&mut self, asked: &[Asked], warm: Warm) {
        let limited = self.decider.limit(warm, self.now).open();
        let expected = self.expect(asked, &limited);
        let outcomes: Vec<_> = limited.limits.iter().map(|one| one.outcome).collect();
        assert_eq!((limited.passed, outcomes), (expected.passed, expected.outcomes), "{asked:?}");
        let stats = self.decider.cells().stats();
        assert!(stats.live <= self.cells_max, "{stats:?}");
        assert_eq!(stats.lost, 0);
    }

    fn expect(&mut self, asked: &[Asked], limited: &Limited) -> Settled {
        let mut keys: Vec<ModelKey> = Vec::new();
        let mut states = Vec::new();
        let mut checks = Vec::new();
        for (one, answer) in asked.iter().zip(&limited.limits) {
            let name = NAMESPACES[usize::from(one.namespace)].to_owned();
            let key = (name, format!("id{}", one.identifier), shape_of(&answer.limit));
            let slot = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
                let kept = self.model.get(&key).cloned();
                states.push(kept.unwrap_or_else(|| State::fresh(&answer.limit)));
                keys.push(key);
                keys.len() - 1
            });
            checks.push(Check { limit: answer.limit, cost: Cost::new(one.cost).unwrap(), slot });
        }
        let settled = settle(&checks, &mut states, self.now);
        self.model.extend(keys.into_iter().zip(states));
        settled
    }

    /// Asks every cell that was ever spent from.
    pub(crate) async fn ask_all(&mut self, asked: impl Iterator<Item = Asked>) {
        for one in asked {
            self.ask(vec![one], false).await;
        }
    }

    pub(crate) async fn reset(&mut self, namespace: u8, identifier: Option<u8>) {
        self.end_round().await;
        let name = NAMESPACES[usize::from(namespace)];
        let found = self.decider.namespace(&tenant(), name, self.now, &mut |_, _| ()).await;
        let tag = &found.unwrap().unwrap().tag;
        let identifier = identifier.map(|number| format!("id{number}"));
        self.decider.reset(&tenant().id, tag, identifier.as_deref()).await.unwrap();
        self.model.retain(|(ns, id, _), _| {
            ns != name || identifier.as_ref().is_some_and(|reset| reset != id)
        });
    }

    pub(crate) fn sweep(&self, part: usize) {
        self.decider.cells().sweep(part % 2, 2, self.now);
    }

    pub(crate) async fn tidy(&mut self) {
        self.end_round().await;
        self.decider.overflow().tidy(self.now).await.unwrap();
    }
}

/// Rounds to the shelf.
impl World {
    /// No ask may be under way for longer than one round: that is what rounds are spaced for.
    fn note_round(&mut self) {
        while self.held.first().is_some_and(|(_, _, rounds)| *rounds > 0) {
            self.decide_held();
        }
        self.held.iter_mut().for_each(|(_, _, rounds)| *rounds += 1);
    }

    pub(crate) async fn fail_round(&mut self) {
        self.end_round().await;
        self.note_round();
        self.shelf.fill(true);
        let _ = self.decider.overflow().shelve().await;
        self.shelf.fill(false);
    }

    pub(crate) async fn begin_round(&mut self, hold: Hold) {
        self.end_round().await;
        self.note_round();
        self.shelf.hold(hold);
        let decider = Arc::clone(&self.decider);
        self.round = Some(tokio::spawn(async move { decider.overflow().shelve().await }));
        settle_down().await;
    }

    pub(crate) async fn end_round(&mut self) {
        let Some(round) = self.round.take() else { return };
        self.shelf.release();
        round.await.unwrap().unwrap();
        // A round with nothing to put leaves the gate open for one that should wait.
        self.shelf.close();
    }
}

/// The journal, as its keeper drives it.
impl World {
    pub(crate) fn beat(&mut self) {
        self.drain();
        let Some(part) = self.checkpoint else { return };
        if let Some(states) = self.decider.cells().snapshot(part, self.now) {
            self.segments.last_mut().unwrap().extend(states);
            self.checkpoint = Some(part + 1);
        } else {
            self.checkpoint = None;
            self.segments.drain(..self.segments.len() - 1);
        }
    }

    pub(crate) fn begin_checkpoint(&mut self) {
        if self.checkpoint.is_none() {
            self.checkpoint = Some(0);
            self.segments.push(Vec::new());
        }
    }

    fn drain(&mut self) {
        let segment = self.segments.last_mut().unwrap();
        assert!(self.decider.cells().drain_changes(|changes| segment.append(changes)));
    }

    /// The process ends, whatever is under way, and another one goes on from journal and shelf.
    pub(crate) async fn restart(&mut self, cells_max: usize) {
        while !self.held.is_empty() {
            self.decide_held();
        }
        self.drain();
        if let Some(round) = self.round.take() {
            round.abort();
        }
        self.checkpoint = None;
        self.cells_max = cells_max;
        self.shelf = self.shelf.survive();
        let cells = Arc::new(Cells::new(cells_max));
        let changes = self.segments.iter().flatten().cloned();
        changes.for_each(|change| cells.replay(change, self.now));
        self.segments.push(Vec::new());
        self.decider = decider(cells, &self.directory, &self.shelf);
        self.decider.overflow().tidy(self.now).await.unwrap();
    }
}

/// Lets every task run until it waits for something.
pub(crate) async fn settle_down() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

fn decider(cells: Arc<Cells>, directory: &MemoryDirectory, shelf: &MemoryShelf) -> Arc<Decider> {
    let lifetime = Lifetime { fresh_ms: 3_600_000, stale_ms: 7_200_000 };
    Arc::new(Decider::new(
        cells,
        CellHasher::new([9; 16]),
        ports(directory, shelf, &MemoryBank::default()),
        lifetime,
        Handle::current(),
    ))
}
