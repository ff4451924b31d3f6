//! The keeper: a thread that writes the table's changes to the journal, every 20 ms, and the whole table now and then.
//! A process that is killed loses at most what happened since the last write.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use tollkeeper_core::Millis;
use tollkeeper_decide::Cells;

use crate::journal::{Journal, JournalError};

/// A fifth of the 100 ms that a kill may cost, so that a late wake-up or a slow write stays within it.
const BEAT: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub struct Keeper {
    stop: Sender<()>,
    thread: JoinHandle<Result<(), JournalError>>,
    health: Arc<Health>,
}

/// What the keeper says of itself.
#[derive(Debug, Default)]
pub struct Health {
    failing: AtomicBool,
    failures: AtomicU64,
    bytes: AtomicU64,
    checkpoints: AtomicU64,
}

struct Writer {
    journal: Journal,
    cells: Arc<Cells>,
    clock: Box<dyn Fn() -> Millis + Send>,
    health: Arc<Health>,
    /// The part of the table that the running checkpoint writes next.
    checkpoint: Option<usize>,
}

// === impl Keeper ===

impl Keeper {
    /// Starts the thread. Its first checkpoint begins at once: it replaces what the last process left.
    pub fn start(
        journal: Journal,
        cells: Arc<Cells>,
        clock: impl Fn() -> Millis + Send + 'static,
    ) -> io::Result<Self> {
        let health = Arc::new(Health::default());
        let (stop, stopped) = mpsc::channel();
        let mut writer = Writer {
            journal,
            cells,
            clock: Box::new(clock),
            health: Arc::clone(&health),
            checkpoint: None,
        };
        let run = move || {
            writer.begin();
            while stopped.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                writer.beat();
            }
            writer.finish()
        };
        let thread = std::thread::Builder::new().name("journal".into()).spawn(run)?;
        Ok(Self { stop, thread, health })
    }

    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// Writes everything and ends. Call it when nothing decides any more.
    pub fn stop(self) -> Result<(), JournalError> {
        // A thread that is gone already has nothing left to be told.
        let _ = self.stop.send(());
        self.thread.join().unwrap_or(Err(JournalError::Random))
    }
}

// === impl Writer ===

impl Writer {
    fn beat(&mut self) {
        let written = self.write_changes().and_then(|()| self.advance_checkpoint());
        self.report(written);
        if self.checkpoint.is_none() && (self.journal.checkpoint_due() || self.health.failing()) {
            self.begin();
        }
        self.health.bytes.store(self.journal.bytes(), Ordering::Relaxed);
    }

    fn write_changes(&mut self) -> Result<(), JournalError> {
        let mut written = Ok(());
        let journal = &mut self.journal;
        self.cells.drain_changes(|changes| {
            if written.is_ok() {
                written = journal.append(changes);
            }
        });
        written
    }

    fn begin(&mut self) {
        let begun = self.journal.begin_checkpoint((self.clock)());
        self.checkpoint = begun.is_ok().then_some(0);
        self.report(begun);
    }

    /// A few parts of the table per beat, so that changes keep being written in between.
    fn advance_checkpoint(&mut self) -> Result<(), JournalError> {
        const PARTS_PER_BEAT: usize = 16;
        for _ in 0..PARTS_PER_BEAT {
            let Some(part) = self.checkpoint else { return Ok(()) };
            let Some(states) = self.cells.snapshot(part, (self.clock)()) else {
                return self.complete();
            };
            self.journal.append(&states)?;
            self.checkpoint = Some(part + 1);
        }
        Ok(())
    }

    fn complete(&mut self) -> Result<(), JournalError> {
        self.checkpoint = None;
        self.journal.end_checkpoint()?;
        self.health.checkpoints.fetch_add(1, Ordering::Relaxed);
        // Only a whole checkpoint makes good for changes that could not be written.
        self.health.failing.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Changes that could not be written are not in the journal, so only a new checkpoint can help.
    fn report(&mut self, result: Result<(), JournalError>) {
        let Err(error) = result else { return };
        self.checkpoint = None;
        self.health.failures.fetch_add(1, Ordering::Relaxed);
        if !self.health.failing.swap(true, Ordering::Relaxed) {
            let source =
                std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            tracing::error!(
                "journal: {error}: {source}. Limits are still enforced, but counters would not survive a restart; \
                 free space in the data directory, writing resumes by itself"
            );
        }
    }

    fn finish(&mut self) -> Result<(), JournalError> {
        self.write_changes()?;
        self.journal.begin_checkpoint((self.clock)())?;
        let mut part = 0;
        while let Some(states) = self.cells.snapshot(part, (self.clock)()) {
            self.journal.append(&states)?;
            part += 1;
        }
        self.journal.end_checkpoint()?;
        self.journal.close()
    }
}

// === impl Health ===

impl Health {
    /// Counters would not survive a restart right now.
    pub fn failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// The size of the current file.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn checkpoints(&self) -> u64 {
        self.checkpoints.load(Ordering::Relaxed)
    }
}
