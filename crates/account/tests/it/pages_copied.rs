//! Pages that are copied while others count in them, as a backup does: nothing of a copy reads as damaged.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use tollkeeper_core::{Component, Minute, Usage};

use crate::changes::NOW;
use crate::pages::{Opened, pages_in};
use crate::pages_faults::{SLOT, page_file};

/// Few, so that somebody counts in a slot whenever it is copied.
const KEYS: usize = 8;
const THREADS: usize = 3;
const COPIES: usize = 20_000;

/// Touches all four numbers, and not all of them stand in one cache line.
const EACH: Usage = Usage { requests: 1, denied: 1, bytes: 100, credits: 3 };

/// What each key was asked for so far, and what of that was over.
#[derive(Default)]
struct Books {
    begun: [AtomicU64; KEYS],
    answered: [AtomicU64; KEYS],
}

/// One copy: what was over before it, the slots, and what was begun after it.
struct Copied {
    answered: [u64; KEYS],
    slots: Vec<u8>,
    begun: [u64; KEYS],
}

#[test]
fn a_copy_of_living_pages_has_all_that_was_answered_and_nothing_twice() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { pages, .. } = pages_in(dir.path());
    let slots: [u32; KEYS] = std::array::from_fn(|key| {
        let (project, key) = (Arc::from("api_1"), Arc::from(format!("key_{key}")));
        pages.find(&project, &key, Minute::of(NOW)).unwrap()
    });
    let (books, over) = (Books::default(), AtomicBool::new(false));
    // A slot without any counts is not spoken of; so each has some from the start.
    for (key, slot) in slots.into_iter().enumerate() {
        pages.add(slot, EACH);
        books.begun[key].store(1, Ordering::SeqCst);
        books.answered[key].store(1, Ordering::SeqCst);
    }
    let file = page_file(dir.path());
    let copies = thread::scope(|scope| {
        for thread in 0..THREADS {
            let (books, over, pages) = (&books, &over, &pages);
            scope.spawn(move || {
                for key in (0..KEYS).cycle().skip(thread) {
                    books.begun[key].fetch_add(1, Ordering::SeqCst);
                    pages.add(slots[key], EACH);
                    books.answered[key].fetch_add(1, Ordering::SeqCst);
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
        let copies: Vec<_> = (0..COPIES).map(|_| copy(&file, &books)).collect();
        over.store(true, Ordering::Relaxed);
        copies
    });
    drop(pages);
    // A slot is what it is wherever it stands, so one start reads them all.
    let mut bytes = fs::read(&file).unwrap()[..SLOT].to_vec();
    bytes.extend(copies.iter().flat_map(|copy| &copy.slots));
    fs::write(&file, bytes).unwrap();
    let former = pages_in(dir.path()).former;
    assert_eq!(former.iter().map(|one| one.damaged).sum::<u64>(), 0, "of {COPIES} copies");
    let found: Vec<_> = former.into_iter().flat_map(|former| former.components).collect();
    assert_eq!(found.len(), COPIES * KEYS);
    for (copy, components) in copies.iter().zip(found.chunks(KEYS)) {
        components.iter().enumerate().for_each(|(key, found)| copy.check(key, found));
    }
}

fn copy(file: &Path, books: &Books) -> Copied {
    let read = |of: &[AtomicU64; KEYS]| std::array::from_fn(|key| of[key].load(Ordering::SeqCst));
    let mut slots = vec![0; (KEYS + 1) * SLOT];
    let answered = read(&books.answered);
    File::open(file).unwrap().read_exact(&mut slots).unwrap();
    let begun = read(&books.begun);
    slots.drain(..SLOT);
    Copied { answered, slots, begun }
}

// === impl Copied ===

impl Copied {
    fn check(&self, key: usize, found: &Component) {
        assert_eq!(*found.key_id, *format!("key_{key}"));
        let usage = found.usage;
        for (found, each) in [
            (usage.requests, EACH.requests),
            (usage.denied, EACH.denied),
            (usage.bytes, EACH.bytes),
            (usage.credits, EACH.credits),
        ] {
            let (least, most) = (self.answered[key] * each, self.begun[key] * each);
            assert!((least..=most).contains(&found), "{usage:?}: {least} to {most}");
        }
    }
}
