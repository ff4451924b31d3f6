//! One key's credits on one node: plain arithmetic over what was granted, spent and set aside.
//! It knows no bank and no clock.

use tollkeeper_core::Millis;

use super::Taken;
use crate::ports::{CreditLease, LEASE_LIFE_MS, OriginError};

/// How long "there is no more than this" is believed without asking again.
pub(super) const EMPTY_MS: u64 = 1_000;
/// A tenth of what is left goes to one node at a time, so that the last credits stay with whoever asks for them.
const CHUNK_SHARE: u64 = 10;
/// At most this many: what a restart has to return, and other nodes cannot see meanwhile.
const CHUNK_MAX: u64 = 1_000;

#[derive(Debug)]
pub(super) struct Pocket {
    lease: CreditLease,
    /// Set aside for requests that are warm and not decided yet.
    held: u64,
    /// Whatever was set aside in an earlier life is void.
    life: u64,
    /// Everything is about to be given back: nothing more is set aside.
    closing: bool,
    /// The bank knows no limit for this key.
    unlimited: bool,
    /// When the bank last answered. `None`: nothing that is known here can be relied on.
    asked_at: Option<Millis>,
    /// When the last message that the bank took in was sent: the lease may be spent from for a while after that.
    heard_at: Millis,
    used_at: Millis,
    /// What the bank was last told of.
    reported: u64,
    failures: u64,
    last_failure: Option<OriginError>,
}

/// What can be said about a cost without asking the bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Enough,
    /// The bank said lately that there is not so much.
    Short,
    Unlimited,
    Unknown,
}

// === impl Pocket ===

impl Pocket {
    pub(super) fn new(life: u64, now: Millis) -> Self {
        Self {
            lease: CreditLease::default(),
            held: 0,
            life,
            closing: false,
            unlimited: false,
            asked_at: None,
            heard_at: now,
            used_at: now,
            reported: 0,
            failures: 0,
            last_failure: None,
        }
    }

    pub(super) fn standing(&self, cost: u64, now: Millis) -> Standing {
        let Some(asked_at) = self.asked_at.filter(|_| !self.closing) else {
            return Standing::Unknown;
        };
        let lately = now.since(asked_at) <= EMPTY_MS;
        let could = self.free().saturating_add(self.lease.left);
        match (self.unlimited, lately) {
            (true, true) => Standing::Unlimited,
            (false, _) if cost == 0 || cost <= self.free() && !self.is_silent(now) => {
                Standing::Enough
            }
            (false, true) if cost > could => Standing::Short,
            _ => Standing::Unknown,
        }
    }

    /// Sets `cost` aside, which must be there; returns the life in which it counts.
    pub(super) fn hold(&mut self, cost: u64) -> u64 {
        self.held += cost;
        self.life
    }

    pub(super) fn release(&mut self, cost: u64, life: u64) {
        if life == self.life {
            self.held -= cost;
        }
    }

    /// Spends what was set aside. What became void is spent like anybody's, if there is so much.
    pub(super) fn spend(&mut self, cost: u64, life: u64) -> bool {
        self.release(cost, life);
        let enough = cost <= self.free();
        if enough {
            self.lease.spent += cost;
        }
        enough
    }

    /// What to ask the bank for. The whole cost: what is in hand now may be spent when the answer comes.
    pub(super) fn want(&self, cost: u64) -> u64 {
        cost.max((self.lease.left / CHUNK_SHARE).min(CHUNK_MAX))
    }

    /// Takes an answer in. Spending went on while it was on its way; within one lease grants only grow.
    pub(super) fn learn(&mut self, told: u64, answer: Option<CreditLease>, now: Millis) {
        self.unlimited = answer.is_none();
        self.asked_at = self.asked_at.max(Some(now));
        self.heard_at = self.heard_at.max(now);
        self.reported = self.reported.max(told);
        let Some(lease) = answer else { return };
        self.lease.granted = self.lease.granted.max(lease.granted);
        self.lease.spent = self.lease.spent.max(lease.spent);
        self.lease.left = lease.left;
    }

    pub(super) fn fail(&mut self, error: &OriginError) {
        self.failures += 1;
        self.last_failure = Some(error.clone());
    }

    pub(super) fn failures(&self) -> u64 {
        self.failures
    }

    /// The failure of a call that ended after `seen` of them had.
    pub(super) fn failure_since(&self, seen: u64) -> Option<OriginError> {
        self.last_failure.clone().filter(|_| self.failures > seen)
    }

    /// Nothing is in hand any more, whether or not the bank will hear of it: if it does not, its next
    /// answer says what is still ours. Returns the total to tell it.
    pub(super) fn empty(&mut self, life: u64) -> u64 {
        self.closing = false;
        self.lease.granted = self.lease.spent;
        (self.held, self.life) = (0, life);
        self.asked_at = None;
        self.lease.spent
    }

    /// Nothing more is set aside from here on; true when nothing is any more.
    pub(super) fn close(&mut self) -> bool {
        self.closing = true;
        self.held == 0
    }

    /// Neither in hand nor, as far as is known, at the bank.
    pub(super) fn is_spent(&self) -> bool {
        self.lease.granted == self.lease.spent && self.lease.left == 0
    }

    /// A report that was sent at `at` arrived. After too long a silence it prolongs nothing: the bank may count the lease
    /// as lost, which only its answer to the next ask tells.
    pub(super) fn told(&mut self, spent: u64, at: Millis) {
        self.reported = self.reported.max(spent);
        if !self.is_silent(at) {
            self.heard_at = self.heard_at.max(at);
        }
    }

    fn is_silent(&self, now: Millis) -> bool {
        now.since(self.heard_at) >= LEASE_LIFE_MS
    }

    pub(super) fn touch(&mut self, now: Millis) {
        self.used_at = self.used_at.max(now);
    }

    pub(super) fn lease(&self) -> CreditLease {
        self.lease
    }

    /// When it was last used; `None` while somebody is using it.
    pub(super) fn unused_since(&self) -> Option<Millis> {
        (self.held == 0).then_some(self.used_at)
    }

    pub(super) fn unreported(&self) -> bool {
        self.lease.spent > self.reported
    }

    pub(super) fn look(&self) -> Taken {
        let CreditLease { granted, spent, left } = self.lease;
        let balance = granted.saturating_sub(spent).saturating_add(left);
        Taken { enough: false, spent, balance }
    }

    /// Nothing, should the bank ever say that more was spent than is known here.
    fn free(&self) -> u64 {
        self.lease.granted.saturating_sub(self.lease.spent).saturating_sub(self.held)
    }
}
