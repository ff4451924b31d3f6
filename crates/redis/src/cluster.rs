//! The route through a Redis Cluster: which primary has a tag's slot, learnt from the cluster and from its redirects.
//! A primary that gains tags is vetted again before it serves them.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use redis::Value;
use redis::aio::MultiplexedConnection;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::address::Address;
use crate::backoff::Backoff;
use crate::dialer::{Dialled, Driver};
use crate::error::{CallError, Refusal};
use crate::link::{Link, Plan};
use crate::live::Manner;
use crate::slot::slot_of;
use crate::tags::{At, Tags};
use crate::task::Task;
use crate::topology::{Span, is_ok, spans};
use crate::trouble::Trouble;

/// With all primaries connected a change shows itself by MOVED; this only finds what no call runs into.
const CALM: Duration = Duration::from_secs(5);

/// While a primary is away its successor is looked for this often.
const SEARCHING: Duration = Duration::from_millis(250);

/// However many redirects there are, the map is not asked for more often than this.
const SPACING: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Cluster {
    shared: Arc<Shared>,
    _refresher: Task,
}

#[derive(Debug)]
struct Shared {
    plan: Arc<Plan>,
    seeds: Vec<Address>,
    slots: Vec<u16>,
    map: RwLock<Map>,
    /// Told when the map may be wrong: a redirect, a lost connection, CLUSTERDOWN.
    doubt: Arc<Notify>,
}

#[derive(Debug)]
struct Map {
    /// By [`At::index`].
    owners: Vec<Option<Arc<Link>>>,
    links: HashMap<Address, Arc<Link>>,
    trouble: Option<Trouble>,
    /// The server that a slot moved to last. It is asked for the map first: the news may not have reached the others yet, and
    /// theirs would lead back to where the slot was.
    mover: Option<Address>,
}

// === impl Cluster ===

impl Cluster {
    pub(crate) fn start(plan: &Arc<Plan>, seeds: Vec<Address>) -> Self {
        let owners = vec![None; At::COUNT];
        let map = Map { owners, links: HashMap::new(), trouble: None, mover: None };
        let shared = Arc::new(Shared {
            plan: plan.clone(),
            seeds,
            slots: At::all().map(slot_of).collect(),
            map: RwLock::new(map),
            doubt: Arc::default(),
        });
        let refresher = plan.runtime.spawn(shared.clone().refresh());
        Self { shared, _refresher: Task::new(&refresher) }
    }

    pub(crate) fn link(&self, at: At) -> Option<Arc<Link>> {
        self.shared.read(|map| map.owners.get(at.index()).cloned().flatten())
    }

    pub(crate) fn links(&self) -> Vec<Arc<Link>> {
        self.shared.read(|map| map.links.values().cloned().collect())
    }

    /// Why no map could be had, if none could.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.shared.read(|map| map.trouble.clone())
    }

    pub(crate) fn doubt(&self) {
        self.shared.doubt.notify_one();
    }

    /// A server said that the slot is elsewhere: believed at once, confirmed by the next map.
    pub(crate) fn moved(&self, at: At, slot: u16, to: &Address) -> (Arc<Link>, Manner) {
        self.doubt();
        let shared = &self.shared;
        shared.write(|map| {
            let link = shared.link_to(map, to);
            // A call for a key with a tag that is not its own must not move the tag.
            if shared.slots.get(at.index()) != Some(&slot) {
                return (link, Manner::Stray);
            }
            let places = map.owners.iter_mut().zip(&shared.slots);
            for (owner, _) in places.filter(|(_, its)| **its == slot) {
                *owner = Some(link.clone());
            }
            map.mover = Some(to.clone());
            map.deal();
            (link, Manner::Plain)
        })
    }

    /// A slot is on its way to this server.
    pub(crate) fn asked(&self, to: &Address) -> Arc<Link> {
        self.shared.write(|map| self.shared.link_to(map, to))
    }
}

// === impl Shared ===

impl Shared {
    async fn refresh(self: Arc<Self>) {
        let mut teller: Option<(Address, MultiplexedConnection, Driver)> = None;
        let mut backoff = Backoff::default();
        loop {
            match self.learn(&mut teller).await {
                Ok(spans) => {
                    backoff.worked();
                    self.apply(&spans);
                }
                Err(trouble) => {
                    self.write(|map| map.trouble = Some(trouble));
                    let _ = timeout(backoff.next(), std::future::pending::<()>()).await;
                }
            }
            let _ = timeout(SPACING, std::future::pending::<()>()).await;
            let _ = timeout(self.patience(), self.doubt.notified()).await;
        }
    }

    fn patience(&self) -> Duration {
        let whole = self.read(|map| map.owners.iter().flatten().all(|link| link.is_connected()));
        if whole { CALM } else { SEARCHING }
    }

    /// From the server that a slot moved to, else from the one that told us last or, when it is silent, from any that we know.
    async fn learn(
        &self,
        teller: &mut Option<(Address, MultiplexedConnection, Driver)>,
    ) -> Result<Vec<Span>, Trouble> {
        let mover = self.write(|map| map.mover.take());
        if let Some(mover) = mover
            && teller.as_ref().is_none_or(|(address, ..)| *address != mover)
            && let Ok((spans, connection, driver)) = self.meet(&mover).await
        {
            *teller = Some((mover, connection, driver));
            return Ok(spans);
        }
        if let Some((address, connection, _)) = teller.as_ref()
            && let Ok(spans) = self.ask(address, connection).await
        {
            return Ok(spans);
        }
        *teller = None;
        let known = self.read(|map| map.links.keys().cloned().collect::<Vec<_>>());
        let seeds = self.seeds.iter().filter(|seed| !known.contains(seed)).cloned();
        let mut trouble = Trouble::Unreachable("no server of the cluster is known".into());
        for address in seeds.chain(known.iter().cloned()) {
            match self.meet(&address).await {
                Ok((spans, connection, driver)) => {
                    *teller = Some((address, connection, driver));
                    return Ok(spans);
                }
                Err(other) => trouble = other,
            }
        }
        Err(trouble)
    }

    async fn meet(
        &self,
        address: &Address,
    ) -> Result<(Vec<Span>, MultiplexedConnection, Driver), Trouble> {
        let Dialled { connection, driver } = self.plan.dialer.dial(address).await?;
        let spans = self.ask(address, &connection).await?;
        Ok((spans, connection, driver))
    }

    async fn ask(
        &self,
        address: &Address,
        connection: &MultiplexedConnection,
    ) -> Result<Vec<Span>, Trouble> {
        // One that is cut off from the others still shows the map it had, but says that the cluster failed.
        if !is_ok(&self.ask_cluster(connection, "INFO").await?) {
            let text = format!("{address} says that it failed");
            return Err(Trouble::Refused(Refusal::ClusterDown(text)));
        }
        let reply = self.ask_cluster(connection, "SLOTS").await?;
        let spans = spans(&reply, address).filter(|spans| !spans.is_empty());
        spans.ok_or_else(|| Trouble::Strange("CLUSTER SLOTS names no primary".into()))
    }

    async fn ask_cluster(
        &self,
        connection: &MultiplexedConnection,
        what: &str,
    ) -> Result<Value, Trouble> {
        let mut command = redis::cmd("CLUSTER");
        command.arg(what);
        let mut connection = connection.clone();
        let patience = self.plan.options.vetting_deadline;
        let asked = timeout(patience, connection.send_packed_command(&command)).await;
        let reply = asked.map_err(|_| Trouble::Silent(patience.as_millis()))?;
        match reply.map_err(CallError::from)? {
            Value::ServerError(error) => Err(CallError::from(&error).into()),
            reply => Ok(reply),
        }
    }

    fn apply(&self, spans: &[Span]) {
        self.write(|map| {
            map.trouble = None;
            for (index, slot) in self.slots.iter().enumerate() {
                let span = spans.iter().find(|span| (span.first..=span.last).contains(slot));
                // A slot that nobody serves stays where it was: that server will say CLUSTERDOWN, or MOVED.
                if let Some(span) = span {
                    let link = self.link_to(map, &span.primary);
                    if let Some(owner) = map.owners.get_mut(index) {
                        *owner = Some(link);
                    }
                }
            }
            map.deal();
            map.links.retain(|address, link| {
                let named = spans.iter().any(|span| span.primary == *address);
                named || !link.tags().is_empty() || link.is_connected()
            });
        });
    }

    fn link_to(&self, map: &mut Map, address: &Address) -> Arc<Link> {
        let made =
            || Link::start(&self.plan, Some(address.clone()), Tags::default(), self.doubt.clone());
        map.links.entry(address.clone()).or_insert_with(made).clone()
    }

    fn read<T>(&self, look: impl FnOnce(&Map) -> T) -> T {
        look(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut Map) -> T) -> T {
        change(&mut self.map.write().unwrap_or_else(PoisonError::into_inner))
    }
}

// === impl Map ===

impl Map {
    /// Tells every link what it serves.
    fn deal(&mut self) {
        for link in self.links.values() {
            let owned = At::all().zip(&self.owners).filter_map(|(at, owner)| {
                owner.as_ref().is_some_and(|owner| Arc::ptr_eq(owner, link)).then_some(at)
            });
            link.serve(owned.collect());
        }
    }
}
