//! This server as one of a fleet: connects the engine to Redis, waits a moment for it at start, and hears what
//! other nodes say. Without Redis there is no fleet.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{interval, timeout};
use tollkeeper_account::{BootId, LeaseLeft, LeaseMarks, SharedJournal};
use tollkeeper_core::Boot;
use tollkeeper_decide::{Decider, Fleet, History, LeaseTable, NamespaceTag, News, Origin};
use tollkeeper_redis::{BusEvent, RedisOrigin};

use crate::clock::Clock;
use crate::data_dir::DataDir;
use crate::head_count::HeadCount;
use crate::settings::Settings;
use crate::skew::{self, Skew};

/// A start waits so long for Redis to be there and to have heard everybody; then it goes on without.
const START_PATIENCE: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
pub struct Shared {
    pub fleet: Arc<Fleet>,
    pub origin: RedisOrigin,
    /// How leases are written to the journal.
    pub marks: Arc<LeaseMarks>,
    /// Somebody says that something was changed in the database.
    pub changed: Arc<Notify>,
}

/// `None` where no Redis is configured.
pub async fn join(
    settings: &Settings,
    data_dir: &DataDir,
    journal: &SharedJournal,
    clock: &Clock,
    backstage: &Handle,
) -> Option<Shared> {
    let url = settings.redis.as_ref()?;
    let boot = boot_of(journal.lock().boot());
    let origin = RedisOrigin::start(url, boot, backstage);
    let cells_max = usize::try_from(settings.max_cells).unwrap_or(usize::MAX);
    let marks = Arc::new(LeaseMarks::new(journal.clone(), clock.machine_start()));
    let table = LeaseTable::new(cells_max, boot)
        .keeping(Arc::<LeaseMarks>::clone(&marks))
        .with_patience(settings.redis_patience.whole_ms());
    let fleet = Fleet::new(
        table,
        Arc::new(origin.clone()),
        settings.mode,
        Arc::new(clock.steady()),
        settings.redis_patience,
        backstage.clone(),
    );
    let heads = HeadCount::read(data_dir.head_count());
    if let Some(nodes) = heads.kept() {
        fleet.table().set_nodes(nodes);
    }
    if timeout(START_PATIENCE, is_ready(&origin)).await.is_err() {
        tracing::warn!(
            "redis does not answer yet: limits go on by their outage policy until it does"
        );
    }
    if let Ok(nodes) = origin.members().await {
        // A Redis that lost its history counts whoever is first for the only one.
        fleet.table().set_nodes(nodes.max(fleet.table().counted()));
    }
    backstage.spawn(Arc::clone(&fleet).keep());
    backstage.spawn(heads.follow(Arc::clone(&fleet)));
    backstage.spawn(skew::watch(origin.clone()));
    Some(Shared { fleet, origin, marks, changed: Arc::default() })
}

/// Eight of the sixteen bytes: two lives of one fleet meet once in a billion billion.
pub fn boot_of(boot: BootId) -> Boot {
    let (first, _) = boot.0.split_first_chunk().unwrap_or((&[0; 8], &[]));
    Boot(u64::from_le_bytes(*first))
}

/// Every server answers, and none is still learning.
async fn is_ready(origin: &RedisOrigin) {
    let mut ticks = interval(Duration::from_millis(20));
    loop {
        ticks.tick().await;
        let servers = origin.servers();
        let mut ready = servers > 0;
        for server in 0..servers {
            ready &=
                origin.is_connected(server) && origin.probe(server).await == Ok(History::Whole);
        }
        if ready && origin.is_settled().await {
            return;
        }
    }
}

/// Counters of this node alone, which another node is about to set back. Of several one waits for the other.
async fn reset_here(decider: Arc<Decider>, tag: NamespaceTag, identifier: Option<Box<str>>) {
    if let Err(error) = decider.reset_here(&tag, identifier.as_deref()).await {
        tracing::warn!("counters that another node reset could not be reset here: {error}");
    }
}

// === impl Shared ===

impl Shared {
    /// What a checkpoint repeats of the leases that this node holds.
    pub fn leases(&self) -> Vec<LeaseLeft> {
        self.fleet.table().marks().into_iter().map(|mark| self.marks.left(mark)).collect()
    }

    /// How far the clock of this machine is from that of a server.
    pub fn skew(&self, server: usize) -> Option<Skew> {
        Skew::of(&self.origin, server)
    }

    /// Hears the other nodes for as long as this one lives.
    pub async fn listen(self, decider: Arc<Decider>) {
        let mut bus = self.origin.listen();
        loop {
            match bus.next().await {
                BusEvent::News(News::Changed) => self.changed.notify_one(),
                BusEvent::Gap => {
                    self.changed.notify_one();
                    self.fleet.missed_news();
                }
                BusEvent::News(news) => {
                    if let News::Gather { by, scope, identifier } = &news
                        && *by != self.fleet.table().boot()
                    {
                        let tag = decider.hasher().scope(scope);
                        tokio::spawn(reset_here(Arc::clone(&decider), tag, identifier.clone()));
                    }
                    self.fleet.hear(&news, decider.hasher());
                }
            }
        }
    }
}
