//! What may be on the shelf, as far as this node knows. Never wrongly "no"; learnt anew now and then,
//! because a filter forgets nothing by itself.

use crate::CellKey;
use crate::filter::Filter;
use crate::sync::{AtomicBool, Ordering, RwLock, read, write};

#[derive(Debug)]
pub(crate) struct OnShelf {
    filters: RwLock<Filters>,
    /// False as long as no cell is parked anywhere; then the filters need not be looked at.
    any: AtomicBool,
    /// How many cells a filter is made for.
    room: usize,
}

#[derive(Debug)]
struct Filters {
    current: Filter,
    /// While it is built anew: both learn of evictions.
    next: Option<Filter>,
}

// === impl OnShelf ===

impl OnShelf {
    pub(crate) fn for_cells(room: usize) -> Self {
        let filters = Filters { current: Filter::for_cells(room), next: None };
        Self { filters: RwLock::new(filters), any: AtomicBool::new(false), room }
    }

    pub(crate) fn holds_any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Takes the filters' lock, and no other while it holds it: also true of all below,
    /// so that it may be called with shards locked.
    pub(crate) fn may_hold(&self, key: CellKey) -> bool {
        read(&self.filters).current.may_hold(key)
    }

    pub(crate) fn mark(&self, key: CellKey) {
        let filters = read(&self.filters);
        filters.current.add(key);
        self.any.store(true, Ordering::Relaxed);
        if let Some(next) = &filters.next {
            next.add(key);
        }
    }

    pub(crate) fn renew(&self) {
        write(&self.filters).next = Some(Filter::for_cells(self.room));
    }

    pub(crate) fn adopt<'a>(&self, keys: impl Iterator<Item = &'a CellKey>) {
        let mut filters = write(&self.filters);
        let Some(next) = filters.next.take() else { return };
        keys.for_each(|key| next.add(*key));
        filters.current = next;
        self.any.store(filters.current.holds_any(), Ordering::Relaxed);
    }
}
