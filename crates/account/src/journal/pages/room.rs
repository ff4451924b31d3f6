//! Room for slots: the parts of the file that are mapped so far. A thread makes them before they are needed: whoever needs a
//! slot is a request, and how long a disk takes to give room is up to the disk. Only when keys come faster than that does
//! one wait for its part.
//!
//! Of 1,200,000 slots for 10,000 keys a minute, half of them beside a disk that was flushed all the time, none took 0.2 ms of
//! waiting for a lock or the disk, also in a first minute, when nobody knows yet how many will come; p99.9 was 0.03 to 0.1 ms.
//! Being put off the core by somebody else cost up to 9 ms, on two cores. (`how_long_a_slot_takes_at_the_most` in
//! `crates/account/tests/it/pages_cost.rs`)

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use super::super::slot::SLOT_WORDS;
use super::PART_SLOTS;
use super::file::{PagesFile, Part};

#[derive(Debug)]
pub(super) struct Room {
    parts: Box<[OnceLock<Part>]>,
    /// Held while a part is made: a file that cannot grow is cut back to where it was, and no part may be behind that.
    file: Mutex<PagesFile>,
    failures: AtomicU64,
}

/// The thread that makes parts ahead. Ends when dropped.
#[derive(Debug)]
pub(super) struct Maker {
    wanted: Arc<Wanted>,
    /// Absent where no thread could be started: then parts are made when they are needed.
    thread: Option<(SyncSender<()>, JoinHandle<()>)>,
}

#[derive(Debug, Default)]
struct Wanted {
    parts: AtomicUsize,
    over: AtomicBool,
}

// === impl Room ===

impl Room {
    pub(super) fn new(file: PagesFile, first: Part, parts_max: usize) -> Self {
        let parts: Box<[OnceLock<Part>]> = (0..parts_max).map(|_| OnceLock::new()).collect();
        if let Some(place) = parts.first() {
            let _ = place.set(first);
        }
        Self { parts, file: Mutex::new(file), failures: AtomicU64::new(0) }
    }

    pub(super) fn slot(&self, slot: u32) -> Option<&[AtomicU64]> {
        let slot = usize::try_from(slot).ok()?;
        let part = self.parts.get(slot / PART_SLOTS)?.get()?;
        let from = slot % PART_SLOTS * SLOT_WORDS;
        part.words().get(from..from + SLOT_WORDS)
    }

    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// This part, made now if it is not there yet. A disk without room costs what a kill would lose, not the counts: they
    /// go on in plain memory.
    pub(super) fn part(&self, number: usize) -> Option<&Part> {
        let place = self.parts.get(number)?;
        if place.get().is_none() {
            let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            Some(place.get_or_init(|| {
                file.part(number).unwrap_or_else(|error| {
                    if self.failures.fetch_add(1, Ordering::Relaxed) == 0 {
                        let source = std::error::Error::source(&error).map(ToString::to_string);
                        tracing::error!(
                            "journal: {error}: {}. Usage is counted in memory and flushed, but a kill would lose what was \
                             not; free space in the data directory",
                            source.unwrap_or_default()
                        );
                    }
                    Part::in_memory()
                })
            }))
        } else {
            place.get()
        }
    }

    /// False where the disk has no room: whoever needs the part finds out again, and says so.
    fn make_ahead(&self, number: usize) -> bool {
        let Some(place) = self.parts.get(number) else { return false };
        if place.get().is_some() {
            return true;
        }
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(part) = file.part(number).map(Part::touched) else { return false };
        let _ = place.set(part);
        true
    }
}

// === impl Maker ===

impl Maker {
    pub(super) fn start(room: &Arc<Room>) -> Self {
        let wanted = Arc::new(Wanted::default());
        // One word is enough: how far to go stands beside it.
        let (tell, told) = sync_channel(1);
        let (room, heard) = (Arc::clone(room), Arc::clone(&wanted));
        let run = move || {
            while told.recv().is_ok() {
                let parts = 0..heard.parts.load(Ordering::Relaxed);
                let _ = parts
                    .take_while(|_| !heard.over.load(Ordering::Relaxed))
                    .all(|part| room.make_ahead(part));
            }
        };
        let thread = std::thread::Builder::new().name("usage pages".into()).spawn(run);
        Self { wanted, thread: thread.ok().map(|thread| (tell, thread)) }
    }

    /// So many parts will be needed soon. Asked for once per part, and never waits.
    pub(super) fn want(&self, parts: usize) {
        if self.wanted.parts.fetch_max(parts, Ordering::Relaxed) < parts
            && let Some((tell, _)) = &self.thread
        {
            let _ = tell.try_send(());
        }
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        self.wanted.over.store(true, Ordering::Relaxed);
        if let Some((tell, thread)) = self.thread.take() {
            drop(tell);
            let _ = thread.join();
        }
    }
}
