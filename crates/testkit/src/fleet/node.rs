//! One node of the fleet: a lease table and a clock that is not quite right.

use std::sync::Arc;

use tollkeeper_core::{Boot, Millis};
use tollkeeper_decide::{LeaseTable, Link};

use super::journal::Journal;
use super::{Dice, Plan};

/// A request that waits, as the table hands it back.
pub(super) type Waiting = u64;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) table: Arc<LeaseTable<Waiting>>,
    pub(super) journal: Journal,
    pub(super) life: u64,
    pub(super) paused_until: u64,
    /// Dead, and not yet back.
    pub(super) down_until: u64,
    /// What it last read of the origin's epoch.
    pub(super) epoch: u64,
    pub(super) learning: bool,
    pub(super) cut: Cut,
    /// When its last message arrives at the origin.
    pub(super) heard_until: u64,
    skew_ms: i64,
    drift_ppm: i64,
}

/// A time without the origin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cut {
    /// Counts cuts, so that each has its own share.
    pub(super) number: u64,
    pub(super) from: u64,
    pub(super) until: u64,
    /// The breaker notices both a little later.
    pub(super) away_from: u64,
    pub(super) away_until: u64,
}

// === impl Node ===

impl Node {
    pub(super) fn new(index: usize, plan: &Plan, dice: &mut Dice) -> Self {
        let reach = plan.faults.skew_ms;
        let skew_ms = dice.below(2 * reach + 1) as i64 - reach as i64;
        let drift_ppm = if reach == 0 { 0 } else { dice.below(1001) as i64 - 500 };
        let journal = Journal::default();
        Self {
            table: Arc::new(table(index, 1, plan, &journal)),
            journal,
            life: 1,
            paused_until: 0,
            down_until: 0,
            epoch: 0,
            learning: false,
            cut: Cut::default(),
            heard_until: 0,
            skew_ms,
            drift_ppm,
        }
    }

    /// The same machine with another process on it: its clock goes on, its memory does not. Returns who died.
    pub(super) fn restart(&mut self, index: usize, plan: &Plan) -> (Boot, Journal) {
        let dead = self.table.boot();
        let journal = std::mem::take(&mut self.journal);
        self.life += 1;
        self.table = Arc::new(table(index, self.life, plan, &self.journal));
        self.paused_until = 0;
        (dead, journal)
    }

    /// This node's clock at a true moment (in microseconds since the start of the run).
    pub(super) fn clock(&self, start_ms: u64, true_us: u64) -> Millis {
        let drifted = true_us as i64 + true_us as i64 * self.drift_ppm / 1_000_000;
        let ms = start_ms as i64 + self.skew_ms + drifted / 1_000;
        Millis(u64::try_from(ms).unwrap_or(0))
    }

    pub(super) fn is_still(&self, now_us: u64) -> bool {
        self.paused_until > now_us || self.down_until > now_us
    }

    pub(super) fn is_cut(&self, now_us: u64) -> bool {
        self.cut.from <= now_us && now_us < self.cut.until
    }

    pub(super) fn link(&self, now_us: u64) -> Link {
        if self.cut.away_from <= now_us && now_us < self.cut.away_until {
            Link::Away
        } else if self.learning {
            Link::Learning
        } else {
            Link::Up
        }
    }
}

fn table(index: usize, life: u64, plan: &Plan, journal: &Journal) -> LeaseTable<Waiting> {
    let boot = Boot((index as u64) << 32 | life);
    let table = LeaseTable::new(plan.table * 64, boot);
    table.set_nodes(plan.nodes as u64);
    if plan.faults.journal { table.keeping(Arc::new(journal.clone())) } else { table }
}
