//! The keeper: a thread that writes the table's changes to the journal, every 20 ms, and the whole table now and then.
//! A process that is killed loses at most what happened since the last write.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tollkeeper_core::Millis;
use tollkeeper_decide::Cells;

use crate::journal::{CreditSpent, JournalError, Sealed, SharedJournal};
use crate::lease_left::LeaseLeft;

#[cfg(test)]
mod tests;

/// A fifth of the 100 ms that a kill may cost, so that a late wake-up or a slow write stays within it.
const BEAT: Duration = Duration::from_millis(20);

/// Beats between two tries to write everything anew while writing fails: half a second.
const RETRY_BEATS: u32 = 25;

#[derive(Debug)]
pub struct Keeper {
    stop: SyncSender<()>,
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
    beat_at: AtomicU64,
}

type Clock = Box<dyn Fn() -> Millis + Send>;

/// Says what this process has spent of credits so far, for a checkpoint.
type Spendings = Box<dyn Fn() -> Vec<CreditSpent> + Send>;

/// Says which leases this process holds, and those of its forerunners that still wait to be given back.
type Leases = Box<dyn Fn() -> Vec<LeaseLeft> + Send>;

/// What a checkpoint repeats beside the table.
struct Repeated {
    spendings: Spendings,
    leases: Leases,
}

struct Writer {
    journal: SharedJournal,
    repeated: Repeated,
    cells: Arc<Cells>,
    clock: Clock,
    health: Arc<Health>,
    checkpoint: Checkpoint,
    /// Something is missing in the journal: only a checkpoint makes it whole, in so many beats.
    rewrite_in: Option<u32>,
}

#[derive(Debug)]
enum Checkpoint {
    None,
    /// This part of the table comes next.
    Writing(usize),
    /// Written. Syncing takes as long as the disk likes, so another thread waits for it.
    Settling(JoinHandle<Result<(), JournalError>>),
}

// === impl Keeper ===

impl Keeper {
    /// Starts the thread. Its first checkpoint begins at once: it replaces what the last process left.
    pub fn start(
        journal: SharedJournal,
        cells: Arc<Cells>,
        spendings: impl Fn() -> Vec<CreditSpent> + Send + 'static,
        leases: impl Fn() -> Vec<LeaseLeft> + Send + 'static,
        clock: impl Fn() -> Millis + Send + 'static,
    ) -> io::Result<Self> {
        let health = Arc::new(Health::default());
        let (stop, stopped) = sync_channel(1);
        let repeated = Repeated { spendings: Box::new(spendings), leases: Box::new(leases) };
        let mut writer =
            Writer::new(journal, cells, repeated, Box::new(clock), Arc::clone(&health));
        let run = move || {
            writer.beat();
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
        self.thread.join().unwrap_or(Err(JournalError::Panicked))
    }
}

// === impl Writer ===

impl Writer {
    fn new(
        journal: SharedJournal,
        cells: Arc<Cells>,
        repeated: Repeated,
        clock: Clock,
        health: Arc<Health>,
    ) -> Self {
        let checkpoint = Checkpoint::None;
        Self { journal, repeated, cells, clock, health, checkpoint, rewrite_in: Some(0) }
    }

    fn beat(&mut self) {
        let written = self.write_changes().and_then(|()| self.advance());
        self.report(written);
        // What is spent of credits and leases is written by those who spend it; a failure of theirs shows here.
        if self.rewrite_in.is_none() && self.journal.lock().has_gap() {
            self.report(Err(JournalError::Gap));
        }
        self.begin_if_due();
        self.health.beat_at.store((self.clock)().0, Ordering::Relaxed);
        self.health.bytes.store(self.journal.lock().bytes(), Ordering::Relaxed);
    }

    fn write_changes(&mut self) -> Result<(), JournalError> {
        let mut written = Ok(());
        let journal = &self.journal;
        let whole = self.cells.drain_changes(|changes| {
            if written.is_ok() {
                written = journal.lock().append(changes);
            }
        });
        if !whole {
            self.rewrite(0);
        }
        written
    }

    /// Totals and ceilings only grow, and each is written when it does: what a checkpoint repeats may be old, never too much.
    fn write_repeated(&self) -> Result<(), JournalError> {
        /// Some 64 KiB: whoever spends meanwhile waits for one write of that size.
        const AT_ONCE: usize = 1_000;
        let spendings = (self.repeated.spendings)();
        spendings.chunks(AT_ONCE).try_for_each(|some| self.journal.lock().note_spent(some))?;
        // Whoever raises a ceiling holds its cell and waits for the journal: so never both from here.
        let leases = (self.repeated.leases)();
        leases.chunks(AT_ONCE).try_for_each(|some| self.journal.lock().note_leases(some))
    }

    fn begin_if_due(&mut self) {
        let Checkpoint::None = self.checkpoint else { return };
        match &mut self.rewrite_in {
            Some(0) => {}
            Some(beats) => return *beats -= 1,
            None if self.journal.lock().checkpoint_due() => {}
            None => return,
        }
        let begun = self.journal.lock().begin_checkpoint((self.clock)());
        if begun.is_ok() {
            self.rewrite_in = None;
            self.checkpoint = Checkpoint::Writing(0);
        }
        self.report(begun);
    }

    /// A few parts of the table per beat, so that changes keep being written in between.
    fn advance(&mut self) -> Result<(), JournalError> {
        const PARTS_PER_BEAT: usize = 16;
        match std::mem::replace(&mut self.checkpoint, Checkpoint::None) {
            Checkpoint::None => Ok(()),
            Checkpoint::Writing(from) => {
                for part in from..from + PARTS_PER_BEAT {
                    let Some(states) = self.cells.snapshot(part, (self.clock)()) else {
                        return self.seal();
                    };
                    self.journal.lock().append(&states)?;
                }
                self.checkpoint = Checkpoint::Writing(from + PARTS_PER_BEAT);
                Ok(())
            }
            Checkpoint::Settling(thread) if thread.is_finished() => self.settled(thread),
            settling @ Checkpoint::Settling(_) => {
                self.checkpoint = settling;
                Ok(())
            }
        }
    }

    fn seal(&mut self) -> Result<(), JournalError> {
        self.write_repeated()?;
        let sealed = self.journal.lock().seal_checkpoint()?;
        // Every failure ends the checkpoint it meets, so one that got here makes good for all before it.
        if self.health.failing.swap(false, Ordering::Relaxed) {
            tracing::info!("journal: writing again; counters survive a restart");
        }
        let thread = std::thread::Builder::new().name("journal-sync".into());
        let settling = thread.spawn(|| Sealed::settle(sealed)).map_err(JournalError::Thread)?;
        self.checkpoint = Checkpoint::Settling(settling);
        Ok(())
    }

    fn settled(
        &mut self,
        thread: JoinHandle<Result<(), JournalError>>,
    ) -> Result<(), JournalError> {
        thread.join().unwrap_or(Err(JournalError::Panicked))?;
        self.journal.lock().settled()?;
        self.health.checkpoints.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Gives up the checkpoint that is being written, and has another one written in so many beats.
    fn rewrite(&mut self, beats: u32) {
        if let Checkpoint::Writing(_) = self.checkpoint {
            self.checkpoint = Checkpoint::None;
        }
        self.rewrite_in = Some(beats);
    }

    /// Changes that could not be written are not in the journal, so only a new checkpoint can help.
    fn report(&mut self, result: Result<(), JournalError>) {
        let Err(error) = result else { return };
        self.rewrite(RETRY_BEATS);
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
        if let Checkpoint::Settling(thread) =
            std::mem::replace(&mut self.checkpoint, Checkpoint::None)
        {
            // Whatever came of it, the next one replaces it.
            let _ = self.settled(thread);
        }
        // What fails here is in the checkpoint; what fails there is here, as far as there was room.
        let _ = self.write_changes();
        self.journal.lock().begin_checkpoint((self.clock)())?;
        let mut part = 0;
        while let Some(states) = self.cells.snapshot(part, (self.clock)()) {
            self.journal.lock().append(&states)?;
            part += 1;
        }
        self.write_repeated()?;
        let mut journal = self.journal.lock();
        journal.end_checkpoint()?;
        journal.close()
    }
}

// === impl Health ===

impl Health {
    /// Counters would not survive a restart right now.
    pub fn failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// The thread is stuck or gone: so long after its last beat nothing would survive a kill.
    pub fn is_late(&self, now: Millis) -> bool {
        const LATE_MS: u64 = 1_000;
        now.since(Millis(self.beat_at.load(Ordering::Relaxed))) > LATE_MS
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
