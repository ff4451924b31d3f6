//! News of changes, to whoever in this process wants them: from its own commits with SQLite, from all nodes with
//! PostgreSQL. The queue is bounded; who falls behind reads on from the outbox and misses nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPool};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::task::AbortHandle;

use crate::outbox::{CHANNEL, OutboxEntry, read_outbox};
use crate::{Each, Fault, Store, StoreError};

/// A thousand changes wait for a slow reader; one that is slower reads the outbox instead.
const WAITING_MAX: usize = 1024;

/// So many changes are read at a time when catching up.
const PAGE: u32 = 1000;

/// Between tries to listen again. Whoever polls every second sees changes meanwhile.
const RELISTEN: Duration = Duration::from_millis(500);

/// A clone is a second handle on the same news.
#[derive(Clone, Debug)]
pub(crate) struct Feed {
    news: broadcast::Sender<OutboxEntry>,
    /// The highest revision this process knows to be committed.
    newest: Arc<AtomicU64>,
    listener: Option<Arc<Listening>>,
}

/// Ends the listener with the last handle of the store.
#[derive(Debug)]
struct Listening(AbortHandle);

/// The changes from one moment on, each at least once and in order.
#[derive(Debug)]
pub struct Changes {
    store: Store,
    news: broadcast::Receiver<OutboxEntry>,
    read: VecDeque<OutboxEntry>,
    last: u64,
    behind: bool,
}

// === impl Store ===

impl Store {
    /// News of every change after `revision`, which is usually [`Store::current_revision`] at the start.
    pub fn changes(&self, revision: u64) -> Changes {
        let news = self.feed.news.subscribe();
        // What was committed between `revision` and this line is only in the outbox.
        Changes { store: self.clone(), news, read: VecDeque::new(), last: revision, behind: true }
    }
}

// === impl Changes ===

impl Changes {
    /// Is there something to read before there can be news?
    pub fn is_behind(&self) -> bool {
        self.behind || !self.read.is_empty()
    }

    /// The next change that is in the outbox already; none once it has been read to its end.
    pub async fn read(&mut self) -> Result<Option<OutboxEntry>, StoreError> {
        if self.behind && self.read.is_empty() {
            let page = self.store.outbox_since(self.last, PAGE).await?;
            self.behind = page.len() == PAGE as usize;
            self.read.extend(page);
        }
        let entry = self.read.pop_front();
        self.last = entry.as_ref().map_or(self.last, |entry| entry.revision);
        Ok(entry)
    }

    /// Looks into the outbox before it waits again.
    pub fn look(&mut self) {
        self.behind = true;
    }

    /// Waits for the next change. An error is the database's, met while catching up: ask again later.
    /// Dropped while it waits, it loses nothing.
    pub async fn next(&mut self) -> Result<OutboxEntry, StoreError> {
        loop {
            if let Some(entry) = self.read().await? {
                return Ok(entry);
            }
            match self.news.recv().await {
                Ok(entry) if entry.revision <= self.last => {}
                Ok(entry) if entry.revision == self.last + 1 => {
                    self.last = entry.revision;
                    return Ok(entry);
                }
                // Two commits may tell of themselves in the other order; the outbox has them in theirs.
                Ok(_) | Err(RecvError::Lagged(_)) => self.behind = true,
                Err(RecvError::Closed) => return Err(Fault::Closed.into()),
            }
        }
    }
}

// === impl Feed ===

impl Feed {
    pub(crate) fn in_process() -> Self {
        let (news, _) = broadcast::channel(WAITING_MAX);
        Self { news, newest: Arc::default(), listener: None }
    }

    /// Listens to all nodes, from the revision that is current now.
    pub(crate) fn listening(pool: PgPool, revision: u64) -> Self {
        let feed = Self::in_process();
        feed.seen(revision);
        let ears = feed.clone();
        let task = tokio::spawn(async move { ears.listen(pool, revision).await });
        Self { listener: Some(Arc::new(Listening(task.abort_handle()))), ..feed }
    }

    pub(crate) fn seen(&self, revision: u64) {
        self.newest.fetch_max(revision, Ordering::AcqRel);
    }

    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    /// With PostgreSQL our own changes come back from the server too, and are known by then. Whoever made a change
    /// does not wait for that: notices may be late or cut off.
    pub(crate) fn committed(&self, told: Vec<OutboxEntry>) -> u64 {
        self.seen(told.last().map_or(0, |last| last.revision));
        self.tell(told);
        self.newest()
    }

    pub(crate) fn stop(&self) {
        if let Some(listener) = &self.listener {
            listener.0.abort();
        }
    }

    /// Nobody listening is no failure.
    fn tell(&self, entries: Vec<OutboxEntry>) {
        for entry in entries {
            let _ = self.news.send(entry);
        }
    }

    async fn listen(&self, pool: PgPool, mut revision: u64) {
        let mut turns = tokio::time::interval(RELISTEN);
        turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut failing = false;
        loop {
            turns.tick().await;
            let heard = self.hear(&pool, &mut revision, &mut failing).await;
            // Said when it begins, and not at every try.
            if let Err(error) = heard
                && !std::mem::replace(&mut failing, true)
            {
                tracing::warn!(%error, "listening for changes was interrupted; trying again");
            }
        }
    }

    /// Until anything goes wrong: then the connection is made anew, and what was missed is read first.
    async fn hear(
        &self,
        pool: &PgPool,
        revision: &mut u64,
        failing: &mut bool,
    ) -> Result<(), StoreError> {
        let mut listener = PgListener::connect_with(pool).await?;
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        if std::mem::take(failing) {
            tracing::info!("listening for changes again");
        }
        loop {
            loop {
                let page = read_outbox(Each::Pg(pool), *revision, PAGE).await?;
                let Some(last) = page.last() else { break };
                *revision = last.revision;
                self.seen(*revision);
                self.tell(page);
            }
            if listener.try_recv().await?.is_none() {
                return Ok(());
            }
            while listener.next_buffered().is_some() {}
        }
    }
}

// === impl Listening ===

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}
