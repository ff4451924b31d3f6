//! Verification of a request: its key found and judged, its rules matched, and then all limits and credits spent in one
//! bundle or not at all.

mod ask;
mod lines;
mod lot;
mod made;
mod names;
mod once;
mod rules;
mod subject;

use std::sync::Arc;

use smallvec::SmallVec;
use tollkeeper_core::{Millis, Verdict};

use crate::decider::{CacheName, Decider, NO_CONDITION};
use crate::join::join_all;
use crate::loaded_key::LoadedKey;
use crate::ports::OriginError;
use crate::purse::{Filled, Held, Taken};
use crate::sharing::Joint;
use crate::{Decided, Freshness, WarmError};
use lines::{Lines, stored_and_asked};
use lot::{Lot, Reserve};
use rules::Ruled;
use subject::Subject;

pub use ask::{AskedLimit, KeyText, Purpose, Reach, Told, VerifyAsk, WaitingRoom};
pub use made::{Reason, Verified, VerifiedLimit, tier_of};

/// All that a verification needs, near.
#[derive(Debug)]
pub struct WarmKey {
    /// What is known by now. A verdict other than valid is final; limits and credits are yet to come. Boxed, because it is
    /// handed on until the reply is written.
    known: Box<Verified>,
    lot: Lot,
    /// Each by itself, and only when the rest has passed.
    watching: Vec<Lot>,
    credits: Credits,
    purpose: Purpose,
}

/// What a verification needs of credits.
#[derive(Debug)]
enum Credits {
    /// The key has no limit on them.
    Unlimited,
    Limited {
        cost: u64,
        /// Absent where there are not so many.
        held: Option<Held>,
    },
}

/// What became of the credits.
#[derive(Debug, Default)]
struct Paid {
    balance: Option<Taken>,
    spent: u64,
}

// === impl Decider ===

impl Decider {
    /// Finds the key and brings near what its verdict needs. A key that is not this caller's to ask about
    /// is not found, whatever it is.
    pub async fn warm_key(
        &self,
        ask: &VerifyAsk<'_>,
        now: Millis,
        see: &mut (dyn FnMut(CacheName, Freshness) + Send),
    ) -> Result<WarmKey, WarmError> {
        let key = self.own_key(ask, now, see).await?;
        if ask.key.is_some() && key.is_none() {
            return Ok(WarmKey::refused(Verified::of(ask, Verdict::NotFound), ask.purpose));
        }
        let named = match ask.told.external_id {
            // Boxed, like all that is rare: every request carries the room of whatever it might await.
            Some(external_id) if key.as_ref().is_none_or(|key| key.record.identity.is_none()) => {
                Box::pin(self.identity(&ask.caller.tenant, external_id, now, see)).await?
            }
            _ => None,
        };
        let tenant = &ask.caller.tenant;
        let stranger;
        let owner = match (&key, &named) {
            (Some(key), _) => &key.tag,
            (None, Some(named)) => &named.tag,
            (None, None) => {
                stranger = subject::stranger(self.hasher(), ask);
                &stranger
            }
        };
        let (own, theirs) = (key.as_deref(), named.as_deref());
        let subject = Subject { tenant, key: own, named: theirs, owner };
        let verdict = subject.judge(&ask.wanted, ask.at.unwrap_or(now));
        let book = self.rules().of(&tenant.id);
        // Why a rule matches is told also where something else refuses.
        let ruled = if verdict == Verdict::Valid || ask.purpose == Purpose::Explain {
            rules::rule(self, book.as_deref(), ask, &subject)?
        } else {
            Ruled::default()
        };
        let Ruled { lines: by_rules, watching, blocked_by, ended_by, endpoint, reasons } = ruled;
        if verdict != Verdict::Valid || blocked_by.is_some() {
            let verdict = if verdict == Verdict::Valid { Verdict::Blocked } else { verdict };
            let rule = blocked_by.filter(|_| verdict == Verdict::Blocked);
            let known = Verified::of(ask, verdict);
            let known = Verified { key, named, rule, ended_by, endpoint, reasons, ..known };
            return Ok(WarmKey::refused(known, ask.purpose));
        }
        let mut lines = stored_and_asked(ask, &subject)?;
        let watching = watching
            .into_iter()
            .map(|line| Lines::alone(line, &by_rules.names))
            .collect::<Vec<_>>();
        lines.take_in(by_rules);
        if let Some(key) = &key {
            once::add(self.hasher(), ask, key, &mut lines);
        }
        let credits = match &key {
            Some(key) => self.warm_credits(key, ask, now).await?,
            None => Credits::Unlimited,
        };
        // Credits may refuse what every limit admits, and so may an answer that was given before.
        let reserve = match (&credits, ask.purpose) {
            (_, Purpose::Look | Purpose::Explain) => {
                Reserve::Nothing { ahead_ms: ask.at.map_or(0, |at| at.since(now)) }
            }
            (Credits::Unlimited, Purpose::Spend) if !ask.once => Reserve::Spend,
            _ => Reserve::Aside,
        };
        let watching = if watching.is_empty() {
            Vec::new()
        } else {
            Box::pin(self.bring_watching(&tenant.id, watching, reserve, now)).await
        };
        // Last: a cell that came back must be decided on before the table can lose it twice.
        let lot = self.bring(&tenant.id, lines, reserve, now).await?;
        let mut known = Box::new(Verified::of(ask, verdict));
        (known.key, known.named) = (key, named);
        (known.ended_by, known.endpoint, known.reasons) = (ended_by, endpoint, reasons);
        Ok(WarmKey { known, lot, watching, credits, purpose: ask.purpose })
    }

    /// Decides: limits and credits are all spent, or none is.
    pub fn verify(&self, warm: WarmKey, now: Millis) -> Decided<Box<Verified>> {
        let WarmKey { known: mut made, lot, watching, credits, purpose } = warm;
        if made.verdict != Verdict::Valid {
            return Decided::new(made, now);
        }
        let dry = made.dry;
        let (mut lines, mut joint, paid) =
            self.settle(made.key.as_deref(), lot, credits, purpose, now);
        let sighted = once::take_out(&mut lines, &mut joint);
        made.signature_degraded = sighted.degraded;
        if let Some(refusal) = sighted.refusal {
            made.verdict = refusal;
            return Decided::new(made, joint.at);
        }
        let passes = joint.settled.passed || (dry && joint.settled.had_room);
        let affordable = paid.balance.is_none_or(|balance| balance.enough);
        made.verdict = match (passes, joint.settled.had_room) {
            (true, _) if joint.settled.passed || affordable => Verdict::Valid,
            (_, true) => Verdict::UsageExceeded,
            (_, false) if joint.unavailable => Verdict::Unavailable,
            (_, false) => Verdict::RateLimited,
        };
        let at = joint.at;
        made.limits = SmallVec::with_capacity(lines.all.len());
        made.names = lines.names;
        let answers = joint.settled.outcomes.iter().zip(&joint.degraded);
        for (line, (outcome, degraded)) in lines.all.into_iter().zip(answers) {
            let (line, delay_ms) = line.answer(*outcome, *degraded, at, dry);
            made.weigh(line, delay_ms);
        }
        made.blame();
        let spends = made.passed() && !dry;
        for lot in watching {
            let (lines, joint) = self.settle_lot(lot, now, Some(|| spends));
            let answers = joint.settled.outcomes.iter().zip(&joint.degraded);
            for (line, (outcome, degraded)) in lines.all.into_iter().zip(answers) {
                made.see(line.answer(*outcome, *degraded, at, dry).0, &lines.names);
            }
        }
        made.credits = paid.balance;
        made.credits_spent = paid.spent;
        Decided::new(made, at)
    }

    /// Watching rules one beside the other, so that all of them take no longer than one. What cannot be brought near is
    /// not watched: nothing hangs on it.
    async fn bring_watching(
        &self,
        tenant_id: &str,
        each: Vec<Lines>,
        reserve: Reserve,
        now: Millis,
    ) -> Vec<Lot> {
        let reserve = if reserve == Reserve::Spend { Reserve::Aside } else { reserve };
        let alone = |lines| self.bring(tenant_id, lines, reserve, now);
        join_all(each.into_iter().map(alone)).await.into_iter().filter_map(Result::ok).collect()
    }

    async fn warm_credits(
        &self,
        key: &LoadedKey,
        ask: &VerifyAsk<'_>,
        now: Millis,
    ) -> Result<Credits, OriginError> {
        if key.record.credits.is_none() {
            return Ok(Credits::Unlimited);
        }
        let cost = ask.credits;
        // Who only looks leases nothing, and learns what there is all the same.
        let wanted = if ask.purpose == Purpose::Spend { cost } else { 0 };
        Ok(match self.purse().fill(&key.record.id, wanted, now).await? {
            Filled::Held(held) => Credits::Limited { cost, held: Some(held) },
            Filled::Short => Credits::Limited { cost, held: None },
            Filled::Unlimited => Credits::Unlimited,
        })
    }

    fn settle(
        &self,
        key: Option<&LoadedKey>,
        lot: Lot,
        credits: Credits,
        purpose: Purpose,
        now: Millis,
    ) -> (Lines, Joint, Paid) {
        let spends = purpose == Purpose::Spend;
        let (Credits::Limited { cost, held }, Some(key)) = (credits, key) else {
            let (lines, joint) = if spends {
                self.settle_lot(lot, now, NO_CONDITION)
            } else {
                self.settle_lot(lot, now, Some(|| false))
            };
            return (lines, joint, Paid::default());
        };
        let look = || self.purse().look(&key.record.id);
        if !spends {
            let (lines, joint) = self.settle_lot(lot, now, Some(|| false));
            let there = look();
            let balance = Some(Taken { enough: cost <= there.balance, ..there });
            return (lines, joint, Paid { balance, spent: 0 });
        }
        let mut taken = None;
        let pays = || {
            taken = held.map(|held| self.purse().take(held));
            taken.is_some_and(|taken| taken.enough)
        };
        let (lines, joint) = self.settle_lot(lot, now, Some(pays));
        // The total of this very take: by now others may have taken too, or given everything back.
        let balance = taken.unwrap_or_else(look);
        let spent = if joint.settled.passed { cost } else { 0 };
        (lines, joint, Paid { balance: Some(balance), spent })
    }

    async fn own_key(
        &self,
        ask: &VerifyAsk<'_>,
        now: Millis,
        see: &mut (dyn FnMut(CacheName, Freshness) + Send),
    ) -> Result<Option<Arc<LoadedKey>>, OriginError> {
        let Some(text) = &ask.key else { return Ok(None) };
        let mut found = None;
        if text.intact {
            found = self.key(text.ours, now, see).await?;
            // Before anything is asked about it: then all of it comes while the first is waited for.
            if let Some(key) = &found {
                key.fetch();
            }
            found = found.filter(|key| ask.covers(key));
        }
        if found.is_none() && ask.caller.tenant.has_imports {
            found = self.key(text.imported, now, see).await?.filter(|key| ask.covers(key));
        }
        Ok(found)
    }
}

// === impl WarmKey ===

impl WarmKey {
    pub fn key(&self) -> Option<&LoadedKey> {
        self.known.key.as_deref()
    }

    fn refused(known: Verified, purpose: Purpose) -> Self {
        let (lot, watching) = (Lot::default(), Vec::new());
        Self { known: Box::new(known), lot, watching, credits: Credits::Unlimited, purpose }
    }
}
