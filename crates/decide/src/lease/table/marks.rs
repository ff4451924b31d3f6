//! What the journal must know of leases, so that the next life of this node can give back what was surely not spent.

use std::sync::Arc;

use tollkeeper_core::Take;

use super::LeaseTable;
use crate::lease::ahead::Ahead;
use crate::lease::cell::LeaseCell;
use crate::lease::{CellName, LeaseMark};
use crate::sync::lock;

// === impl LeaseTable ===

impl<W> LeaseTable<W> {
    /// Raises the ceiling in the journal in steps of an eighth of the lease, before what is below it leaves.
    pub(super) fn mark(&self, cell: &mut LeaseCell<W>) {
        if cell.totals.used + cell.aside > cell.ceiling {
            self.note(cell);
        }
        self.note_ahead(cell);
    }

    /// What was lent of the next window, and what was spent of it around the edge.
    pub(super) fn note_ahead(&self, cell: &mut LeaseCell<W>) {
        let (Some(ceilings), Some(ahead)) = (&self.ceilings, &mut cell.ahead) else { return };
        let spending = ahead.totals.used + ahead.aside;
        if ahead.totals.granted > ahead.noted || spending > ahead.ceiling {
            let step = spending + if spending > 0 { ahead.lent / 8 } else { 0 };
            ahead.ceiling = ahead.ceiling.max(spending).max(step.min(ahead.totals.granted));
            ahead.noted = ahead.totals.granted;
            ceilings.raise(mark_ahead(&cell.name, ahead));
        }
    }

    pub(super) fn note(&self, cell: &mut LeaseCell<W>) {
        let Some(ceilings) = &self.ceilings else { return };
        let spending = cell.totals.used + cell.aside;
        let step = (spending + cell.last_lent.div_ceil(8)).min(cell.totals.granted);
        cell.ceiling = cell.ceiling.max(spending).max(step);
        ceilings.raise(mark_of(cell));
    }

    /// What a call may lend is written before the call is made: its answer may come to nobody.
    pub(super) fn note_ask(&self, cell: &LeaseCell<W>, take: &Take) {
        let Some(ceilings) = &self.ceilings else { return };
        // Where something was lent before, there is a mark already.
        if cell.totals.granted == 0 && (take.bundled || take.ask > take.need) {
            ceilings.raise(mark_of(cell));
        }
    }

    pub(super) fn note_ask_ahead(&self, cell: &LeaseCell<W>) {
        if let (Some(ceilings), Some(ahead)) = (&self.ceilings, &cell.ahead)
            && !ahead.adopted
        {
            ceilings.raise(mark_ahead(&cell.name, ahead));
        }
    }

    /// Of every lease that is not known to be given back already, or that may have been lent more unheard, what the journal
    /// must go on keeping.
    pub fn marks(&self) -> Vec<LeaseMark> {
        let mut marks = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            for slot in shard.slots().filter(|slot| slot.may_be_unsettled()) {
                slot.read(|cell| marks_of(cell, &mut marks));
            }
        }
        marks
    }
}

fn marks_of<W>(cell: &LeaseCell<W>, marks: &mut Vec<LeaseMark>) {
    let spent = cell.ceiling.max(cell.totals.used + cell.aside);
    let known = if cell.owes { 0 } else { cell.acked.returned };
    let unreturned = cell.totals.returned.max(cell.totals.granted.saturating_sub(spent));
    if unreturned > known || cell.flight.is_some() || cell.missed {
        marks.push(mark_of(cell));
    }
    if let Some(ahead) = &cell.ahead
        && (ahead.totals.granted > 0 || !ahead.adopted)
    {
        marks.push(mark_ahead(&cell.name, ahead));
    }
}

fn mark_ahead(name: &Arc<CellName>, ahead: &Ahead) -> LeaseMark {
    LeaseMark {
        name: Arc::clone(name),
        limit: ahead.limit,
        win: ahead.win,
        totals: ahead.totals,
        ceiling: ahead.ceiling,
        lapse: ahead.lapse,
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
