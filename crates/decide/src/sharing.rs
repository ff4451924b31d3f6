//! Which asks of a request are shared with the fleet, and what becomes of them: gathered before the decision,
//! spent by it together with what is counted here.

use std::sync::Arc;

use smallvec::SmallVec;
use tollkeeper_core::{Consistency, Cost, Millis, Outcome, Settled, Sharing};

use crate::cells::{CellAsk, Cells, Returned};
use crate::fleet::{Arrears, Beside, Fleet, Gathered, Mode, SharedAsk, Since};
use crate::lease::{Dealt, LeaseAsk, Scope};

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
    cell: CellAsk,
    /// Where memory was given up in a window that still runs.
    since: Option<Since>,
}

/// What a cell had counted here and no longer does, on its way to the fleet.
#[derive(Debug)]
struct Load {
    ask: LeaseAsk,
    scope: Arc<Scope>,
    identifier: Box<str>,
    cell: CellAsk,
    /// Of a cell that was compared: what is owed of it is kept apart.
    since: Option<Since>,
    owed: u64,
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

/// Where memory was given up, the fleet is told what this node had admitted by itself, cell by cell when they are first asked
/// for: joining Redis must not be worth a second quota either. For the window in which memory was given up, and at the
/// price of one more call for each cell. By the way of shadow only what was not told there.
pub(crate) async fn carry(
    fleet: &Arc<Fleet>,
    cells: &Arc<Cells>,
    tenant_id: &str,
    asks: &[Routed<'_>],
    now: Millis,
) {
    let Some(left) = fleet.modes.left_memory(tenant_id) else { return };
    for routed in asks {
        let consistency = fleet.modes.consistency(tenant_id, routed.sharing.consistency);
        let since = Since::running(&routed.cell.limit, left, now);
        let Some(since) = since.filter(|_| consistency != Consistency::Local) else { continue };
        let inherited = fleet.inherited.take(&routed.cell, now);
        let used = cells.take(&routed.cell, now).saturating_sub(inherited);
        let due = fleet.untold.goes_over(&routed.cell, since, now);
        let owed = due.map_or(used, |due| due.owed + if due.and_used { used } else { 0 });
        if owed > 0 {
            let load = Load {
                ask: routed.shared(consistency, false).ask,
                scope: Arc::clone(routed.scope),
                identifier: routed.identifier.into(),
                cell: routed.cell,
                since: due.map(|_| since),
                owed,
            };
            Box::pin(load.go_over(fleet, cells, now)).await;
        }
    }
}

/// The asks of a tenant in shadow mode.
pub(crate) fn compared(
    fleet: &Fleet,
    tenant_id: &str,
    asks: &[Routed<'_>],
    now: Millis,
) -> Vec<Compared> {
    if fleet.modes.of(tenant_id) != Mode::Shadow {
        return Vec::new();
    }
    let left = fleet.modes.left_memory(tenant_id);
    let wanted = |routed: &Routed<'_>| routed.sharing.consistency.unwrap_or_default();
    let shareable = asks.iter().enumerate().filter(|(_, one)| wanted(one) != Consistency::Local);
    shareable
        .map(|(place, routed)| Compared {
            // Set aside and not spent: what was refused here must not be charged there.
            ask: routed.shared(wanted(routed), true).ask,
            scope: Arc::clone(routed.scope),
            identifier: routed.identifier.into(),
            place,
            cell: routed.cell,
            since: left.and_then(|left| Since::running(&routed.cell.limit, left, now)),
        })
        .collect()
}

// === impl Routed ===

impl<'a> Routed<'a> {
    #[cold]
    fn inherit(&self, fleet: &Fleet, cells: &Cells, left: Millis, now: Millis) {
        let consistency = self.sharing.consistency.unwrap_or_default();
        if consistency == Consistency::Local
            || Since::running(&self.cell.limit, left, now).is_none()
        {
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
                beside: 0,
            },
            scope: self.scope,
            identifier: self.identifier,
        }
    }
}

// === impl Load ===

impl Load {
    /// Arrives, or is put back, also where whoever asks for the cell leaves meanwhile: nobody else knows of it.
    async fn go_over(self, fleet: &Arc<Fleet>, cells: &Arc<Cells>, now: Millis) {
        let (its_fleet, cells) = (Arc::clone(fleet), Arc::clone(cells));
        fleet.behind(async move { self.charge(&its_fleet, &cells, now).await }).await;
    }

    async fn charge(self, fleet: &Arc<Fleet>, cells: &Cells, now: Millis) {
        let Self { ask, scope, identifier, cell, since, owed } = self;
        let asked = SharedAsk { ask, scope: &scope, identifier: &identifier };
        if fleet.charge(asked, owed).await {
            return;
        }
        // Redis did not answer: the next one who asks tries again.
        if let Some(since) = since {
            fleet.untold.owe(&cell, since, owed, now);
        } else {
            let cost = Cost::new(owed).unwrap_or(Cost::PEEK);
            cells.spend(&CellAsk { cost, ..cell }, Vec::new(), now);
        }
    }
}

// === impl Compared ===

impl Compared {
    pub(crate) fn run(self, fleet: &Arc<Fleet>, cells: &Cells, settled: &Settled, now: Millis) {
        let Self { ask, scope, identifier, place, cell, since } = self;
        let admitted = settled.outcomes.get(place).is_some_and(Outcome::admitted);
        let beside = Beside { admitted, passed: settled.passed };
        let asked = SharedAsk { ask, scope: &scope, identifier: &identifier };
        let arrears = since.map(|since| Arrears { cell, since, now });
        fleet.compare(cells, asked, beside, arrears);
    }
}

// === impl Shared ===

impl Shared {
    pub(crate) fn covers(&self, place: usize) -> bool {
        self.places.contains(&place)
    }

    /// Who looks at a counter wants to see what was spent. What a busy node has borrowed again since it was called in is not.
    pub(crate) fn leave_what_is_lent(&mut self, fleet: &Fleet, cell: &CellAsk) {
        let lent = fleet.table().lent_elsewhere(cell.key);
        for dealt in self.gathered.dealt.iter_mut().filter(|dealt| !dealt.degraded) {
            let outcome = &mut dealt.outcome;
            outcome.remaining = outcome.remaining.saturating_add(lent).min(outcome.limit);
        }
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
        let mut ours = here.outcomes.into_iter();
        let mut theirs = dealt.iter().zip(left(&dealt, &places, asks, here.passed));
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
        for place in 0..asks.len() {
            let shared = places.contains(&place).then(|| theirs.next()).flatten();
            let outcome = shared.map(|(one, remaining)| Outcome { remaining, ..one.outcome });
            joint.degraded.push(shared.is_some_and(|(one, _)| one.degraded));
            joint.settled.outcomes.extend(outcome.or_else(|| ours.next()));
        }
        joint
    }
}

/// What remains for each of the shared asks: after all of them where the whole has passed, and else with nothing of it spent.
/// Each was told how its cell stood when its own units were set aside, before those of later asks of the same cell.
fn left(dealt: &[Dealt], places: &[usize], asks: &[CellAsk], passed: bool) -> SmallVec<[u64; 2]> {
    let same = |one: usize, other: usize| asks[places[one]].key == asks[places[other]].key;
    let aside = |of: usize, until: usize| -> u64 {
        let units = |at: usize| dealt[at].units.map_or(0, |units| units.units);
        (0..until).filter(|at| same(*at, of)).map(units).sum()
    };
    let alone = |at: usize| (0..dealt.len()).all(|other| other == at || !same(other, at));
    let free = |at: usize| dealt[at].outcome.remaining.saturating_add(aside(at, at + 1));
    let used = |at: usize| dealt[at].outcome.limit.saturating_sub(free(at));
    let remaining = |at: usize| {
        let Dealt { outcome, degraded, .. } = dealt[at];
        if passed && alone(at) {
            return outcome.remaining;
        }
        // A small limit says nothing of how far it is passed; a larger one of the same cell does. In an outage each goes by a
        // share of its own.
        let known = (0..dealt.len()).filter(|other| same(*other, at) && !dealt[*other].degraded);
        let used = if degraded { used(at) } else { known.map(used).max().unwrap_or(0) };
        let spent = if passed { aside(at, dealt.len()) } else { 0 };
        outcome.limit.saturating_sub(used.saturating_add(spent))
    };
    (0..dealt.len()).map(remaining).collect()
}
