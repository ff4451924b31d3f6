//! Where the cells of a shard are, told without its lock. Whoever wants a cell has it fetched into this core's cache while it
//! takes the lock: both come from far away where another core had them last, and so they come at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::CellKey;
use crate::cell::Cell;

/// Only a hint: it may be of slots that were given back meanwhile. Those of all shards stand side by side, apart from all that is
/// written while cells come and go: few lines, which every request reads and which stay near.
#[derive(Debug, Default)]
pub(crate) struct Whereabouts {
    slots: AtomicUsize,
    /// Of the first cell.
    cells: AtomicUsize,
    /// Of the first mark, one bit for each cell.
    marks: AtomicUsize,
}

/// Where one shard tells its own.
#[derive(Debug)]
pub(crate) struct Post {
    all: Arc<[Whereabouts]>,
    at: usize,
}

// === impl Post ===

impl Post {
    pub(crate) fn new(all: &Arc<[Whereabouts]>, at: usize) -> Self {
        Self { all: Arc::clone(all), at }
    }

    /// They are here from now on.
    pub(crate) fn tell(&self, cells: &[Option<Cell>], marks: &[u64]) {
        let Some(own) = self.all.get(self.at) else { return };
        own.slots.store(cells.len(), Ordering::Relaxed);
        own.cells.store(cells.as_ptr().addr(), Ordering::Relaxed);
        own.marks.store(marks.as_ptr().addr(), Ordering::Relaxed);
    }
}

// === impl Whereabouts ===

impl Whereabouts {
    #[cfg(test)]
    pub(crate) fn told(&self) -> (usize, usize, usize) {
        let Self { slots, cells, marks } = self;
        let [slots, cells, marks] = [slots, cells, marks].map(|it| it.load(Ordering::Relaxed));
        (slots, cells, marks)
    }

    /// Has the lines fetched where this key asks for its cell and its mark, for whoever takes the lock next. Waits for nothing.
    #[inline]
    pub(crate) fn fetch(&self, key: CellKey) {
        let [cell, mark] = self.lines(key);
        fetch_to_write(cell);
        fetch_to_read(mark);
    }

    /// The same for whoever may come to it later, or not: it takes the line from no other core.
    #[inline]
    pub(crate) fn fetch_early(&self, key: CellKey) {
        self.lines(key).into_iter().for_each(fetch_to_read);
    }

    #[inline]
    fn lines(&self, key: CellKey) -> [usize; 2] {
        let slot = home(key, self.slots.load(Ordering::Relaxed));
        let cell = self.cells.load(Ordering::Relaxed) + slot * size_of::<Option<Cell>>();
        [cell, self.marks.load(Ordering::Relaxed) + slot / 8]
    }
}

/// Has the line fetched where something begins that is looked at soon, and lies apart from all that is looked at before it.
#[inline]
pub fn fetch_ahead<T: ?Sized>(it: &T) {
    fetch_to_read(std::ptr::from_ref(it).cast::<u8>().addr());
}

/// The same for what is looked at once and not again: it is kept as briefly as the processor can, for whoever changes it next has
/// to ask for it back as long as it is.
#[inline]
pub(crate) fn fetch_once<T>(it: &T) {
    fetch_to_read_once(std::ptr::from_ref(it).cast::<u8>().addr());
}

/// A share of the table like the key's share of all keys: any number of slots will do.
#[allow(clippy::cast_possible_truncation, reason = "the product's high half is below `slots`")]
#[inline]
pub(crate) fn home(key: CellKey, slots: usize) -> usize {
    ((u128::from(key.exact) * slots as u128) >> 64) as usize
}

/// The line and the two behind it: where four of five slots are full 62 % of the cells are where they belong, and 84 % within two of
/// it. A line that another core has read or changed last is asked of it once, and not once more when the cell is changed.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unsafe_code, reason = "the standard library has no word for it")]
#[inline]
fn fetch_to_write(address: usize) {
    // SAFETY: a prefetch reads nothing that the program could see and never faults, whatever is at the address. Processors that
    // do not know this one pass over it.
    unsafe {
        std::arch::asm!(
            "prefetchw [{0}]",
            "prefetchw [{0} + 64]",
            "prefetchw [{0} + 128]",
            in(reg) address,
            options(nostack, preserves_flags, nomem)
        );
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unsafe_code, reason = "the standard library has no safe word for it yet")]
#[inline]
fn fetch_to_read(address: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    // SAFETY: as above.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address)) };
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unsafe_code, reason = "the standard library has no safe word for it yet")]
#[inline]
fn fetch_to_read_once(address: usize) {
    use std::arch::x86_64::{_MM_HINT_NTA, _mm_prefetch};

    // SAFETY: as above.
    unsafe { _mm_prefetch::<_MM_HINT_NTA>(std::ptr::without_provenance(address)) };
}

/// Elsewhere the cell is fetched when it is looked at.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn fetch_to_write(_: usize) {}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn fetch_to_read(_: usize) {}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn fetch_to_read_once(_: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_asks_for_its_share_of_the_slots_and_for_none_where_there_are_none() {
        let key = |exact| CellKey { subject: 0, exact };
        assert_eq!([0, u64::MAX / 2 + 1, u64::MAX].map(|exact| home(key(exact), 10)), [0, 5, 9]);
        assert_eq!(home(key(u64::MAX), 0), 0);
    }

    #[test]
    fn a_line_is_fetched_from_nowhere_without_harm() {
        Whereabouts::default().fetch(CellKey { subject: 0, exact: u64::MAX });
        Whereabouts::default().fetch_early(CellKey { subject: 0, exact: u64::MAX });
        fetch_to_write(usize::MAX);
        fetch_to_read(usize::MAX);
        fetch_to_read_once(usize::MAX);
    }
}
