//! Cells on their way from the table to the shelf. Until the shelf has surely answered, and one round longer,
//! they can be taken back from here, so that no request ever finds a cell in neither place.
//! A cell is in at most one stage, and never in the table at the same time.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::CellKey;
use crate::ports::ParkedCell;

/// Keys are keyed hashes already; hashing them again would only cost.
type Stage = HashMap<CellKey, ParkedCell, BuildHasherDefault<KeyIsHash>>;

#[derive(Debug, Default)]
pub(crate) struct KeyIsHash(u64);

#[derive(Debug, Default)]
pub(crate) struct Parking {
    /// Not handed to the shelf yet.
    waiting: Stage,
    /// Handed over in the running round; the shelf has not answered yet.
    handed: Stage,
    /// On the shelf since this round, and since the one before. A request looks for its cells first and
    /// decides later, with at most one round beginning in between; what it then found here, or not yet
    /// on the shelf, must still be here. A round may end just before the next begins, so it takes two.
    settled: Stage,
    settled_before: Stage,
}

// === impl Parking ===

impl Parking {
    pub(crate) fn push(&mut self, cell: ParkedCell) {
        self.waiting.insert(cell.key, cell);
    }

    /// The newest state of this cell, if it is here. It leaves the parking: the table owns it again.
    pub(crate) fn take(&mut self, key: CellKey) -> Option<ParkedCell> {
        let stages = [&self.waiting, &self.handed, &self.settled, &self.settled_before];
        // The usual case on the way of a request: nothing was ever parked.
        if stages.into_iter().all(HashMap::is_empty) {
            return None;
        }
        let settled = self.settled.remove(&key).or_else(|| self.settled_before.remove(&key));
        let handed = self.handed.remove(&key);
        self.waiting.remove(&key).or(handed).or(settled)
    }

    pub(crate) fn peek(&self, key: CellKey) -> Option<&ParkedCell> {
        let stages = [&self.waiting, &self.handed, &self.settled, &self.settled_before];
        stages.into_iter().find_map(|stage| stage.get(&key))
    }

    /// Will this cell still be here when a request decides that looks for it now?
    pub(crate) fn stays(&self, key: CellKey) -> bool {
        [&self.waiting, &self.handed, &self.settled]
            .into_iter()
            .any(|stage| stage.contains_key(&key))
    }

    /// Starts a round: what waits is handed over, what is long on the shelf is forgotten here.
    pub(crate) fn hand_over(&mut self, out: &mut Vec<ParkedCell>) {
        // A round that ended neither well nor badly was cancelled: nobody knows what the shelf has of it.
        self.take_back();
        self.settled_before = std::mem::take(&mut self.settled);
        self.handed = std::mem::take(&mut self.waiting);
        out.extend(self.handed.values().cloned());
    }

    /// The shelf has this cell as it was handed over. False when it was taken back or changed meanwhile.
    pub(crate) fn settle(&mut self, key: CellKey) -> bool {
        let handed = self.handed.remove(&key);
        handed.is_some_and(|cell| self.settled.insert(key, cell).is_none())
    }

    /// The round failed: what it handed over waits again, unless a newer state does.
    pub(crate) fn take_back(&mut self) {
        for (key, cell) in self.handed.drain() {
            self.waiting.entry(key).or_insert(cell);
        }
    }

    /// Drops these, and says which of them the shelf does not have.
    pub(crate) fn forget(&mut self, which: impl Fn(&ParkedCell) -> bool) -> Vec<CellKey> {
        self.settled.retain(|_, cell| !which(cell));
        self.settled_before.retain(|_, cell| !which(cell));
        let waiting = self.waiting.extract_if(|_, cell| which(cell));
        let gone = waiting.chain(self.handed.extract_if(|_, cell| which(cell)));
        gone.map(|(key, _)| key).collect()
    }

    /// How many the shelf does not have. The others are as many as two rounds brought there, at most.
    pub(crate) fn unsettled_len(&self) -> usize {
        self.waiting.len() + self.handed.len()
    }

    /// What only this process knows: all that the shelf has not confirmed.
    pub(crate) fn unsettled(&self) -> impl Iterator<Item = &ParkedCell> {
        self.waiting.values().chain(self.handed.values())
    }
}

// === impl KeyIsHash ===

impl Hasher for KeyIsHash {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, half: u64) {
        self.0 = self.0.rotate_left(32) ^ half;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
