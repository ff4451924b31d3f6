//! The wiring: opens everything in order, serves until told to stop, closes everything in the other order.

mod journal;
mod stop;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::{Handle, Runtime};
use tokio::time::timeout;
use tollkeeper_account::{JournalError, Keeper, Ledger, Meter, Recovered};
use tollkeeper_decide::{Cells, Decider, Directory, Lifetime, Mode, OriginError, Ports};
use tollkeeper_redis::ConfigCache;
use tollkeeper_store::{BootstrapKey, FileLock, KeyOrigin, Store, StoreError, StoredModes};
use tollkeeper_wire::DatabaseKind;

use crate::app::{App, Readiness};
use crate::archiving::archive_daily;
use crate::audit::{self, Auditor};
use crate::banner::Banner;
use crate::clock::Clock;
use crate::data_dir::{DataDir, DataDirError};
use crate::estate;
use crate::fleet::Shared;
use crate::forward_auth::ForwardAuth;
use crate::http::{Idempotency, Throttles};
use crate::ids::{self, RequestIds};
use crate::keyring::{Keyring, PEPPER_ID};
use crate::lease_estate;
use crate::net::{Gauges, ListenError, Listener, TurnedAway, Workers};
use crate::redacted::Redacted;
use crate::rollback::{BEAT, Guard, MINUTE, Rollback, Watch};
use crate::rule_books::RuleKeeper;
use crate::settings::{Database, Settings};
use crate::shared_cache::SharedCache;
use crate::usage::{Pace, UsageFlow};
use crate::{fleet, follower, limit_stats, offline, upkeep};
use journal::{held_leases, open_journal, start_keeper, usage_flow};
use stop::stop_signal;

/// Descriptors beside those of clients: listeners, database, journal, logs.
const DESCRIPTORS_OWN: u64 = 64;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(
        "the journal of counters cannot be used: free space in the data directory, or mend its permissions"
    )]
    Journal(#[from] JournalError),
    #[error(
        "stored counters cannot be read or written: look after the database in the data directory"
    )]
    Shelf(#[source] OriginError),
    #[error("the machine gave no threads, random bytes or descriptors")]
    Machine(#[from] io::Error),
}

/// Serves until SIGTERM, SIGINT or SIGHUP, then drains. Blocks.
pub fn serve(settings: Settings) -> Result<(), ServeError> {
    let backstage = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("backstage")
        .enable_all()
        .build()?;
    let stop = backstage.block_on(async { stop_signal() })?;
    let (server, listener) =
        backstage.block_on(Server::start(settings, backstage.handle().clone()))?;
    backstage.block_on(listener.run(&server.workers, &server.readiness, &server.turned_away, stop));
    server.close(&backstage)
}

struct Server {
    workers: Workers,
    readiness: Readiness,
    turned_away: TurnedAway,
    decider: Arc<Decider>,
    keeper: Keeper,
    ledger: Ledger,
    auditor: Auditor,
    usage: Arc<UsageFlow>,
    store: Store,
    clock: Clock,
    _data_dir: DataDir,
    _file_lock: Option<FileLock>,
}

// === impl Server ===

impl Server {
    /// The listener comes back apart: connections queue in it until it runs.
    async fn start(settings: Settings, backstage: Handle) -> Result<(Self, Listener), ServeError> {
        let max_connections = raise_descriptors(settings.max_connections);
        let gauges = Arc::new(Gauges::default());
        // Bound first: a port that is taken must not cost a start, nor touch the data.
        let listener = Listener::bind(settings.http_listen, max_connections, Arc::clone(&gauges))?;
        let address = listener.address()?;
        let data_dir = DataDir::open(&settings.data_dir)?;
        let keyring = Arc::new(keyring(&settings, &data_dir)?);
        let clock = Clock::start();
        let file_lock = offline::hold_database(&settings)?;
        let store = match &settings.database {
            Database::Sqlite { path } => Store::open(path).await?,
            Database::Postgres { url, replica } => {
                let replica = replica.as_ref().map(|replica| replica.expose().as_str());
                Store::connect(url.expose(), replica).await?
            }
        };
        store.hold_to_secret(keyring.fingerprint()).await?;
        data_dir.remember(keyring.fingerprint())?;
        let store = store.sealing(keyring.audit_seal());
        store.begin_chains().await?;
        let made = Unshown(bootstrap(&store, &settings, &keyring, &clock).await?);

        let cells = Arc::new(Cells::new(usize::try_from(settings.max_cells).unwrap_or(usize::MAX)));
        let (journal, recovered, estate, leases) = open_journal(&data_dir, &cells, &clock)?;
        let boot = journal.lock().boot();
        let revision = store.current_revision().await?;
        let modes = stored_modes(&store, &settings, &clock).await?;
        let mode = modes.fleet.unwrap_or(Mode::Memory);
        let shared = fleet::join(&settings, &data_dir, &journal, &clock, &backstage).await;
        if let Some(shared) = &shared {
            shared.fleet.modes.set(mode, modes.tenants);
        }
        let cache = shared_cache(shared.as_ref(), &store, &keyring, revision, &backstage).await;
        let directory: Arc<dyn Directory> = match cache.clone() {
            Some(cache) => Arc::new(cache),
            None => Arc::new(store.clone()),
        };
        let ports = Ports {
            directory,
            shelf: Arc::new(store.clone()),
            bank: Arc::new(store.clone()),
            boot: boot.0,
        };
        let decider = decider(&settings, Arc::clone(&cells), &keyring, ports, &backstage);
        let decider = Arc::new(match &shared {
            Some(shared) => decider.sharing(Arc::clone(&shared.fleet)),
            None => decider,
        });
        let estate = Arc::new(estate);
        estate.settle(&store).await;
        if settings.is_alone_on_its_database() {
            estate::write_off_strangers(&estate, boot, &store).await;
        }
        let leases = Arc::new(leases);
        if let Some(shared) = &shared {
            let fleet = Arc::clone(&shared.fleet);
            backstage.spawn(lease_estate::settle_in_the_end(Arc::clone(&leases), fleet));
        }
        let held = held_leases(shared.clone(), leases);
        let keeper = start_keeper(&journal, cells, &decider, &estate, held, &clock)?;
        // What is on the shelf must be known before the first request, or a parked counter would look fresh.
        decider.overflow().tidy(clock.now()).await.map_err(ServeError::Shelf)?;
        // A table that is smaller than the last one's has parked the rest while it was replayed.
        decider.overflow().shelve().await.map_err(ServeError::Shelf)?;
        prewarm(&decider, &store, &clock, &backstage).await;
        let hint = shared.as_ref().map(|shared| Arc::clone(&shared.changed)).unwrap_or_default();
        let rules = RuleKeeper::new(Arc::clone(&decider), store.clone());
        rules.load_all().await?;
        let (followed, following) = follower::follow(
            Arc::clone(&decider),
            store.clone(),
            rules.clone(),
            cache.clone(),
            revision,
            hint,
            clock.clone(),
        );
        backstage.spawn(rules.clone().keep());
        backstage.spawn(following);
        if let Some(shared) = &shared {
            backstage.spawn(shared.clone().listen(Arc::clone(&decider)));
        }
        // Nothing that changed while keys were brought near may be answered from them.
        followed.reach(store.current_revision().await?).await;
        backstage.spawn(estate::settle_in_the_end(Arc::clone(&estate), store.clone()));
        backstage.spawn(upkeep::watch(Arc::clone(&decider), store.clone(), clock.clone()));

        let readiness = Readiness::default();
        let threads = available_parallelism().map_or(2, usize::from);
        let usage = usage_flow(&journal, &settings, &store, shared.as_ref(), &clock)?;
        let meter = Meter::new(Arc::clone(usage.pages()));
        let ledger = Ledger::new(threads).keeping(journal).metering(meter);
        backstage.spawn(Arc::clone(&usage).watch(Duration::from_millis(settings.flush_ms)));
        let gate = usage.buffer().cloned();
        backstage.spawn(upkeep::note_last_used(ledger.clone(), store.clone(), gate));
        backstage.spawn(limit_stats::keep(Arc::clone(&decider), store.clone(), clock.clone()));
        let node: Arc<str> = settings.node.as_str().into();
        let auditor = audit::start(&settings, threads, &store, &clock, &backstage);
        if let Some(place) = settings.archive_url.clone() {
            let (store, clock) = (store.clone(), clock.clone());
            backstage.spawn(archive_daily(store, place, settings.audit_days, clock));
        }
        let rollback = Arc::new(Rollback::new(settings.rollback));
        if let Some(shared) = shared.clone().filter(|_| rollback.is_on()) {
            let guard = Guard {
                rollback: Arc::clone(&rollback),
                node: Arc::clone(&node),
                fleet: shared.fleet,
                origin: shared.origin,
                ledger: ledger.clone(),
                store: store.clone(),
                clock: clock.clone(),
            };
            backstage.spawn(guard.watch(Watch::new(MINUTE), BEAT));
        }
        let database = match &settings.database {
            Database::Sqlite { .. } => DatabaseKind::Sqlite,
            Database::Postgres { .. } => DatabaseKind::Postgres,
        };
        let idempotency = Arc::new(Idempotency::new());
        let throttles = Arc::new(Throttles::new(settings.admin_writes_per_second));
        let forward_auth = Arc::new(ForwardAuth::new(store.clone(), backstage.clone()));
        let app = |page| -> io::Result<App> {
            Ok(App {
                clock: clock.clone(),
                keyring: Arc::clone(&keyring),
                decider: Arc::clone(&decider),
                ledger: ledger.at_page(page),
                auditor: auditor.at_page(page),
                store: store.clone(),
                database,
                backstage: backstage.clone(),
                ids: RequestIds::new().map_err(io::Error::other)?,
                idempotency: Arc::clone(&idempotency),
                throttles: Arc::clone(&throttles),
                forward_auth: Arc::clone(&forward_auth),
                followed: followed.clone(),
                cache_stale_ms: settings.cache_stale_ms,
                shared: shared.clone(),
                cache: cache.clone(),
                rollback: Arc::clone(&rollback),
                rules: rules.clone(),
                usage: Arc::clone(&usage),
                readiness: readiness.clone(),
                journal: Arc::clone(keeper.health()),
                gauges: Arc::clone(&gauges),
                node: Arc::clone(&node),
            })
        };
        let workers = Workers::start((0..threads).map(app).collect::<io::Result<_>>()?)?;
        readiness.set(true);
        announce(&settings, address, mode, made, &recovered);
        let turned_away = TurnedAway::new(clock.clone()).map_err(io::Error::other)?;
        let server = Self {
            workers,
            readiness,
            turned_away,
            decider,
            keeper,
            ledger,
            auditor,
            usage,
            store,
            clock,
            _data_dir: data_dir,
            _file_lock: file_lock,
        };
        Ok((server, listener))
    }

    /// The other order: no new traffic, no requests, no changes, no files.
    fn close(self, backstage: &Runtime) -> Result<(), ServeError> {
        tracing::info!("stopping: requests under way are answered first");
        self.workers.drain();
        if let Some(fleet) = self.decider.fleet() {
            backstage.block_on(fleet.close());
        }
        let shelved = backstage.block_on(self.decider.overflow().shelve());
        if let Err(error) = shelved {
            tracing::error!(
                "cells that left the table could not be stored: {error}; the journal has them"
            );
        }
        if let Err(error) = backstage.block_on(self.decider.purse().close()) {
            tracing::error!(
                "leased credits could not be given back: {error}; the next start does it"
            );
        }
        if let Err(error) = backstage.block_on(upkeep::write_last_used(
            &self.ledger,
            &self.store,
            self.usage.buffer(),
        )) {
            tracing::warn!("which keys were used last could not be written: {error}");
        }
        let counted = limit_stats::write(&self.decider, &self.store, self.clock.now());
        if let Err(error) = backstage.block_on(counted) {
            tracing::warn!("the last statistics of limits could not be written: {error}");
        }
        backstage.block_on(self.auditor.close(&self.store));
        if let Err(error) = backstage.block_on(self.usage.flush(Pace::Now)) {
            tracing::warn!(
                "usage could not be flushed: {error}; the journal has it for the next start"
            );
        }
        let kept = self.keeper.stop();
        backstage.block_on(self.store.close());
        Ok(kept?)
    }
}

/// A root key that was made and that nobody has seen: it is shown also where the start fails after all, for the next one finds
/// it made.
struct Unshown(Option<Redacted<String>>);

impl Drop for Unshown {
    fn drop(&mut self) {
        if let Some(key) = &self.0 {
            let key = key.expose();
            let _ = writeln!(io::stderr(), "root key, shown only this once:\n\n    {key}\n");
        }
    }
}

fn keyring(settings: &Settings, data_dir: &DataDir) -> Result<Keyring, ServeError> {
    let secret = match &settings.secret {
        Some(given) => given.clone(),
        None => data_dir.secret()?,
    };
    let derived = Keyring::derive(secret.expose());
    let keyring =
        derived.ok_or_else(|| io::Error::other("keys could not be derived from the secret"))?;
    data_dir.hold_to(keyring.fingerprint())?;
    Ok(keyring)
}

/// Makes sure that somebody can get in. Returns the key when it was made just now, to be shown once.
async fn bootstrap(
    store: &Store,
    settings: &Settings,
    keyring: &Keyring,
    clock: &Clock,
) -> Result<Option<Redacted<String>>, ServeError> {
    let (key, origin) = match &settings.root_key {
        Some(given) => (given.clone(), KeyOrigin::Given),
        None => (ids::root_key().map_err(io::Error::other)?, KeyOrigin::Generated),
    };
    let hash = keyring.hash(key.expose().as_bytes());
    let made = store.bootstrap(hash, PEPPER_ID, origin, clock.now()).await?;
    let is_new = origin == KeyOrigin::Generated && made.key != BootstrapKey::Kept;
    Ok(is_new.then_some(key))
}

/// Where limits are counted: the settings' word at the first start with Redis, what was stored ever after. Without
/// Redis there is nothing to say: a node alone counts in memory, and whoever gives it one later starts as new.
async fn stored_modes(
    store: &Store,
    settings: &Settings,
    clock: &Clock,
) -> Result<StoredModes, StoreError> {
    if settings.redis.is_none() {
        return Ok(StoredModes::default());
    }
    let stored = store.first_mode(settings.mode, clock.now()).await?;
    if let Some(mode) = stored.fleet.filter(|mode| *mode != settings.mode) {
        tracing::info!(
            "limits are counted in mode {}, as it was set last; the setting is for the first start only",
            mode.word()
        );
    }
    Ok(stored)
}

/// Brings the keys near that were used last: a restart must not ask the database for each of them. A start waits for it
/// for a moment; what takes longer goes on behind the first requests.
async fn prewarm(decider: &Arc<Decider>, store: &Store, clock: &Clock, backstage: &Handle) {
    /// What a busy node uses within a minute.
    const PREWARMED_MAX: u32 = 100_000;
    const PATIENCE: Duration = Duration::from_secs(3);
    let (decider, store, clock) = (Arc::clone(decider), store.clone(), clock.clone());
    let warming = backstage.spawn(async move {
        let mut left = PREWARMED_MAX;
        let mut after = None;
        while left > 0 {
            // Nothing that changes while a page is read may be answered from it.
            let mark = decider.prewarm_mark();
            match store.most_recently_used(after.as_ref(), left).await {
                Ok((keys, last)) => {
                    left = left.saturating_sub(u32::try_from(keys.len()).unwrap_or(u32::MAX));
                    let now = clock.now();
                    for (hash, record) in keys {
                        decider.prewarm_key(hash.hash, record, mark, now);
                    }
                    let Some(last) = last else { return };
                    after = Some(last);
                }
                Err(error) => return tracing::warn!("keys could not be brought near: {error}"),
            }
        }
    });
    let _ = timeout(PATIENCE, warming).await;
}

/// Keys and projects that nodes find in Redis, where there is one and the database is one for all.
async fn shared_cache(
    shared: Option<&Shared>,
    store: &Store,
    keyring: &Arc<Keyring>,
    revision: u64,
    backstage: &Handle,
) -> Option<SharedCache> {
    let entries = ConfigCache::new(shared?.origin.redis().clone());
    SharedCache::start(store, entries, keyring, revision, backstage).await
}

fn decider(
    settings: &Settings,
    cells: Arc<Cells>,
    keyring: &Keyring,
    ports: Ports,
    backstage: &Handle,
) -> Decider {
    let lifetime =
        Lifetime { fresh_ms: settings.cache_fresh_ms, stale_ms: settings.cache_stale_ms };
    Decider::new(cells, keyring.cell_hasher(), ports, lifetime, backstage.clone())
}

fn announce(
    settings: &Settings,
    address: SocketAddr,
    mode: Mode,
    mut made: Unshown,
    recovered: &Recovered,
) {
    for aside in &recovered.set_aside {
        tracing::warn!(
            "part of the journal could not be read and was set aside as {}; counters written after it are lost",
            aside.display()
        );
    }
    let mut out = io::stdout().lock();
    let banner = Banner { settings, address, mode, made: made.0.as_ref() };
    match write!(out, "{banner}").and_then(|()| out.flush()) {
        Ok(()) => made.0 = None,
        // Whoever started it may read no further. It serves all the same, and a root key that was made is shown where it still can.
        Err(error) => {
            tracing::warn!("listening on http://{address}; standard output is closed: {error}");
        }
    }
}

/// As many descriptors as the machine lets us have; returns how many clients that is enough for.
fn raise_descriptors(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current =
        if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    let room = current.map_or(wanted, |most| most.saturating_sub(DESCRIPTORS_OWN));
    if room < wanted {
        tracing::warn!("only {room} connections at once: raise the open-file limit for {wanted}");
    }
    room.min(wanted)
}
