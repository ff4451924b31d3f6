//! Which asks of a request are shared with the fleet, and what becomes of them: gathered before the decision,
//! spent by it together with what is counted here.

use std::sync::Arc;

use smallvec::SmallVec;
use tollkeeper_core::{Algorithm, Consistency, Cost, Limit, Millis, Outcome, Settled, Sharing};

use crate::cells::{CellAsk, Cells, Returned};
use crate::fleet::{Beside, Fleet, Gathered, Mode, SharedAsk};
use crate::lease::{LeaseAsk, Scope};

/// A limit to check, and where it is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routed<'a> {
    pub(crate) cell: CellAsk,
    pub(crate) sharing: Sharing,
    pub(crate) scope: &'a Arc<Scope>,
    pub(crate) identifier: &'a str,
}

/// What was gathered for a request, by the place of each ask.
#[derive(Debug)]
pub(crate) struct Shared {
    gathered: Gathered,
    /// Places of the asks that are shared, in order.
    places: SmallVec<[usize; 2]>,
}

/// An ask to be compared with what the fleet would have said.
#[derive(Debug)]
pub(crate) struct Compared {
    ask: LeaseAsk,
    scope: Arc<Scope>,
    identifier: Box<str>,
    place: usize,
}

/// All outcomes of a decision, and how they came about.
#[derive(Debug)]
pub(crate) struct Joint {
    pub(crate) settled: Settled,
    /// By place: decided without the shared counters.
    pub(crate) degraded: SmallVec<[bool; 16]>,
    /// Refused by policy, because those are out of reach.
    pub(crate) unavailable: bool,
    /// The moment that the outcomes speak of.
    pub(crate) at: Millis,
}

/// Brings near what the shared asks of a request need. `None` where none is shared. `bundled` where something else than
/// limits may still refuse it.
pub(crate) async fn gather(
    fleet: &Arc<Fleet>,
    tenant_id: &str,
    asks: &[Routed<'_>],
    bundled: bool,
) -> Option<Shared> {
    let mut places: SmallVec<[usize; 2]> = SmallVec::new();
    let mut shared: SmallVec<[SharedAsk<'_>; 2]> = SmallVec::new();
    for (place, routed) in asks.iter().enumerate() {
        let consistency = fleet.modes.consistency(tenant_id, routed.sharing.consistency);
        if consistency != Consistency::Local {
            places.push(place);
            shared.push(routed.shared(consistency, bundled || asks.len() > 1));
        }
    }
    if shared.is_empty() {
        return None;
    }
    Some(Shared { gathered: fleet.obtain(&shared).await, places })
}

/// Where shared limits were given up for memory or shadow, a cell begins here with this node's part of what the fleet had left,
/// and not afresh: leaving Redis must not be worth a second quota. For the window in which it was left, and for cells
/// that this node still knows.
pub(crate) fn inherit(
    fleet: &Fleet,
    cells: &Cells,
    tenant_id: &str,
    asks: &[Routed<'_>],
    now: Millis,
) {
    let Some(left) = fleet.modes.left_redis() else { return };
    if fleet.modes.of(tenant_id) != Mode::Redis {
        for routed in asks {
            routed.inherit(fleet, cells, left, now);
        }
    }
}

/// Where memory was given up for shared limits, the fleet is told what this node had admitted by itself, cell by cell
/// when they are first asked for: joining Redis must not be worth a second quota either. For the window in which it
/// was joined, and at the price of one more call for each cell.
pub(crate) async fn carry(
    fleet: &Arc<Fleet>,
    cells: &Cells,
    tenant_id: &str,
    asks: &[Routed<'_>],
    now: Millis,
) {
    let Some(joined) = fleet.modes.joined_redis() else { return };
    for routed in asks {
        let consistency = fleet.modes.consistency(tenant_id, routed.sharing.consistency);
        if consistency == Consistency::Local || !runs_since(&routed.cell.limit, joined, now) {
            continue;
        }
        let inherited = fleet.inherited.take(&routed.cell, now);
        let used = cells.take(&routed.cell, now).saturating_sub(inherited);
        if used > 0 && !Box::pin(charge(fleet, routed.shared(consistency, false), used)).await {
            // Redis did not answer: the next one who asks tries again.
            let cost = Cost::new(used).unwrap_or(Cost::PEEK);
            cells.spend(&CellAsk { cost, ..routed.cell }, Vec::new(), now);
        }
    }
}

/// Spends what was used elsewhere, or as much of it as there is. False where nobody can say.
async fn charge(fleet: &Arc<Fleet>, asked: SharedAsk<'_>, used: u64) -> bool {
    /// Once for all of it, once for what is left, and once more where that was taken meanwhile.
    const ROUNDS: usize = 3;
    let mut owed = used;
    for _ in 0..ROUNDS {
        let Some(cost) = Cost::new(owed).filter(|_| owed > 0) else { return true };
        let ask = LeaseAsk { cost, ..asked.ask };
        let gathered = fleet.obtain(&[SharedAsk { ask, ..asked }]).await;
        if gathered.passed {
            return gathered.spend(fleet.now());
        }
        let Some(dealt) = gathered.dealt.first().filter(|dealt| !dealt.degraded) else {
            return false;
        };
        owed = owed.min(dealt.outcome.remaining);
    }
    true
}

/// Whether the window of `then` is still running.
fn runs_since(limit: &Limit, then: Millis, now: Millis) -> bool {
    match limit.algorithm {
        Algorithm::FixedWindow(_) => limit.window_at(now).0 <= then,
        Algorithm::SlidingWindow(width)
        | Algorithm::SlidingLog(width)
        | Algorithm::TokenBucket { width, .. } => now < then + width.millis(),
    }
}

/// The asks of a tenant in shadow mode.
pub(crate) fn compared(fleet: &Fleet, tenant_id: &str, asks: &[Routed<'_>]) -> Vec<Compared> {
    if fleet.modes.of(tenant_id) != Mode::Shadow {
        return Vec::new();
    }
    let wanted = |routed: &Routed<'_>| routed.sharing.consistency.unwrap_or_default();
    let shareable = asks.iter().enumerate().filter(|(_, one)| wanted(one) != Consistency::Local);
    shareable
        .map(|(place, routed)| Compared {
            // Set aside and not spent: what was refused here must not be charged there.
            ask: routed.shared(wanted(routed), true).ask,
            scope: Arc::clone(routed.scope),
            identifier: routed.identifier.into(),
            place,
        })
        .collect()
}

// === impl Routed ===

impl<'a> Routed<'a> {
    #[cold]
    fn inherit(&self, fleet: &Fleet, cells: &Cells, left: Millis, now: Millis) {
        let consistency = self.sharing.consistency.unwrap_or_default();
        if consistency == Consistency::Local || !runs_since(&self.cell.limit, left, now) {
            return;
        }
        let peek = CellAsk { cost: Cost::PEEK, ..self.cell };
        let asked = LeaseAsk { cost: Cost::PEEK, ..self.shared(consistency, false).ask };
        let Some(known) = fleet.table().standing(&asked, fleet.now()) else { return };
        let here = cells.spend(&peek, Vec::new(), now);
        let fresh = self.cell.limit.ceiling();
        // Whoever has spent here since has inherited before.
        if here.remaining < fresh {
            return;
        }
        let part = known.outcome.remaining / fleet.table().nodes().max(1);
        if let Some(cost) = Cost::new(fresh.saturating_sub(part)) {
            let begun = CellAsk { cost, ..self.cell };
            cells.spend(&begun, Vec::new(), now);
            fleet.inherited.note(&begun, left, now);
        }
    }

    fn shared(&self, consistency: Consistency, bundled: bool) -> SharedAsk<'a> {
        SharedAsk {
            ask: LeaseAsk {
                key: self.cell.key,
                limit: self.cell.limit,
                cost: self.cell.cost,
                consistency,
                on_outage: self.sharing.on_outage.unwrap_or_default(),
                bundled,
            },
            scope: self.scope,
            identifier: self.identifier,
        }
    }
}

// === impl Compared ===

impl Compared {
    pub(crate) fn run(self, fleet: &Arc<Fleet>, settled: &Settled) {
        let admitted = settled.outcomes.get(self.place).is_some_and(Outcome::admitted);
        let beside = Beside { admitted, passed: settled.passed };
        fleet.compare(self.ask, &self.scope, &self.identifier, beside);
    }
}

// === impl Shared ===

impl Shared {
    pub(crate) fn covers(&self, place: usize) -> bool {
        self.places.contains(&place)
    }

    /// Spends what was gathered and what is counted here, on one more condition, or nothing of it.
    pub(crate) fn settle(
        self,
        cells: &Cells,
        asks: &[CellAsk],
        returned: Vec<Returned>,
        clock: (Millis, Millis),
        condition: impl FnOnce() -> bool,
    ) -> Joint {
        let (now, steady) = clock;
        let Self { gathered, places } = self;
        let local: SmallVec<[CellAsk; 4]> = asks
            .iter()
            .enumerate()
            .filter(|(place, _)| !places.contains(place))
            .map(|(_, ask)| *ask)
            .collect();
        let (dealt, passed) = (gathered.dealt.clone(), gathered.passed);
        let in_time = passed && gathered.is_ready(steady);
        let here = cells.spend_all_if(&local, returned, now, || in_time && condition());
        if here.passed {
            // A lease that ended since has counted these as spent: the decision stands.
            gathered.commit();
        }
        let had_room = here.had_room && passed && in_time;
        let (mut ours, mut theirs) = (here.outcomes.into_iter(), dealt.iter());
        let mut joint = Joint {
            settled: Settled {
                passed: here.passed,
                had_room,
                outcomes: Vec::with_capacity(asks.len()),
            },
            degraded: SmallVec::new(),
            unavailable: dealt.iter().any(|one| one.unavailable),
            at: dealt.first().map_or(now, |one| one.at),
        };
        for (place, ask) in asks.iter().enumerate() {
            let shared = places.contains(&place).then(|| theirs.next()).flatten();
            let outcome = shared.map(|one| one.outcome).or_else(|| ours.next());
            joint.degraded.push(shared.is_some_and(|one| one.degraded));
            joint.settled.outcomes.extend(
                outcome.map(|outcome| unspent(outcome, ask, here.passed, shared.is_some())),
            );
        }
        joint
    }
}

/// Where the whole was refused, what was set aside for one part is still there.
fn unspent(outcome: Outcome, ask: &CellAsk, passed: bool, shared: bool) -> Outcome {
    if passed || !shared || !outcome.admitted() {
        return outcome;
    }
    let remaining = outcome.remaining.saturating_add(ask.cost.get()).min(outcome.limit);
    Outcome { remaining, ..outcome }
}
