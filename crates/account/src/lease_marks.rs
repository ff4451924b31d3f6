//! Ceilings of leases, written to the journal before what is below them is spent.
//! A write that fails marks the journal as broken: then the next process gives nothing back.

use tollkeeper_core::Millis;
use tollkeeper_decide::{Ceilings, LeaseMark};

use crate::journal::{BootId, SharedJournal};
use crate::lease_left::LeaseLeft;

#[derive(Clone, Debug)]
pub struct LeaseMarks {
    journal: SharedJournal,
    boot: BootId,
    /// What the node's clock would have said when the machine started.
    machine_start: Millis,
}

// === impl LeaseMarks ===

impl LeaseMarks {
    pub fn new(journal: SharedJournal, machine_start: Millis) -> Self {
        let boot = journal.lock().boot();
        Self { journal, boot, machine_start }
    }

    /// The mark as the next process can read it: the node's clock ends with the node, the machine's does not.
    pub fn left(&self, mark: LeaseMark) -> LeaseLeft {
        let lapse = Millis(mark.lapse.since(self.machine_start));
        LeaseLeft { boot: self.boot, mark: LeaseMark { lapse, ..mark } }
    }
}

impl Ceilings for LeaseMarks {
    fn raise(&self, mark: LeaseMark) {
        let left = self.left(mark);
        // The journal knows of its gap, and the keeper mends it.
        let _ = self.journal.lock().note_leases(&[left]);
    }
}
