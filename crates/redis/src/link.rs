//! The connection to one server: made in the background, vetted, watched, dropped at the first doubt and made again.
//! A caller finds it vetted or not at all; nobody ever waits for it unknowingly.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{Instant, timeout_at};

use crate::address::Address;
use crate::dialer::Dialer;
use crate::error::CallError;
use crate::heard::Heard;
use crate::live::{Answer, Identity, Live, Manner, Request};
use crate::options::Options;
use crate::stats::Stats;
use crate::tags::{At, Tags};
use crate::task::Task;
use crate::trouble::Trouble;

mod keeper;

/// What all links of one URL share.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) dialer: Dialer,
    pub(crate) options: Options,
    pub(crate) stats: Stats,
    /// Counts vetted connections, so that others learn of each.
    pub(crate) vetted: watch::Sender<u64>,
    pub(crate) runtime: Handle,
}

/// Dropping it ends its task and connection.
pub(crate) struct Link {
    shared: Arc<Shared>,
    _keeper: Task,
}

struct Shared {
    plan: Arc<Plan>,
    /// Where the server is; Sentinel changes it, others never do.
    target: watch::Sender<Option<Address>>,
    live: watch::Sender<Option<Arc<Live>>>,
    in_flight: Semaphore,
    generation: AtomicU64,
    /// Counts the times that tags were added, so that a connection vetted for fewer is not taken for vetted. It changes
    /// only while `state` is locked.
    additions: watch::Sender<u64>,
    /// Told whenever there is no connection any more, or still none.
    lost: Arc<Notify>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tags: Tags,
    last: Option<Last>,
    trouble: Option<Trouble>,
}

/// The process that calls were last let in to.
#[derive(Clone)]
struct Last {
    identity: Identity,
    heard: Arc<Heard>,
}

/// One server as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerView {
    /// `None` while Sentinel has not named a primary yet.
    pub address: Option<Address>,
    pub connected: bool,
    /// Of the connection in use or, while there is none, of the last one.
    pub run_id: Option<Arc<str>>,
    pub generation: u64,
    pub tags: Tags,
    /// Why there is no connection, once an attempt has shown it.
    pub trouble: Option<Trouble>,
}

// === impl Link ===

impl Link {
    pub(crate) fn start(
        plan: &Arc<Plan>,
        target: Option<Address>,
        tags: Tags,
        lost: Arc<Notify>,
    ) -> Arc<Self> {
        let shared = Arc::new(Shared {
            plan: plan.clone(),
            target: watch::Sender::new(target),
            live: watch::Sender::new(None),
            in_flight: Semaphore::new(plan.options.in_flight_max),
            generation: AtomicU64::new(0),
            additions: watch::Sender::new(0),
            lost,
            state: Mutex::new(State { tags, ..State::default() }),
        });
        let keeper = plan.runtime.spawn(shared.clone().keep());
        Arc::new(Self { shared, _keeper: Task::new(&keeper) })
    }

    pub(crate) async fn call(
        &self,
        at: At,
        request: Request<'_>,
        manner: Manner,
        deadline: Instant,
    ) -> Result<Answer, CallError> {
        let live = self.shared.live.borrow().clone();
        let live = live.filter(|live| live.serves(at, manner)).ok_or(CallError::Away)?;
        let Ok(_permit) = self.shared.in_flight.try_acquire() else {
            return Err(CallError::Busy);
        };
        let answer = live.send(request, manner, deadline).await;
        match &answer {
            Ok(_) => live.heard.again(),
            Err(error) if error.ends_the_connection() => {
                self.shared.drop_generation(live.generation);
            }
            Err(_) => {}
        }
        answer
    }

    /// Whether it became usable by then. Only for a call that was sent here by a redirect.
    pub(crate) async fn ready(&self, at: At, manner: Manner, deadline: Instant) -> bool {
        let mut live = self.shared.live.subscribe();
        let usable = live.wait_for(|live| live.as_ref().is_some_and(|it| it.serves(at, manner)));
        timeout_at(deadline, usable).await.is_ok_and(|seen| seen.is_ok())
    }

    pub(crate) fn drop_connection(&self) {
        self.shared.live.send_replace(None);
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.shared.live.borrow().is_some()
    }

    pub(crate) fn address(&self) -> Option<Address> {
        self.shared.target.borrow().clone()
    }

    /// Turns it to another server.
    pub(crate) fn turn_to(&self, address: Address) {
        self.shared.target.send_if_modified(|target| {
            let other = target.as_ref() != Some(&address);
            if other {
                *target = Some(address);
            }
            other
        });
    }

    /// From now on it serves these. Added ones are lost history here until the connection was vetted for them, also
    /// those that it served before.
    pub(crate) fn serve(&self, tags: Tags) {
        let mut state = self.shared.state();
        self.shared.live.send_if_modified(|live| {
            let serving = live.as_mut().filter(|live| !live.tags.is_within(&tags));
            serving.map(|live| Arc::make_mut(live).tags = live.tags.intersection(&tags)).is_some()
        });
        if !tags.is_within(&state.tags) {
            self.shared.additions.send_modify(|additions| *additions += 1);
        }
        state.tags = tags;
    }

    pub(crate) fn tags(&self) -> Tags {
        self.shared.state().tags.clone()
    }

    pub(crate) fn note(&self, trouble: Trouble) {
        self.shared.state().trouble = Some(trouble);
    }

    pub(crate) fn view(&self) -> ServerView {
        let connected = self.is_connected();
        let state = self.shared.state();
        ServerView {
            address: self.address(),
            connected,
            run_id: state.last.as_ref().map(|last| last.identity.run_id.clone()),
            generation: self.shared.generation.load(Ordering::Relaxed),
            tags: state.tags.clone(),
            trouble: state.trouble.clone(),
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.view(), f)
    }
}

// === impl Shared ===

impl Shared {
    /// Only that one: whoever saw a fault may be behind.
    fn drop_generation(&self, generation: u64) {
        self.live.send_if_modified(|live| {
            let it = live.as_ref().is_some_and(|live| live.generation == generation);
            if it {
                *live = None;
            }
            it
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
