//! Verification of a key: found, judged, and then all limits and credits spent in one bundle or not at all.

mod lines;

use std::sync::Arc;

use smallvec::SmallVec;
use tollkeeper_core::{Cost, Limit, Millis, Outcome, Sharing, Use, Verdict, judge};

use crate::cells::{CellAsk, Returned};
use crate::decider::{CacheName, Decider};
use crate::loaded_key::LoadedKey;
use crate::ports::{KeyHash, OriginError, RootKey};
use crate::purse::{Filled, Held, Taken};
use crate::sharing::{self, Compared, Joint, Routed, Shared};
use crate::{Decided, Freshness, WarmError};
use lines::{Line, lines};

#[derive(Debug)]
pub struct VerifyAsk<'a> {
    pub caller: Arc<RootKey>,
    pub key: KeyText,
    pub wanted: Use<'a>,
    /// Only keys of these projects count; empty: all.
    pub projects: SmallVec<[&'a str; 1]>,
    pub limits: SmallVec<[AskedLimit<'a>; 2]>,
    pub credits: u64,
}

/// A key's text after the edge: two hashes, and whether our checksum fits.
#[derive(Clone, Copy, Debug)]
pub struct KeyText {
    pub ours: KeyHash,
    pub imported: KeyHash,
    pub intact: bool,
}

/// A limit that the request names.
#[derive(Clone, Copy, Debug)]
pub struct AskedLimit<'a> {
    pub name: &'a str,
    pub cost: Cost,
    /// A limit of the request's own; without it the name must be a stored one.
    pub own: Option<Limit>,
    pub sharing: Sharing,
}

/// All that a verification needs, near.
#[derive(Debug)]
pub struct WarmKey {
    key: Option<Arc<LoadedKey>>,
    verdict: Verdict,
    lines: SmallVec<[Line; 4]>,
    returned: Vec<Returned>,
    shared: Option<Box<Shared>>,
    compared: Vec<Compared>,
    credits: Credits,
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

#[derive(Debug)]
pub struct Verified {
    pub verdict: Verdict,
    /// Absent exactly when the verdict is [`Verdict::NotFound`].
    pub key: Option<Arc<LoadedKey>>,
    pub limits: SmallVec<[VerifiedLimit; 4]>,
    /// `None` where credits are unlimited.
    pub credits: Option<Taken>,
    /// What was really spent of them.
    pub credits_spent: u64,
}

/// What became of the credits.
#[derive(Debug, Default)]
struct Paid {
    balance: Option<Taken>,
    spent: u64,
}

#[derive(Debug)]
pub struct VerifiedLimit {
    pub id: Box<str>,
    pub name: Box<str>,
    pub limit: Limit,
    pub auto_apply: bool,
    pub outcome: Outcome,
    pub degraded: bool,
}

// === impl Decider ===

impl Decider {
    /// Finds the key and brings near what its verdict needs. A key that is not this caller's to verify
    /// is not found, whatever it is.
    pub async fn warm_key(
        &self,
        ask: &VerifyAsk<'_>,
        now: Millis,
        see: &mut (dyn FnMut(CacheName, Freshness) + Send),
    ) -> Result<WarmKey, WarmError> {
        let Some(key) = self.own_key(ask, now, see).await? else { return Ok(WarmKey::absent()) };
        let verdict = judge(&key.record, &ask.wanted, now);
        if verdict != Verdict::Valid {
            return Ok(WarmKey { key: Some(key), verdict, ..WarmKey::absent() });
        }
        let lines = lines(&key, &ask.limits)?;
        let credits = self.warm_credits(&key, ask.credits, now).await?;
        let (mut shared, mut compared) = (None, Vec::new());
        if let Some(fleet) = self.fleet() {
            let routed: SmallVec<[Routed<'_>; 4]> = lines.iter().map(Line::routed).collect();
            sharing::carry(fleet, self.cells(), &key.record.tenant_id, &routed, now).await;
            // Credits may refuse what every limit admits: then nothing may have been spent.
            let limited = matches!(credits, Credits::Limited { .. });
            let tenant_id = &key.record.tenant_id;
            shared = sharing::gather(fleet, tenant_id, &routed, limited).await.map(Box::new);
            compared = sharing::compared(fleet, &key.record.tenant_id, &routed);
        }
        // Last: a cell that came back must be decided on before the table can lose it twice.
        let is_shared = |place| shared.as_ref().is_some_and(|shared| shared.covers(place));
        let ours = lines.iter().enumerate().filter(|(place, _)| !is_shared(*place));
        let returned = self.overflow().fetch(ours.map(|(_, line)| line.ask.key)).await?;
        if let Some(fleet) = self.fleet().filter(|_| returned.is_empty()) {
            let routed: SmallVec<[Routed<'_>; 4]> = lines.iter().map(Line::routed).collect();
            sharing::inherit(fleet, self.cells(), &key.record.tenant_id, &routed, now);
        }
        Ok(WarmKey { key: Some(key), verdict, lines, returned, shared, compared, credits })
    }

    /// Decides: limits and credits are all spent, or none is.
    pub fn verify(&self, warm: WarmKey, now: Millis) -> Decided<Verified> {
        let WarmKey { key, verdict, lines, returned, shared, compared, credits } = warm;
        let Some(key) = key else { return Decided::new(Verified::not_found(), now) };
        if verdict != Verdict::Valid {
            return Decided::new(
                Verified { verdict, key: Some(key), ..Verified::not_found() },
                now,
            );
        }
        let asks: SmallVec<[CellAsk; 4]> = lines.iter().map(|line| line.ask).collect();
        let (joint, paid) = self.settle(&key, &asks, (returned, shared), credits, now);
        let verdict = match (joint.settled.passed, joint.settled.had_room) {
            (true, _) => Verdict::Valid,
            (false, true) => Verdict::UsageExceeded,
            (false, false) if joint.unavailable => Verdict::Unavailable,
            (false, false) => Verdict::RateLimited,
        };
        if let Some(fleet) = self.fleet() {
            for one in compared {
                one.run(fleet, &joint.settled.outcomes);
            }
        }
        let at = joint.at;
        let answered = lines.into_iter().zip(joint.settled.outcomes).zip(joint.degraded);
        let limits = answered.map(|((line, outcome), degraded)| line.answer(outcome, degraded));
        let verified = Verified {
            verdict,
            limits: limits.collect(),
            credits: paid.balance,
            credits_spent: paid.spent,
            key: Some(key),
        };
        Decided::new(verified, at)
    }

    async fn warm_credits(
        &self,
        key: &LoadedKey,
        cost: u64,
        now: Millis,
    ) -> Result<Credits, OriginError> {
        if key.record.credits.is_none() {
            return Ok(Credits::Unlimited);
        }
        Ok(match self.purse().fill(&key.record.id, cost, now).await? {
            Filled::Held(held) => Credits::Limited { cost, held: Some(held) },
            Filled::Short => Credits::Limited { cost, held: None },
            Filled::Unlimited => Credits::Unlimited,
        })
    }

    fn settle(
        &self,
        key: &LoadedKey,
        asks: &[CellAsk],
        (returned, shared): (Vec<Returned>, Option<Box<Shared>>),
        credits: Credits,
        now: Millis,
    ) -> (Joint, Paid) {
        let Credits::Limited { cost, held } = credits else {
            return (self.settle_shared(shared, asks, returned, now, || true), Paid::default());
        };
        let mut taken = None;
        let joint = self.settle_shared(shared, asks, returned, now, || {
            taken = held.map(|held| self.purse().take(held));
            taken.is_some_and(|taken| taken.enough)
        });
        // The total of this very take: by now others may have taken too, or given everything back.
        let balance = taken.unwrap_or_else(|| self.purse().look(&key.record.id));
        let spent = if joint.settled.passed { cost } else { 0 };
        (joint, Paid { balance: Some(balance), spent })
    }

    async fn own_key(
        &self,
        ask: &VerifyAsk<'_>,
        now: Millis,
        see: &mut (dyn FnMut(CacheName, Freshness) + Send),
    ) -> Result<Option<Arc<LoadedKey>>, OriginError> {
        let mut found = None;
        if ask.key.intact {
            found = self.key(ask.key.ours, now, see).await?.filter(|key| ask.covers(key));
        }
        if found.is_none() && ask.caller.tenant.has_imports {
            found = self.key(ask.key.imported, now, see).await?.filter(|key| ask.covers(key));
        }
        Ok(found)
    }
}

// === impl VerifyAsk ===

impl VerifyAsk<'_> {
    /// Is this key the caller's to verify?
    fn covers(&self, key: &LoadedKey) -> bool {
        let (record, project) = (&key.record, &key.record.project.id);
        *record.tenant_id == *self.caller.tenant.id
            && self.caller.permissions.allow("api", project, "verify_key")
            && (self.projects.is_empty() || self.projects.contains(&&**project))
    }
}

// === impl WarmKey ===

impl WarmKey {
    fn absent() -> Self {
        Self {
            key: None,
            verdict: Verdict::NotFound,
            lines: SmallVec::new(),
            returned: Vec::new(),
            shared: None,
            compared: Vec::new(),
            credits: Credits::Unlimited,
        }
    }
}

// === impl Verified ===

impl Verified {
    fn not_found() -> Self {
        Self {
            verdict: Verdict::NotFound,
            key: None,
            limits: SmallVec::new(),
            credits: None,
            credits_spent: 0,
        }
    }
}
