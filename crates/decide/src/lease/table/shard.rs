//! The cells of one shard by their keys. A cell that sleeps is woken where somebody needs it as it is, and only there.

use hashbrown::HashTable;
use hashbrown::hash_table::{Entry, OccupiedEntry};

use crate::CellKey;
use crate::lease::asleep::{Births, Slot};
use crate::lease::cell::LeaseCell;

#[derive(Debug)]
pub(super) struct Shard<W> {
    slots: HashTable<Slot<W>>,
}

// === impl Shard ===

impl<W> Default for Shard<W> {
    fn default() -> Self {
        Self { slots: HashTable::new() }
    }
}

impl<W> Shard<W> {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn holds(&self, key: CellKey) -> bool {
        self.slot(key).is_some()
    }

    pub(super) fn slot(&self, key: CellKey) -> Option<&Slot<W>> {
        self.slots.find(hash_of(key), |slot| slot.key() == key)
    }

    pub(super) fn slot_mut(&mut self, key: CellKey) -> Option<&mut Slot<W>> {
        self.slots.find_mut(hash_of(key), |slot| slot.key() == key)
    }

    /// A cell that is awake: whoever has a call under way, somebody waiting, or units set aside for a decision.
    pub(super) fn awake(&mut self, key: CellKey) -> Option<&mut LeaseCell<W>> {
        self.slot_mut(key)?.awake()
    }

    pub(super) fn wake(&mut self, key: CellKey, births: &Births) -> Option<&mut LeaseCell<W>> {
        self.slot_mut(key).map(|slot| slot.wake(births))
    }

    /// Who is awake, or has something to give back.
    pub(super) fn wake_holder(
        &mut self,
        key: CellKey,
        births: &Births,
    ) -> Option<&mut LeaseCell<W>> {
        let slot = self.slot_mut(key).filter(|slot| slot.is_awake_or_holds())?;
        Some(slot.wake(births))
    }

    /// The cell, or a new one.
    pub(super) fn wake_or_enter(
        &mut self,
        key: CellKey,
        births: &Births,
        new: impl FnOnce() -> LeaseCell<W>,
    ) -> &mut LeaseCell<W> {
        let hash_of_slot = |slot: &Slot<W>| hash_of(slot.key());
        let slot = match self.slots.entry(hash_of(key), |slot| slot.key() == key, hash_of_slot) {
            Entry::Occupied(slot) => slot.into_mut(),
            Entry::Vacant(place) => place.insert(Slot::Awake(Box::new(new()))).into_mut(),
        };
        slot.wake(births)
    }

    pub(super) fn remove(&mut self, key: CellKey) -> bool {
        let found = self.slots.find_entry(hash_of(key), |slot| slot.key() == key);
        found.map(OccupiedEntry::remove).is_ok()
    }

    pub(super) fn retain(&mut self, keeps: impl FnMut(&mut Slot<W>) -> bool) {
        self.slots.retain(keeps);
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot<W>> {
        self.slots.iter()
    }

    pub(super) fn slots_mut(&mut self) -> impl Iterator<Item = &mut Slot<W>> {
        self.slots.iter_mut()
    }
}

/// A cell's key is a keyed hash already; all cells of an identifier have the first half of it in common.
fn hash_of(key: CellKey) -> u64 {
    key.subject.rotate_left(1) ^ key.exact
}
