//! Many cells at once: all are locked, checked, and then all are spent from or none.

use smallvec::SmallVec;
use tollkeeper_core::{Admission, Check, Cost, Millis, Outcome, Settled, State, settle_if};

use super::{CellAsk, Cells, Returned};
use crate::CellKey;
use crate::shard::{Ahead, Shard};
use crate::sync::{MutexGuard, lock};

/// Asks and shards that are lined up in place; larger bundles take memory for them.
const USUALLY: usize = 8;

/// The shards of a bundle, all locked. It is filled where it stays, like all that is lined up here: to hand it on would take
/// longer than to fill it.
#[derive(Default)]
struct Held<'a> {
    shards: SmallVec<[MutexGuard<'a, Shard>; USUALLY]>,
    /// By ask: which of them its cell is in.
    of_ask: SmallVec<[usize; USUALLY]>,
}

/// The checks of a bundle against its distinct cells.
struct LinedUp {
    checks: SmallVec<[Check; USUALLY]>,
    /// One per distinct cell, in order of appearance.
    states: Vec<State>,
}

// === impl Cells ===

impl Cells {
    /// Spends every ask or none of them.
    pub fn spend_all(&self, asks: &[CellAsk], returned: Vec<Returned>, now: Millis) -> Settled {
        if let [ask] = asks {
            let outcome = self.spend(ask, returned, now);
            let passed = outcome.admitted();
            return Settled { passed, had_room: passed, outcomes: vec![outcome] };
        }
        self.spend_all_if(asks, returned, now, || true)
    }

    /// The same, on one more condition. It is asked under the locks, last, and only when every limit has room.
    pub fn spend_all_if(
        &self,
        asks: &[CellAsk],
        returned: Vec<Returned>,
        now: Millis,
        condition: impl FnOnce() -> bool,
    ) -> Settled {
        if let [ask] = asks {
            return self.spend_one_if(ask, returned, now, condition);
        }
        let mut held = Held::default();
        self.hold_all(asks, &mut held);
        for back in returned {
            // Only what was asked for comes back; the shelf keeps its row of anything else.
            let Some(place) = asks.iter().position(|ask| ask.key == back.cell.key) else {
                continue;
            };
            self.bring_back(held.shard_mut(place), back.cell.key, vec![back], now);
        }
        let mut outcomes = Vec::with_capacity(asks.len());
        let mut ahead = SmallVec::new();
        if !held.foresee(asks, now, &mut outcomes, &mut ahead) {
            return self.settle_copies(&mut held, asks, now, condition);
        }
        let had_room = outcomes.iter().all(Outcome::admitted);
        if !(had_room && condition()) {
            let outcomes = held.unspent(asks, outcomes, now);
            return Settled { passed: false, had_room, outcomes };
        }
        for (place, ahead) in ahead.drain(..).enumerate() {
            if asks[place].cost != Cost::PEEK {
                let touch = asks[place].touch(now);
                held.shard_mut(place).go_ahead(&touch, ahead, &outcomes[place]);
            }
        }
        Settled { passed: true, had_room, outcomes }
    }

    /// Locks are taken in ascending order, everywhere: two bundles can wait for each other, never in a circle.
    fn hold_all<'a>(&'a self, asks: &[CellAsk], held: &mut Held<'a>) {
        /// A shard and behind it the place of an ask, in one word: there are far fewer of either.
        const PLACE_BITS: u32 = usize::BITS / 2;
        const PLACES: usize = (1 << PLACE_BITS) - 1;
        let mut order: SmallVec<[usize; USUALLY]> = SmallVec::with_capacity(asks.len());
        for (place, ask) in asks.iter().enumerate() {
            let at = self.shard_of(ask.key);
            self.whereabouts[at].fetch(ask.key);
            order.push(at << PLACE_BITS | place);
        }
        order.sort_unstable();
        held.of_ask.resize(asks.len(), 0);
        let mut last = None;
        for one in order {
            let (at, place) = (one >> PLACE_BITS, one & PLACES);
            if last != Some(at) {
                held.shards.push(lock(&self.shards[at]));
                last = Some(at);
            }
            held.of_ask[place] = held.shards.len() - 1;
        }
    }

    /// Where some cell is not in the table, or asked twice: all are settled on copies, and put back.
    fn settle_copies(
        &self,
        held: &mut Held<'_>,
        asks: &[CellAsk],
        now: Millis,
        condition: impl FnOnce() -> bool,
    ) -> Settled {
        let LinedUp { checks, mut states } =
            line_up(asks, |place| held.shard(place).state(asks[place].key).cloned());
        let settled = settle_if(&checks, &mut states, now, condition);
        if settled.passed {
            for (slot, state) in states.into_iter().enumerate() {
                // The last that spent knows what is left. Where all only looked there is nothing to keep.
                let spent = |check: &Check| check.slot == slot && check.cost != Cost::PEEK;
                let Some(last) = checks.iter().rposition(spent) else { continue };
                let shard = held.shard_mut(last);
                shard.parking.take(asks[last].key);
                let evicted = shard.keep(&asks[last].touch(now), state, &settled.outcomes[last]);
                self.note(&evicted, shard);
            }
        }
        settled
    }

    /// What a bundle of one comes to, without the parts of a bundle.
    fn spend_one_if(
        &self,
        ask: &CellAsk,
        returned: Vec<Returned>,
        now: Millis,
        condition: impl FnOnce() -> bool,
    ) -> Settled {
        let mut shard = self.hold_for(ask.key);
        if !returned.is_empty() {
            self.bring_back(&mut shard, ask.key, returned, now);
        }
        let probe = |shard: &Shard, cost| match shard.state(ask.key) {
            Some(state) => state.probe(&ask.limit, cost, now),
            None => State::fresh(&ask.limit).probe(&ask.limit, cost, now),
        };
        let outcome = probe(&shard, ask.cost);
        let had_room = outcome.admitted();
        if !(had_room && condition()) {
            let unspent = probe(&shard, Cost::PEEK);
            let outcomes = vec![Outcome { admission: outcome.admission, ..unspent }];
            return Settled { passed: false, had_room, outcomes };
        }
        let touch = ask.touch(now);
        let spent = shard.spend(&touch);
        let outcome = spent.unwrap_or_else(|| self.spend_anew(&mut shard, &touch, Vec::new()));
        Settled { passed: true, had_room, outcomes: vec![outcome] }
    }
}

// === impl Held ===

impl Held<'_> {
    fn shard(&self, place: usize) -> &Shard {
        &self.shards[self.of_ask[place]]
    }

    fn shard_mut(&mut self, place: usize) -> &mut Shard {
        &mut self.shards[self.of_ask[place]]
    }

    /// What each ask would come to, if every cell is in the table and asked once. Then all can be spent from where they are:
    /// each is looked for and worked out once, nothing is copied, and nothing has to be evicted for another.
    fn foresee(
        &self,
        asks: &[CellAsk],
        now: Millis,
        outcomes: &mut Vec<Outcome>,
        all: &mut SmallVec<[Ahead; USUALLY]>,
    ) -> bool {
        for (place, ask) in asks.iter().enumerate() {
            if asks[..place].iter().any(|before| before.key == ask.key) {
                return false;
            }
            let looked = self.shard(place).look_ahead(&ask.touch(now));
            let Some((mut outcome, ahead)) = looked else { return false };
            // Asking for nothing never fails, as in every bundle.
            if ask.cost == Cost::PEEK {
                outcome.admission = Admission::Admitted;
            }
            outcomes.push(outcome);
            all.push(ahead);
        }
        true
    }

    /// The same asks after a denial: those that would have passed report what they have left.
    #[cold]
    fn unspent(&self, asks: &[CellAsk], outcomes: Vec<Outcome>, now: Millis) -> Vec<Outcome> {
        let left = |(place, outcome): (usize, Outcome)| {
            let looks = CellAsk { cost: Cost::PEEK, ..asks[place] };
            let unspent = self.shard(place).probe(&looks.touch(now)).unwrap_or(outcome);
            Outcome { admission: outcome.admission, ..unspent }
        };
        outcomes.into_iter().enumerate().map(left).collect()
    }
}

/// Each distinct cell gets a slot, in order of appearance.
fn line_up(asks: &[CellAsk], state_of: impl Fn(usize) -> Option<State>) -> LinedUp {
    let mut keys: SmallVec<[CellKey; USUALLY]> = SmallVec::new();
    let mut states = Vec::with_capacity(asks.len());
    let mut checks = SmallVec::with_capacity(asks.len());
    for (place, ask) in asks.iter().enumerate() {
        let known = keys.iter().position(|key| *key == ask.key);
        let slot = known.unwrap_or_else(|| {
            keys.push(ask.key);
            states.push(state_of(place).unwrap_or_else(|| State::fresh(&ask.limit)));
            keys.len() - 1
        });
        checks.push(Check { limit: ask.limit, cost: ask.cost, slot });
    }
    LinedUp { checks, states }
}
