//! What the journal must know of leases, so that the next life of this node can give back what was surely not spent.

use std::sync::Arc;

use super::{LeaseMark, LeaseTable};
use crate::lease::cell::LeaseCell;
use crate::sync::lock;

// === impl LeaseTable ===

impl<W> LeaseTable<W> {
    /// Raises the ceiling in the journal in steps of an eighth of the lease, before what is below it leaves.
    pub(super) fn mark(&self, cell: &mut LeaseCell<W>) {
        if cell.totals.used + cell.aside > cell.ceiling {
            self.note(cell);
        }
    }

    pub(super) fn note(&self, cell: &mut LeaseCell<W>) {
        let Some(ceilings) = &self.ceilings else { return };
        let spending = cell.totals.used + cell.aside;
        let step = (spending + cell.last_lent.div_ceil(8)).min(cell.totals.granted);
        cell.ceiling = cell.ceiling.max(spending).max(step);
        ceilings.raise(mark_of(cell));
    }

    /// Of every lease that is not known to be given back already, what the journal must go on keeping.
    pub fn marks(&self) -> Vec<LeaseMark> {
        let mut marks = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            let unreturned = shard.values().filter(|cell| {
                let spent = cell.ceiling.max(cell.totals.used + cell.aside);
                let known = if cell.owes { 0 } else { cell.acked.returned };
                cell.totals.returned.max(cell.totals.granted.saturating_sub(spent)) > known
            });
            marks.extend(unreturned.map(mark_of));
        }
        marks
    }
}

fn mark_of<W>(cell: &LeaseCell<W>) -> LeaseMark {
    LeaseMark {
        name: Arc::clone(&cell.name),
        limit: cell.limit,
        win: cell.win,
        totals: cell.totals,
        ceiling: cell.ceiling.max(cell.totals.used + cell.aside),
        lapse: cell.lapse,
    }
}
