//! The same for cells that are shared over Redis. The origin is the pure record that the script is held against: it is made for
//! each call and dropped, so that what is measured is the node's alone.

use std::sync::Arc;

use tollkeeper_core::{Boot, Cost, Limit, Millis, Record, Taken};
use tollkeeper_decide::{
    CellHasher, CellKey, CellName, Consistency, Errand, LeaseAsk, LeaseTable, Link, NearLease,
    OnOutage, Place, Scope,
};

use super::{NOW, all_live};
use crate::failure::Failure;
use crate::identifiers::{IDENTIFIERS, identifier};
use crate::proc;

/// Shards are filled unevenly: with a fifth more room none is full.
const CELLS_MAX: usize = 1_200_000;

/// The third request of an identifier is lent some beside its cost. A fixed window's fourth could ask for the next window too.
const ASKS: u64 = 3;

struct Node {
    table: LeaseTable<()>,
    hasher: CellHasher,
    scope: Arc<Scope>,
    limit: Limit,
}

/// Every identifier is asked for once, and the node is left alone for some seconds.
pub(super) fn ask_once(limit: Limit) -> Result<[u64; 2], Failure> {
    Node::new(limit).measure(1)
}

/// Every identifier is asked for until the node has a lease of it.
pub(super) fn lend(limit: Limit) -> Result<[u64; 2], Failure> {
    Node::new(limit).measure(ASKS)
}

// === impl Node ===

impl Node {
    fn new(limit: Limit) -> Self {
        Self {
            table: LeaseTable::new(CELLS_MAX, Boot(1)),
            hasher: CellHasher::new(*b"a fixed 16 bytes"),
            scope: Arc::new(Scope::namespace("tenant", "requests")),
            limit,
        }
    }

    fn measure(&self, asks: u64) -> Result<[u64; 2], Failure> {
        for n in 0..IDENTIFIERS {
            self.ask(&identifier(n), asks);
        }
        let filled = proc::resident_bytes()?;
        for second in [2, 4] {
            let now = NOW + second * 1_000;
            let (errands, _) = self.table.look(Place::shard(0), 1, usize::MAX, |_| true, now);
            for errand in errands {
                self.call(errand, &mut None, now);
            }
        }
        super::settle();
        all_live(self.table.asleep())?;
        Ok([filled, proc::resident_bytes()?])
    }

    fn ask(&self, identifier: &str, asks: u64) {
        let key = self.key(identifier);
        let ask = LeaseAsk {
            key,
            limit: self.limit,
            cost: Cost::ONE,
            consistency: Consistency::Exact,
            on_outage: OnOutage::Share,
            bundled: false,
            beside: 0,
        };
        let mut record = None;
        for _ in 0..asks {
            let name = || CellName::new(&self.scope, identifier);
            let errand = match self.table.near(&ask, name, |_| (), Link::Up, NOW) {
                NearLease::Dealt(_, errand) | NearLease::Waits(_, errand) => errand,
            };
            if let Some(errand) = errand {
                self.call(errand, &mut record, NOW);
            }
        }
    }

    fn key(&self, identifier: &str) -> CellKey {
        self.hasher.namespace("tenant", "requests").cell(identifier, &self.limit)
    }

    fn call(&self, errand: Errand, record: &mut Option<Record>, now: Millis) {
        let mut next = Some(errand);
        while let Some(errand) = next {
            let taken: Taken = Record::take(record, &errand.take, false, now);
            next = self.table.absorb(&errand, Ok(&taken), now, now).next;
        }
    }
}
