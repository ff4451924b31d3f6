//! One slot of a page: which minute of which key it counts, sealed by a checksum that is written last, and four totals.
//! Each total stands there twice, the second time below zero: what a dying process left between the two is seen, and so is
//! a number that something else has changed. A backup copies slots while others count in them, word by word from the front,
//! so that there either of the two may be ahead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollkeeper_core::{Minute, Usage};

/// 256 bytes: a multiple of every cache line there is, and sixteen of them are a page of memory.
pub(super) const SLOT_WORDS: usize = 32;
pub(super) const SLOT_BYTES: usize = SLOT_WORDS * 8;

const SEAL: usize = 0;
const TOTALS: usize = 1;
const MIRRORS: usize = 5;
const NAME: usize = 9;
const TEXT: usize = NAME + 1;
/// What the ids of a project and a key may take together; ours take 49.
pub(super) const TEXT_BYTES: usize = (SLOT_WORDS - TEXT) * 8;

/// Above the checksum in the seal, so that no slot's seal is zero.
const MARK: u64 = 0x544b_5553 << 32;

/// How far a total and its mirror may be apart: threads that died between the two, each with one request, or what a key was
/// asked while a copy went from the one to the other, 32 bytes further.
const TORN_REQUESTS_MAX: u64 = 1_024;
/// The same for amounts: no single request has more.
const TORN_AMOUNT_MAX: u64 = 1 << 40;

/// What one key can move in one minute: 70 TB. More is not told, so that a day of it on sixty nodes still is a number that
/// a database adds up, and nobody's usage stands in the way of everybody's.
const AMOUNT_MAX: u64 = 1 << 46;

/// What a slot counts. An empty key id: all keys of the project for which there was no room.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SlotName {
    pub(super) minute: Minute,
    pub(super) project_id: Arc<str>,
    pub(super) key_id: Arc<str>,
}

/// What the file of a dead process holds in one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Nothing,
    Counted(SlotName, Usage),
    Damaged,
}

// === impl SlotName ===

impl SlotName {
    pub(super) fn fits(&self) -> bool {
        let fits = |text: &str| u8::try_from(text.len()).is_ok();
        fits(&self.project_id)
            && fits(&self.key_id)
            && self.project_id.len() + self.key_id.len() <= TEXT_BYTES
    }

    /// Minute (4), lengths (1, 1), nothing (2), then both ids.
    fn words(&self) -> [u64; SLOT_WORDS - NAME] {
        let mut bytes = [0_u8; (SLOT_WORDS - NAME) * 8];
        let length = |text: &str| u8::try_from(text.len()).unwrap_or(u8::MAX);
        bytes[..4].copy_from_slice(&self.minute.0.to_le_bytes());
        bytes[4] = length(&self.project_id);
        bytes[5] = length(&self.key_id);
        let ids = self.project_id.bytes().chain(self.key_id.bytes());
        bytes[8..].iter_mut().zip(ids).for_each(|(place, byte)| *place = byte);
        let mut words = [0; SLOT_WORDS - NAME];
        for (word, eight) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*eight);
        }
        words
    }

    fn of_words(words: &[u64]) -> Option<Self> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (head, text) = bytes.split_first_chunk::<8>()?;
        let (project, key) = (usize::from(head[4]), usize::from(head[5]));
        let id = |part: Option<&[u8]>| std::str::from_utf8(part?).ok().map(Arc::from);
        Some(Self {
            minute: Minute(u32::from_le_bytes(*head.first_chunk()?)),
            project_id: id(text.get(..project))?,
            key_id: id(text.get(project..project + key))?,
        })
    }
}

fn seal_of(name: &[u64]) -> u64 {
    let mut checksum = crc32fast::Hasher::new();
    for word in name {
        checksum.update(&word.to_le_bytes());
    }
    MARK | u64::from(checksum.finalize())
}

/// Takes the slot for this name. Until the seal is written it counts as empty, should the process die.
pub(super) fn open(slot: &[AtomicU64], name: &SlotName) {
    slot[SEAL].store(0, Ordering::SeqCst);
    slot[TOTALS..NAME].iter().for_each(|word| word.store(0, Ordering::SeqCst));
    let words = name.words();
    slot[NAME..].iter().zip(words).for_each(|(place, word)| place.store(word, Ordering::SeqCst));
    slot[SEAL].store(seal_of(&words), Ordering::SeqCst);
}

/// No call of the system and no lock: two adds for each number that is not zero.
pub(super) fn add(slot: &[AtomicU64], usage: Usage) {
    let amounts = [usage.requests, usage.denied, usage.bytes, usage.credits];
    for (at, amount) in amounts.into_iter().enumerate().filter(|(_, amount)| *amount > 0) {
        slot[TOTALS + at].fetch_add(amount, Ordering::Relaxed);
        // Never seen before the total: whoever finds the two apart knows which one is ahead.
        slot[MIRRORS + at].fetch_sub(amount, Ordering::Release);
    }
}

pub(super) fn read(slot: &[AtomicU64]) -> Usage {
    let total = |at: usize| slot[TOTALS + at].load(Ordering::Relaxed);
    let amount = |at: usize| total(at).min(AMOUNT_MAX);
    Usage { requests: total(0), denied: total(1), bytes: amount(2), credits: amount(3) }
}

/// What a dead process left, or a copy caught of a living one. Of a total and its mirror the smaller one is what was surely
/// asked, and neither is less than what was answered before the process died or the copy began.
pub(super) fn left(words: &[u64; SLOT_WORDS]) -> Left {
    if words[SEAL] == 0 {
        return Left::Nothing;
    }
    let name =
        SlotName::of_words(&words[NAME..]).filter(|_| words[SEAL] == seal_of(&words[NAME..]));
    let surely = |at: usize, torn_max: u64| {
        let (total, mirror) = (words[TOTALS + at], words[MIRRORS + at].wrapping_neg());
        (total.abs_diff(mirror) <= torn_max).then_some(total.min(mirror))
    };
    let totals = || {
        Some(Usage {
            requests: surely(0, TORN_REQUESTS_MAX)?,
            denied: surely(1, TORN_REQUESTS_MAX)?,
            bytes: surely(2, TORN_AMOUNT_MAX)?.min(AMOUNT_MAX),
            credits: surely(3, TORN_AMOUNT_MAX)?.min(AMOUNT_MAX),
        })
    };
    match (name, totals()) {
        (Some(name), Some(usage)) => Left::Counted(name, usage),
        _ => Left::Damaged,
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test fails by panicking")]
mod copied;

#[cfg(test)]
#[allow(clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn opened(key: &str) -> (Vec<AtomicU64>, SlotName) {
        let slot: Vec<_> = (0..SLOT_WORDS).map(|_| AtomicU64::new(7)).collect();
        let name =
            SlotName { minute: Minute(29_000_000), project_id: "api_1".into(), key_id: key.into() };
        open(&slot, &name);
        (slot, name)
    }

    fn words(slot: &[AtomicU64]) -> [u64; SLOT_WORDS] {
        std::array::from_fn(|at| slot[at].load(Ordering::Relaxed))
    }

    const USED: Usage = Usage { requests: 70_000, denied: 3, bytes: 1 << 33, credits: 12 };

    #[test]
    fn a_slot_is_read_back_as_it_was_counted() {
        for key in ["", "key_1", &"k".repeat(TEXT_BYTES - 5)] {
            let (slot, name) = opened(key);
            assert!(name.fits());
            add(&slot, USED);
            assert_eq!(read(&slot), USED);
            assert_eq!(left(&words(&slot)), Left::Counted(name, USED));
        }
        assert!(!opened(&"k".repeat(TEXT_BYTES - 4)).1.fits());
    }

    #[test]
    fn a_changed_bit_anywhere_never_counts_more_and_never_names_another_key() {
        let (slot, name) = opened("key_1");
        add(&slot, USED);
        for bit in 0..SLOT_WORDS * 64 {
            let mut words = words(&slot);
            words[bit / 64] ^= 1 << (bit % 64);
            match left(&words) {
                Left::Counted(found, usage) => {
                    assert_eq!(found, name);
                    assert!(USED.covers(&usage), "bit {bit}: {usage:?}");
                    assert!(USED.requests - usage.requests <= TORN_REQUESTS_MAX, "bit {bit}");
                }
                Left::Damaged => {}
                Left::Nothing => panic!("bit {bit} made the slot vanish"),
            }
        }
    }

    #[test]
    fn a_process_that_died_between_a_total_and_its_mirror_had_not_answered() {
        let (slot, name) = opened("key_1");
        add(&slot, USED);
        slot[TOTALS].fetch_add(2, Ordering::Relaxed);
        assert_eq!(left(&words(&slot)), Left::Counted(name, USED));
        slot[TOTALS].fetch_add(TORN_REQUESTS_MAX, Ordering::Relaxed);
        assert_eq!(left(&words(&slot)), Left::Damaged);
    }

    #[test]
    fn a_slot_that_is_being_taken_counts_as_empty() {
        let (slot, _) = opened("key_1");
        slot[SEAL].store(0, Ordering::SeqCst);
        assert_eq!(left(&words(&slot)), Left::Nothing);
    }
}
