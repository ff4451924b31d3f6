//! Many cells at once: all are locked, checked, and then all are spent from or none.

use smallvec::SmallVec;
use tollkeeper_core::{Admission, Check, Cost, Millis, Outcome, Settled, State, settle_if};

use super::{CellAsk, Cells, Returned};
use crate::CellKey;
use crate::shard::Shard;
use crate::sync::lock;

/// The checks of a bundle against its distinct cells.
struct LinedUp {
    checks: SmallVec<[Check; 8]>,
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
        // Locks are taken in ascending order, everywhere: two bundles can wait for each other, never in a circle.
        let fetched = |ask: &CellAsk| {
            let at = self.shard_of(ask.key);
            self.whereabouts[at].fetch(ask.key);
            at
        };
        let mut order: SmallVec<[usize; 8]> = asks.iter().map(fetched).collect();
        order.sort_unstable();
        order.dedup();
        let mut held: SmallVec<[_; 8]> = order.iter().map(|at| lock(&self.shards[*at])).collect();
        let place = |key| order.binary_search(&self.shard_of(key)).unwrap_or(0);

        for back in returned {
            let (key, shard) = (back.cell.key, &mut held[place(back.cell.key)]);
            self.bring_back(shard, key, vec![back], now);
        }
        if let Some(outcomes) = probe_here(asks, |key| &*held[place(key)], now) {
            let had_room = outcomes.iter().all(Outcome::admitted);
            if !(had_room && condition()) {
                let outcomes = unspent(asks, outcomes, |key| &*held[place(key)], now);
                return Settled { passed: false, had_room, outcomes };
            }
            for ask in asks.iter().filter(|ask| ask.cost != Cost::PEEK) {
                held[place(ask.key)].spend(&ask.touch(now));
            }
            return Settled { passed: true, had_room, outcomes };
        }
        let LinedUp { checks, mut states } =
            line_up(asks, |key| held[place(key)].state(key).cloned());
        let settled = settle_if(&checks, &mut states, now, condition);
        if settled.passed {
            for (slot, state) in states.into_iter().enumerate() {
                // The last that spent knows what is left. Where all only looked there is nothing to keep.
                let spent = |check: &Check| check.slot == slot && check.cost != Cost::PEEK;
                let Some(last) = checks.iter().rposition(spent) else { continue };
                let shard = &mut held[place(asks[last].key)];
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

/// What each ask would come to, if every cell is in the table and asked once. Then all can be spent from where they are:
/// nothing is copied, and nothing has to be evicted for another.
fn probe_here<'a>(
    asks: &[CellAsk],
    shard_of: impl Fn(CellKey) -> &'a Shard,
    now: Millis,
) -> Option<Vec<Outcome>> {
    let mut outcomes = Vec::with_capacity(asks.len());
    for (at, ask) in asks.iter().enumerate() {
        if asks[..at].iter().any(|before| before.key == ask.key) {
            return None;
        }
        let outcome = shard_of(ask.key).probe(&ask.touch(now))?;
        // Asking for nothing never fails, as in every bundle.
        let looks = ask.cost == Cost::PEEK;
        let admission = if looks { Admission::Admitted } else { outcome.admission };
        outcomes.push(Outcome { admission, ..outcome });
    }
    Some(outcomes)
}

/// The same asks after a denial: those that would have passed report what they have left.
fn unspent<'a>(
    asks: &[CellAsk],
    outcomes: Vec<Outcome>,
    shard_of: impl Fn(CellKey) -> &'a Shard,
    now: Millis,
) -> Vec<Outcome> {
    let left = |(ask, outcome): (&CellAsk, Outcome)| {
        let looks = CellAsk { cost: Cost::PEEK, ..*ask };
        let unspent = shard_of(ask.key).probe(&looks.touch(now)).unwrap_or(outcome);
        Outcome { admission: outcome.admission, ..unspent }
    };
    asks.iter().zip(outcomes).map(left).collect()
}

/// Each distinct cell gets a slot, in order of appearance.
fn line_up(asks: &[CellAsk], state_of: impl Fn(CellKey) -> Option<State>) -> LinedUp {
    let mut keys: SmallVec<[CellKey; 8]> = SmallVec::new();
    let mut states = Vec::with_capacity(asks.len());
    let mut checks = SmallVec::with_capacity(asks.len());
    for ask in asks {
        let known = keys.iter().position(|key| *key == ask.key);
        let slot = known.unwrap_or_else(|| {
            keys.push(ask.key);
            states.push(state_of(ask.key).unwrap_or_else(|| State::fresh(&ask.limit)));
            keys.len() - 1
        });
        checks.push(Check { limit: ask.limit, cost: ask.cost, slot });
    }
    LinedUp { checks, states }
}
