//! What a node of a fleet does without being asked: says that it lives, looks after leases and links, hears news.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tollkeeper_core::Millis;

use super::census::Census;
use super::links::ServerSet;
use super::set_back::LOOK_AGAIN;
use super::{Fleet, History, LinkView, News};
use crate::join::join_all;
use crate::lease::{Errand, Link, Missed, Place};
use crate::{CellHasher, CellName};

/// The table is looked through in so many parts, each this often: all of it in 400 ms.
const PARTS: usize = 8;
const PART: Duration = Duration::from_millis(50);

/// Often enough that a node which has just started knows of the others before it might have to share with them.
const MEMBERS: Duration = Duration::from_millis(500);
const LINKS: Duration = Duration::from_millis(100);

/// Calls at once of all nodes that no request waits for, some more where there are many nodes. With fewer Redis would have
/// to wait for the nodes; with many more requests would have to wait behind them, for longer than they do.
const AT_ONCE: usize = 96;
const AT_ONCE_EACH_MIN: usize = 8;
const AT_ONCE_EACH_MAX: usize = 32;

/// Whoever heard a server no longer ago than this would still find it learning, had it lost its history since.
const WHOLE_MS: u64 = 500;

/// What a message to all nodes and their calls take, with room for a busy machine.
const CALL_IN: Duration = Duration::from_millis(40);

/// Upkeep that ended begins anew after so long.
const ANEW: Duration = Duration::from_secs(1);

/// A shutdown gives leases back for so long; what remains is in the journal.
const CLOSE: Duration = Duration::from_secs(3);

/// What one server was told, and when it was heard.
#[derive(Clone, Copy, Debug, Default)]
struct Taught {
    /// Which process this is about.
    life: u64,
    /// The moment of its clock when it was last told everything, while it learns.
    at: Option<Millis>,
    /// The moment of ours when it last answered a probe.
    heard: Millis,
}

/// What a probe came to.
#[derive(Clone, Copy, Debug)]
struct Heard {
    /// It lost its history, or may have.
    knows_nothing: bool,
    in_time: bool,
}

// === impl Fleet ===

impl Fleet {
    /// Runs for as long as the node does.
    pub async fn keep(self: Arc<Self>) {
        tokio::join!(
            self.always("leases", |fleet| async move { fleet.look_after_leases().await }),
            self.always("members", |fleet| async move { fleet.count_members().await }),
            self.always("links", |fleet| async move { fleet.look_after_links().await }),
        );
    }

    /// A node that went on without this would tell nobody what it spends, or take its servers for away: should it end, that
    /// is said and it begins anew.
    async fn always<F>(self: &Arc<Self>, what: &str, run: impl Fn(Arc<Self>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        loop {
            // A set ends what it runs when it is dropped.
            let mut running = JoinSet::new();
            running.spawn(run(Arc::clone(self)));
            if let Some(Err(error)) = running.join_next().await {
                tracing::error!(what, %error, "a defect: upkeep of the fleet ended, and begins anew");
            }
            let _ = timeout(ANEW, std::future::pending::<()>()).await;
        }
    }

    async fn look_after_leases(self: &Arc<Self>) {
        let mut ticks = interval(PART);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut part = 0;
        loop {
            ticks.tick().await;
            self.look_through(part, PARTS).await;
            part = (part + 1) % PARTS;
        }
    }

    /// Makes the calls that a part of the table needs.
    async fn look_through(self: &Arc<Self>, part: usize, of: usize) {
        self.walk(part, |place, hears| {
            self.table.look(place, of, self.at_once(), hears, self.now())
        })
        .await;
    }

    /// Makes calls as it goes through the table, a few at a time. A cell whose turn has not come has no call under way that
    /// requests for it would have to wait for.
    pub(super) async fn walk(
        self: &Arc<Self>,
        first: usize,
        mut step: impl FnMut(Place, &dyn Fn(&CellName) -> bool) -> (Vec<Errand>, Option<Place>),
    ) {
        let mut deaf = self.links.deaf(self.origin.servers());
        let mut from = Some(Place::shard(first));
        while let Some(place) = from {
            let (errands, next) =
                step(place, &|name| deaf.is_empty() || !deaf.contains(self.origin.server(name)));
            // What was not heard is told when its turn comes again. Who has heard none of it is passed over until then, or
            // what others must be told would wait behind it.
            deaf = deaf.with(self.run_all(errands).await);
            from = next;
        }
    }

    pub(super) fn at_once(&self) -> usize {
        let nodes = usize::try_from(self.table.nodes()).unwrap_or(usize::MAX).max(1);
        (AT_ONCE / nodes).clamp(AT_ONCE_EACH_MIN, AT_ONCE_EACH_MAX)
    }

    async fn count_members(self: &Arc<Self>) {
        let mut ticks = interval(MEMBERS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut census = Census::default();
        // What was known before may be of a time when more had said that they live.
        if self.table.counted() > 0 {
            census.note(self.table.counted(), self.now());
        }
        loop {
            ticks.tick().await;
            if let Ok(nodes) = self.origin.members().await {
                self.table.set_nodes(census.note(nodes, self.now()));
            }
        }
    }

    async fn look_after_links(self: &Arc<Self>) {
        let mut ticks = interval(LINKS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut taught, mut numbering) = (Vec::new(), 0);
        loop {
            ticks.tick().await;
            // What was told to one server is not known to another.
            if std::mem::replace(&mut numbering, self.origin.numbering()) != numbering {
                taught.clear();
                self.links.forget_from(self.origin.servers());
            }
            taught.resize(self.origin.servers(), Taught::default());
            // Side by side: one that hangs must not keep us from hearing of another.
            let each = taught.iter_mut().enumerate();
            let heard =
                join_all(each.map(|(server, taught)| self.look_after_link(server, taught))).await;
            self.tell_those_that_asked(&heard, &mut taught);
        }
    }

    /// In one walk for all of them, and with the time of after it: a walk through a large table takes long enough to lose
    /// sight of a server.
    fn tell_those_that_asked(&self, heard: &[Option<Heard>], taught: &mut [Taught]) {
        let of = |server: usize| heard.get(server).copied().flatten();
        if heard.iter().flatten().any(|heard| heard.knows_nothing) {
            self.table.assert_all(|name| {
                of(self.origin.server(name)).is_some_and(|heard| heard.knows_nothing)
            });
        }
        for (server, taught) in taught.iter_mut().enumerate() {
            let Some(heard) = of(server) else { continue };
            taught.heard = self.now();
            // Only now: whoever asks from here on finds a cell that says first what it spent.
            if heard.in_time {
                self.links.recovered(server);
            }
        }
    }

    /// A server that is away is asked whether it is back, and each whether it lost its history.
    async fn look_after_link(
        self: &Arc<Self>,
        server: usize,
        taught: &mut Taught,
    ) -> Option<Heard> {
        let connected = self.origin.is_connected(server);
        self.links.connected(server, connected, self.now());
        if !connected {
            return None;
        }
        // What was told to one process is not known to another, nor are their clocks the same.
        let life = self.origin.life(server);
        if taught.life != life {
            *taught = Taught { life, ..Taught::default() };
        }
        let began = self.now();
        let answer = self.origin.probe(server).await;
        let waited_ms = self.now().since(began);
        match &answer {
            Err(Missed::Silent) => self.links.silent(server),
            Ok(_) | Err(Missed::Away) => self.links.answered(server),
        }
        let Ok(history) = answer else {
            self.links.unheard(server, waited_ms, self.now());
            return None;
        };
        self.links.heard(server);
        // Nobody knows which of the two answered.
        if self.origin.life(server) != life {
            return None;
        }
        // A server that takes longer than a request may is as good as away for requests.
        let in_time = self.patience.is_kept(waited_ms);
        // Where nothing tells the moment, the next one that does is a later one.
        let (learning, began, at) = match history {
            History::Learning { began, now } => (true, began, now),
            History::Whole => (false, Millis(0), Millis(0)),
        };
        if learning {
            self.links.learning(server, self.now());
        }
        // The probe looks at one part of the server; others may have lost their history alone.
        let learning = self.links.was_learning(server) || learning;
        // One that lost its history again while it learnt has lost what it was told as well.
        let untold = learning && taught.at.is_none_or(|taught| began > taught);
        // One that was out of sight, or out of whose sight this node was, may have lost it and learnt from the others since.
        let missed = self.now().since(taught.heard) > WHOLE_MS;
        taught.at = if untold { Some(at) } else { taught.at.filter(|_| learning) };
        Some(Heard { knows_nothing: missed || untold, in_time })
    }

    /// Says which servers answered none of it.
    pub(super) async fn run_all(self: &Arc<Self>, errands: Vec<Errand>) -> ServerSet {
        let mut under_way = JoinSet::new();
        let (mut answered, mut missed) = (ServerSet::default(), ServerSet::default());
        let mut note = |done: Option<Result<(usize, bool), JoinError>>| match done {
            Some(Ok((server, true))) => answered.insert(server),
            Some(Ok((server, false))) => missed.insert(server),
            Some(Err(_)) | None => {}
        };
        for errand in errands {
            if under_way.len() >= self.at_once() {
                note(under_way.join_next().await);
            }
            let fleet = Arc::clone(self);
            under_way.spawn(async move {
                let server = fleet.origin.server(&errand.name);
                let done = fleet.run(errand).await;
                if let Some(next) = done.next {
                    fleet.dispatch(next);
                }
                (server, done.heard)
            });
        }
        while !under_way.is_empty() {
            note(under_way.join_next().await);
        }
        missed.without(answered)
    }

    /// News from another node.
    pub fn hear(self: &Arc<Self>, news: &News, hasher: &CellHasher) {
        match news {
            News::Recall { name, limit } => {
                let key = hasher.scope(&name.scope).cell(&name.identifier, limit);
                if let Some(errand) = self.table.recall(key, self.now()) {
                    self.dispatch(errand);
                }
            }
            News::Lost { name, limit } => {
                let key = hasher.scope(&name.scope).cell(&name.identifier, limit);
                if let Some(errand) = self.table.assert_one(key, self.now()) {
                    self.dispatch(errand);
                }
            }
            News::Gather { by, scope, identifier } => {
                // Who says so has done it.
                if *by != self.table.boot() {
                    self.hear_gather(scope, identifier.as_deref());
                }
            }
            News::Reset { scope, identifier } => self.hear_reset(scope, identifier.as_deref()),
            News::Changed => {}
        }
    }

    /// News may have been lost: one of them may have been of a reset.
    pub fn missed_news(&self) {
        self.table.doubt_refusals();
    }

    /// Asks every node to give back what it holds of a cell and does not need, and waits until they had time to:
    /// who looks at a counter wants to see what was spent and not what is lent.
    pub async fn call_in(
        self: &Arc<Self>,
        scope: &Arc<crate::Scope>,
        identifier: &str,
        cell: &crate::CellAsk,
    ) {
        let name = Arc::new(CellName::new(scope, identifier));
        self.origin.announce(&News::Recall { name, limit: cell.limit });
        if let Some(errand) = self.table.recall(cell.key, self.now()) {
            self.dispatch(errand);
        }
        let _ = timeout(CALL_IN, std::future::pending::<()>()).await;
    }

    pub fn links(&self) -> Vec<LinkView> {
        let now = self.now();
        (0..self.origin.servers()).map(|server| self.links.view(server, now)).collect()
    }

    pub fn is_degraded(&self) -> bool {
        !self.links.are_all_up() && self.links().iter().any(|view| view.link != Link::Up)
    }

    /// Gives every lease back and leaves.
    pub async fn close(self: &Arc<Self>) {
        let closing = async {
            let (errands, mut left) = self.table.close(self.now());
            self.run_all(errands).await;
            // Whoever had asked may be gone; what the call brings is lent all the same.
            while !left.is_empty() {
                let _ = timeout(LOOK_AGAIN, std::future::pending::<()>()).await;
                let errands = self.table.close_later(&mut left, self.now());
                self.run_all(errands).await;
            }
            let _ = self.origin.leave().await;
        };
        let _ = timeout(CLOSE, closing).await;
    }
}
