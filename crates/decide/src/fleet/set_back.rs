//! Counters that are set back, on all nodes: leases return and what was spent of them is told before, and what is remembered of
//! them is void after. However many are named by however many messages, one walk through the table is under way at a time, and
//! those that come meanwhile have the next one between them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use super::{Fleet, News};
use crate::lease::{Place, Scope, UnderWay};
use crate::{CellName, OriginError};

/// More than one rule set has limits, so that what one request names never counts as too many. Whoever names more at once
/// means all counters.
const NAMED_MAX: usize = 16_384;

/// What a message to all nodes and their calls take, with room for a busy machine.
const CALL_IN: Duration = Duration::from_millis(40);

/// Who sets counters back waits so long for this node's own leases. All of it is to take no more than a second.
const RETURN: Duration = Duration::from_millis(800);

/// A cell with a call under way is looked at again so often, and so many times: longer than any call takes that nobody
/// waits for.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(5);
const LOOKS_MAX: usize = 50;

/// Some counters, by name.
#[derive(Debug, Default)]
struct Counters {
    named: HashMap<Arc<Scope>, Named>,
    count: usize,
    /// More were named than have room.
    overflowed: bool,
}

#[derive(Debug)]
enum Named {
    All,
    Some(HashSet<Box<str>>),
}

/// What the next walk is to do.
#[derive(Debug)]
struct Due {
    /// Counts walks.
    walk: u64,
    /// Of these leases return.
    returning: Counters,
    /// Of these what is remembered is void.
    void: Counters,
}

#[derive(Debug)]
pub(super) struct SetBacks {
    due: Mutex<Due>,
    /// Whoever walks has it.
    turn: tokio::sync::Mutex<()>,
    /// The last walk that is over.
    walked: watch::Sender<u64>,
}

// === impl Counters ===

impl Counters {
    fn add(&mut self, scope: &Arc<Scope>, identifier: Option<&str>) {
        if self.count >= NAMED_MAX {
            tracing::warn!(
                "more counters are set back at once than are told apart: all leases return"
            );
            *self = Self { overflowed: true, ..Self::default() };
        }
        if self.overflowed {
            return;
        }
        let Some(identifier) = identifier else {
            let before = match self.named.insert(Arc::clone(scope), Named::All) {
                None => 0,
                Some(Named::All) => 1,
                Some(Named::Some(some)) => some.len(),
            };
            self.count = self.count - before + 1;
            return;
        };
        let named = self.named.entry(Arc::clone(scope));
        if let Named::Some(some) = named.or_insert_with(|| Named::Some(HashSet::new())) {
            self.count += usize::from(some.insert(identifier.into()));
        }
    }

    fn is_empty(&self) -> bool {
        self.named.is_empty() && !self.overflowed
    }

    fn cover(&self, name: &CellName) -> bool {
        self.overflowed
            || match self.named.get(&name.scope) {
                Some(Named::All) => true,
                Some(Named::Some(some)) => some.contains(&name.identifier),
                None => false,
            }
    }
}

// === impl SetBacks ===

impl Default for SetBacks {
    fn default() -> Self {
        let due = Due { walk: 1, returning: Counters::default(), void: Counters::default() };
        Self {
            due: Mutex::new(due),
            turn: tokio::sync::Mutex::default(),
            walked: watch::channel(0).0,
        }
    }
}

impl SetBacks {
    fn with<T>(&self, then: impl FnOnce(&mut Due) -> T) -> T {
        then(&mut self.due.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

// === impl Fleet ===

impl Fleet {
    /// What is lent is not forgiven. So before counters are set back all nodes are told, give back what they hold and say what
    /// they spent; this waits until they had time to.
    pub async fn call_in_all(self: &Arc<Self>, counters: &[(&Arc<Scope>, Option<&str>)]) {
        if counters.is_empty() {
            return;
        }
        let mut walked = self.set_backs.walked.subscribe();
        let walk = self.give_back(counters);
        for (scope, identifier) in counters {
            let (by, scope) = (self.table.boot(), Arc::clone(scope));
            self.origin.announce(&News::Gather {
                by,
                scope,
                identifier: identifier.map(Into::into),
            });
        }
        if !self.modes.are_all_memory() {
            // What is under way goes on when nobody waits for it any more.
            let own = async {
                let _ = walked.wait_for(|last| *last >= walk).await;
            };
            let others = timeout(CALL_IN, std::future::pending::<()>());
            let _ = tokio::join!(timeout(RETURN, own), others);
        }
    }

    /// Sets counters back, everywhere. Where one of them cannot be, those before it are.
    pub async fn reset(
        self: &Arc<Self>,
        counters: &[(&Arc<Scope>, Option<&str>)],
    ) -> Result<u64, OriginError> {
        let (mut reset, mut missed) = (0, None);
        let mut void = Counters::default();
        for (scope, identifier) in counters {
            let Ok(cells) = self.origin.reset(scope, *identifier).await else {
                missed = Some(OriginError::NotReset);
                break;
            };
            reset += cells;
            void.add(scope, *identifier);
            let identifier = identifier.map(Into::into);
            self.origin.announce(&News::Reset { scope: Arc::clone(scope), identifier });
        }
        // Before whoever asked for it is answered.
        self.forget(&void);
        self.give_back(counters);
        missed.map_or(Ok(reset), Err)
    }

    /// What is remembered of these is void, for cells that begin with it where shared limits were given up.
    pub(crate) fn forget_these(&self, counters: &[(&Arc<Scope>, Option<&str>)]) {
        let mut void = Counters::default();
        for (scope, identifier) in counters {
            void.add(scope, *identifier);
        }
        self.forget(&void);
    }

    /// Another node is about to set these back.
    pub(super) fn hear_gather(self: &Arc<Self>, scope: &Arc<Scope>, identifier: Option<&str>) {
        self.give_back(&[(scope, identifier)]);
    }

    /// Another node has set these back.
    pub(super) fn hear_reset(self: &Arc<Self>, scope: &Arc<Scope>, identifier: Option<&str>) {
        self.set_backs.with(|due| due.void.add(scope, identifier));
        self.give_back(&[(scope, identifier)]);
    }

    /// Has the next walk give leases of these back, and what was spent of them told; says which walk that is.
    fn give_back(self: &Arc<Self>, counters: &[(&Arc<Scope>, Option<&str>)]) -> u64 {
        let (walk, first) = self.set_backs.with(|due| {
            let first = due.returning.is_empty() && !counters.is_empty();
            for (scope, identifier) in counters {
                due.returning.add(scope, *identifier);
            }
            (due.walk, first)
        });
        // Else somebody is about to walk for those that came before.
        if first {
            let fleet = Arc::clone(self);
            self.backstage.spawn(async move { fleet.walk_for_those_due().await });
        }
        walk
    }

    async fn walk_for_those_due(self: &Arc<Self>) {
        let _turn = self.set_backs.turn.lock().await;
        let (walk, returning) = self.set_backs.with(|due| {
            due.walk += 1;
            (due.walk - 1, std::mem::take(&mut due.returning))
        });
        let mut under_way = Vec::new();
        self.walk(0, |place: Place, hears| {
            self.forget_those_due();
            let which = |name: &CellName| returning.cover(name) && hears(name);
            self.table.gather(place, self.at_once(), which, &mut under_way, self.now())
        })
        .await;
        self.come_back_to(under_way).await;
        self.set_backs.walked.send_replace(walk);
    }

    /// To cells that had a call under way, which are no more than the table has.
    async fn come_back_to(self: &Arc<Self>, mut under_way: Vec<UnderWay>) {
        let mut deaf = self.links.deaf(self.origin.servers());
        for _ in 0..LOOKS_MAX {
            if under_way.is_empty() {
                return;
            }
            let _ = timeout(LOOK_AGAIN, std::future::pending::<()>()).await;
            loop {
                self.forget_those_due();
                let hears = |name: &CellName| !deaf.contains(self.origin.server(name));
                let errands =
                    self.table.gather_again(&mut under_way, self.at_once(), hears, self.now());
                if errands.is_empty() {
                    break;
                }
                deaf = deaf.with(self.run_all(errands).await);
            }
        }
    }

    /// Does not wait for calls: what is remembered of a counter must not be told for longer than it is true.
    fn forget_those_due(&self) {
        let void = self.set_backs.with(|due| std::mem::take(&mut due.void));
        self.forget(&void);
    }

    fn forget(&self, void: &Counters) {
        if void.overflowed {
            // As if the messages had been lost: who was refused asks once more.
            self.table.doubt_refusals();
        } else if !void.is_empty() {
            self.table.forget_where(|name| void.cover(name));
        }
    }
}
