//! This node as one of a fleet: runs the errands of the lease table against the shared origin, and lets
//! asks wait for them, never longer than a caller is patient. What is decided is decided in the table.

mod breaker;
mod census;
mod inherited;
mod links;
mod mode;
mod origin;
mod patience;
mod set_back;
mod shadow;
mod untold;
mod upkeep;

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tollkeeper_core::{ALPHA, Admission, Cost, Millis, State, Taken};

use crate::lease::{
    CellName, Dealt, Errand, Hold, LeaseAsk, LeaseTable, Link, Missed, Near, Scope, Units,
};

pub use links::LinkView;
pub use mode::{Mode, Modes};
pub use origin::{Asking, History, News, Origin};
pub use patience::Patience;
pub(crate) use shadow::Beside;
pub use shadow::{Agreement, Shadowed};
pub(crate) use untold::{Arrears, Since};

use inherited::Inherited;
use links::Links;
use set_back::SetBacks;
use untold::Untold;

/// Patience with a call that nobody waits for. Long: what Redis has heard but was not seen to have heard is told once more,
/// and who is told everything twice answers later still.
const AT_LEISURE: Duration = Duration::from_millis(250);

pub(crate) type Tell = oneshot::Sender<Dealt>;

/// Time that goes on evenly whatever the system clock does; unix milliseconds as they were at start.
pub type Steady = Arc<dyn Fn() -> Millis + Send + Sync>;

pub struct Fleet {
    table: Arc<LeaseTable<Tell>>,
    origin: Arc<dyn Origin>,
    links: Links,
    set_backs: SetBacks,
    pub modes: Modes,
    pub shadowed: Shadowed,
    pub(crate) inherited: Inherited,
    pub(crate) untold: Untold,
    clock: Steady,
    patience: Patience,
    backstage: Handle,
}

/// One cost against one shared cell, with the cell's name.
#[derive(Clone, Copy, Debug)]
pub struct SharedAsk<'a> {
    pub ask: LeaseAsk,
    pub scope: &'a Arc<Scope>,
    pub identifier: &'a str,
}

/// What became of an errand.
#[derive(Debug)]
struct Done {
    /// What follows from it.
    next: Option<Errand>,
    heard: bool,
}

/// What the asks of one request got, together.
#[derive(Debug)]
pub struct Gathered {
    hold: Hold<Tell>,
    /// In the order of the asks; where one was refused, those behind it may be missing.
    pub dealt: SmallVec<[Dealt; 2]>,
    pub passed: bool,
}

// === impl Fleet ===

impl Fleet {
    pub fn new(
        table: LeaseTable<Tell>,
        origin: Arc<dyn Origin>,
        mode: Mode,
        clock: Steady,
        patience: Patience,
        backstage: Handle,
    ) -> Arc<Self> {
        Arc::new(Self {
            table: Arc::new(table),
            origin,
            links: Links::default(),
            set_backs: SetBacks::default(),
            modes: Modes::new(mode),
            shadowed: Shadowed::default(),
            inherited: Inherited::default(),
            untold: Untold::default(),
            clock,
            patience,
            backstage,
        })
    }

    /// Units for every ask, or a refusal. What was set aside for the others goes back when this is dropped.
    pub async fn obtain(self: &Arc<Self>, asks: &[SharedAsk<'_>]) -> Gathered {
        let began = (self.clock)();
        let gathered = self.obtain_all(asks, began).await;
        // A window may end while one ask waits for what another has: then nobody refused, and all are asked for once more.
        let now = (self.clock)();
        if asks.len() < 2 || !gathered.passed || now == began || gathered.is_ready(now) {
            return gathered;
        }
        drop(gathered);
        Box::pin(self.obtain_all(asks, began)).await
    }

    async fn obtain_all(self: &Arc<Self>, asks: &[SharedAsk<'_>], began: Millis) -> Gathered {
        let mut gathered =
            Gathered { hold: Hold::new(&self.table), dealt: SmallVec::new(), passed: true };
        // A refusal that is remembered for any of them refuses them all, before anything is taken.
        let remembered = asks.len() > 1 && self.remembers_refusal(asks);
        for asked in asks {
            let dealt = if remembered || !gathered.passed {
                self.standing(asked)
            } else {
                // All asks of a request have one deadline between them.
                let waited = Duration::from_millis((self.clock)().since(began));
                let beside = gathered.hold.pledged(asked.ask.key);
                let asked = &SharedAsk { ask: LeaseAsk { beside, ..asked.ask }, ..*asked };
                self.obtain_one(asked, self.patience.whole().saturating_sub(waited)).await
            };
            gathered.passed &= dealt.outcome.admitted() && !remembered;
            dealt.units.into_iter().for_each(|units| gathered.hold.add(units));
            gathered.dealt.push(dealt);
        }
        if !gathered.passed && asks.len() > 1 {
            // What was set aside for the others goes back first, or it would not count as spare.
            gathered.hold = Hold::new(&self.table);
            self.return_small(asks);
        }
        gathered
    }

    fn remembers_refusal(&self, asks: &[SharedAsk<'_>]) -> bool {
        let now = (self.clock)();
        let refused = |asked: &SharedAsk<'_>| {
            self.table.standing(&asked.ask, now).is_some_and(|dealt| !dealt.outcome.admitted())
        };
        asks.iter().any(refused)
    }

    /// How a cell stands, for an ask that is not going to be served.
    fn standing(&self, asked: &SharedAsk<'_>) -> Dealt {
        let now = (self.clock)();
        self.table.standing(&asked.ask, now).unwrap_or_else(|| Dealt {
            outcome: State::fresh(&asked.ask.limit).probe(&asked.ask.limit, Cost::PEEK, now),
            units: None,
            degraded: false,
            unavailable: false,
            at: now,
        })
    }

    /// A small limit has no units to spare for a bundle that failed: they go back at once.
    fn return_small(self: &Arc<Self>, asks: &[SharedAsk<'_>]) {
        let (now, nodes) = ((self.clock)(), self.table.nodes());
        let small = asks.iter().filter(|asked| asked.ask.limit.ceiling() <= ALPHA * nodes);
        for asked in small {
            if let Some(errand) = self.table.recall(asked.ask.key, now) {
                self.dispatch(errand);
            }
        }
    }

    async fn obtain_one(self: &Arc<Self>, asked: &SharedAsk<'_>, patience: Duration) -> Dealt {
        let now = (self.clock)();
        let mut wait = None;
        let near = self.table.near(
            &asked.ask,
            || CellName::new(asked.scope, asked.identifier),
            |_| {
                let (tell, told) = oneshot::channel();
                wait = Some(told);
                tell
            },
            self.link(asked, now),
            now,
        );
        match near {
            Near::Dealt(dealt, errand) => {
                if let Some(errand) = errand {
                    self.dispatch(errand);
                }
                dealt
            }
            // Boxed, like all that is rare: every request carries the room of whatever it might await.
            Near::Waits(id, errand) => {
                Box::pin(self.wait(&asked.ask, id, errand, wait, patience)).await
            }
        }
    }

    async fn wait(
        self: &Arc<Self>,
        ask: &LeaseAsk,
        id: u64,
        errand: Option<Errand>,
        told: Option<oneshot::Receiver<Dealt>>,
        patience: Duration,
    ) -> Dealt {
        let told = match (told, errand) {
            (Some(told), errand) => {
                if let Some(errand) = errand {
                    self.dispatch(errand);
                }
                told
            }
            (None, Some(errand)) => self.dispatch_detached(*ask, errand),
            (None, None) => return untouched(ask, (self.clock)()),
        };
        let mut waiting = Waiting { fleet: self, key: ask.key, id, told: Some(told) };
        let told = async {
            match &mut waiting.told {
                Some(told) => told.await.ok(),
                None => None,
            }
        };
        if let Ok(Some(dealt)) = tokio::time::timeout(patience, told).await {
            waiting.told = None;
            return dealt;
        }
        waiting.give_up().unwrap_or_else(|| untouched(ask, (self.clock)()))
    }

    fn link(&self, asked: &SharedAsk<'_>, now: Millis) -> Link {
        if self.links.are_all_up() {
            return Link::Up;
        }
        let name = CellName::new(asked.scope, asked.identifier);
        self.links.link(self.origin.server(&name), now)
    }

    /// Runs an errand, and those that follow from it.
    fn dispatch(self: &Arc<Self>, errand: Errand) {
        let fleet = Arc::clone(self);
        self.backstage.spawn(async move {
            let mut next = Some(errand);
            while let Some(errand) = next {
                next = fleet.run(errand).await.next;
            }
        });
    }

    /// Runs to its end, also where nobody waits for that any more.
    pub(crate) async fn behind(&self, work: impl Future<Output = ()> + Send + 'static) {
        let _ = self.backstage.spawn(work).await;
    }

    async fn run(self: &Arc<Self>, errand: Errand) -> Done {
        let sent = (self.clock)();
        let answer = if errand.only_tells() {
            self.origin.take(&errand.name, &errand.take, AT_LEISURE).await
        } else {
            self.ask_twice(&errand).await
        };
        let heard = (self.clock)();
        let turn =
            self.table.absorb(&errand, answer.as_ref().map_err(|missed| *missed), sent, heard);
        for (tell, dealt) in turn.dealt {
            if let Err(dealt) = tell.send(dealt) {
                dealt.units.into_iter().for_each(|units: Units| self.table.release(units));
            }
        }
        if turn.learning {
            self.links.learning(self.origin.server(&errand.name), heard);
        }
        if turn.recall {
            self.origin.announce(&News::Recall {
                name: Arc::clone(&errand.name),
                limit: errand.take.limit,
            });
        }
        if let Some(ms) = turn.again_in {
            self.ask_again(errand.key, Duration::from_millis(ms));
        }
        if turn.lost {
            self.origin
                .announce(&News::Lost { name: Arc::clone(&errand.name), limit: errand.take.limit });
        }
        Done { next: turn.next, heard: answer.is_ok() }
    }

    /// Once the others have had time to give back what somebody here waits for, or a log to forget it.
    #[allow(clippy::disallowed_methods, reason = "nobody tells when the last of them has done so")]
    fn ask_again(self: &Arc<Self>, key: crate::CellKey, wait: Duration) {
        let fleet = Arc::clone(self);
        self.backstage.spawn(async move {
            tokio::time::sleep(wait).await;
            if let Some(errand) = fleet.table.ask_again(key, (fleet.clock)()) {
                fleet.dispatch(errand);
            }
        });
    }

    /// The same call once more where the first was not answered: its number makes that harmless.
    async fn ask_twice(&self, errand: &Errand) -> Result<Taken, Missed> {
        match self.ask_once(errand).await {
            Err(Missed::Silent) => self.ask_once(errand).await,
            first => first,
        }
    }

    async fn ask_once(&self, errand: &Errand) -> Result<Taken, Missed> {
        let began = (self.clock)();
        let given = self.patience.once();
        let answer = self.origin.take(&errand.name, &errand.take, given).await;
        let now = (self.clock)();
        // A clock that rings late tells of this machine and not of Redis.
        let late = Patience::is_late(given, now.since(began));
        if answer.is_ok() || !late {
            self.links.note(self.origin.server(&errand.name), answer.is_ok(), now);
        }
        answer
    }

    /// The table has no room for the cell: the answer belongs to the asker alone.
    fn dispatch_detached(
        self: &Arc<Self>,
        ask: LeaseAsk,
        errand: Errand,
    ) -> oneshot::Receiver<Dealt> {
        let (tell, told) = oneshot::channel();
        let fleet = Arc::clone(self);
        self.backstage.spawn(async move {
            let answer = fleet.ask_twice(&errand).await;
            let answer = answer.as_ref().map_err(|missed| *missed);
            let _ = tell.send(fleet.table.deal_detached(&ask, answer, (fleet.clock)()));
        });
        told
    }

    pub fn table(&self) -> &Arc<LeaseTable<Tell>> {
        &self.table
    }

    pub fn origin(&self) -> &Arc<dyn Origin> {
        &self.origin
    }

    pub fn now(&self) -> Millis {
        (self.clock)()
    }
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet").field("table", &self.table).finish_non_exhaustive()
    }
}

/// Nothing is known and nothing was answered.
fn untouched(ask: &LeaseAsk, now: Millis) -> Dealt {
    let mut outcome = State::fresh(&ask.limit).probe(&ask.limit, Cost::PEEK, now);
    // Who only looks is not refused.
    if ask.cost != Cost::PEEK {
        outcome.admission = Admission::NotUntil(now + 100);
    }
    Dealt { outcome, units: None, degraded: true, unavailable: false, at: now }
}

/// A request in the queue of a cell. Dropped, it leaves, and what was dealt to it in the same moment goes back.
struct Waiting<'a> {
    fleet: &'a Arc<Fleet>,
    key: crate::CellKey,
    id: u64,
    /// Absent once it was answered.
    told: Option<oneshot::Receiver<Dealt>>,
}

// === impl Waiting ===

impl Waiting<'_> {
    fn give_up(&mut self) -> Option<Dealt> {
        let mut told = self.told.take()?;
        let gone = self.fleet.table.give_up(self.key, self.id, (self.fleet.clock)());
        told.close();
        if let Ok(dealt) = told.try_recv() {
            dealt.units.into_iter().for_each(|units| self.fleet.table.release(units));
        }
        gone
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.give_up();
    }
}

// === impl Gathered ===

impl Gathered {
    /// False where something was held for so long that a lease ended meanwhile.
    pub fn is_ready(&self, now: Millis) -> bool {
        self.hold.is_ready(now)
    }

    /// Spends what was set aside, for a decision that stands.
    pub fn commit(self) {
        self.hold.commit();
    }

    /// Spends what was set aside. False where a lease has ended.
    pub fn spend(self, now: Millis) -> bool {
        self.hold.spend(now)
    }
}
