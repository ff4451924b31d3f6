//! What a verification came to.

use std::sync::Arc;

use smallvec::SmallVec;
use tollkeeper_core::{IdentityRecord, Limit, Millis, Outcome, Rule, Unmet, Verdict, Written};

use crate::counts::LimitCount;
use crate::loaded_key::{LoadedIdentity, LoadedKey};
use crate::purse::Taken;

#[derive(Debug)]
pub struct Verified {
    pub verdict: Verdict,
    /// Absent where there is none, or the request carried none.
    pub key: Option<Arc<LoadedKey>>,
    /// The one that the request named; see [`Verified::identity`].
    pub named: Option<Arc<LoadedIdentity>>,
    pub limits: SmallVec<[VerifiedLimit; 1]>,
    /// `None` where credits are unlimited.
    pub credits: Option<Taken>,
    /// What was really spent of them.
    pub credits_spent: u64,
    /// The rule that decided: it blocks, was exceeded, or makes the request wait.
    pub rule: Option<Arc<Rule>>,
    /// The pattern that the path matched, of the first rule that has one.
    pub endpoint: Option<Arc<str>>,
    /// Allowed, but only after so long.
    pub delay_ms: u64,
    /// A word about every rule, where that was asked for.
    pub reasons: Vec<Reason>,
    /// What the request moves, as it says itself.
    pub bytes: u64,
    /// Says what would happen: nothing was spent, and nothing is to be counted.
    pub dry: bool,
}

#[derive(Debug)]
pub struct VerifiedLimit {
    pub id: Arc<str>,
    pub name: Arc<str>,
    /// As it was counted.
    pub limit: Limit,
    /// As its rule writes it, where that is something else.
    pub written: Option<Written>,
    pub auto_apply: bool,
    pub outcome: Outcome,
    pub degraded: bool,
    pub source: Source,
    pub count: Option<Arc<LimitCount>>,
}

/// Where a limit comes from.
#[derive(Debug)]
pub enum Source {
    Key,
    Identity,
    /// The request's own.
    AdHoc,
    /// An identity's own, where no rule of its tier has one of that window.
    Quota,
    Rule(Box<OfRule>),
}

#[derive(Debug)]
pub struct OfRule {
    pub rule: Arc<Rule>,
    /// Its scopes as one text.
    pub scope: Arc<str>,
    pub identifier: Arc<str>,
    /// Only watches: it never refuses.
    pub shadow: bool,
}

/// Why a rule counts for a request, or does not.
#[derive(Debug)]
pub struct Reason {
    pub rule: Arc<Rule>,
    pub unmet: Option<Unmet>,
}

// === impl Verified ===

impl Verified {
    pub(super) fn refused(verdict: Verdict) -> Self {
        Self {
            verdict,
            key: None,
            named: None,
            limits: SmallVec::new(),
            credits: None,
            credits_spent: 0,
            rule: None,
            endpoint: None,
            delay_ms: 0,
            reasons: Vec::new(),
            bytes: 0,
            dry: false,
        }
    }

    /// Takes a limit in, and with it the first rule that was exceeded, or else the one that makes it wait longest.
    pub(super) fn weigh(&mut self, line: VerifiedLimit, delay_ms: u64) {
        let denies = line.denies() && self.rule.is_none();
        let delays = self.passed() && delay_ms > self.delay_ms;
        if let Some(rule) = line.rule().filter(|_| (denies && !self.passed()) || delays) {
            self.rule = Some(Arc::clone(rule));
        }
        if delays {
            self.delay_ms = delay_ms;
        }
        self.limits.push(line);
    }

    pub fn passed(&self) -> bool {
        self.verdict == Verdict::Valid
    }

    /// The key's, else the one that the request named.
    pub fn identity(&self) -> Option<&IdentityRecord> {
        identity_of(self.key.as_deref(), self.named.as_deref())
    }

    /// Some limit that could have refused was decided without the shared counters.
    pub fn is_degraded(&self) -> bool {
        self.limits.iter().any(|one| one.degraded && !one.is_shadow())
    }

    /// All that is asked for that identity.
    pub fn owner_count(&self) -> Option<&LimitCount> {
        let own = self.key.as_ref().and_then(|key| key.owner_count.as_deref());
        own.or_else(|| self.named.as_ref().map(|named| &*named.owner_count))
    }

    /// When the whole would fit, with no other traffic. `None` where it fits, never will, or time is not what it lacks.
    pub fn retry_after_ms(&self, at: Millis) -> Option<u64> {
        let denied = || self.limits.iter().filter(|one| one.denies());
        if self.verdict != Verdict::RateLimited {
            return None;
        }
        denied()
            .map(|one| one.outcome.retry_after_ms(at))
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .max()
    }
}

// === impl VerifiedLimit ===

impl VerifiedLimit {
    /// Exceeded, and not by a rule that only watches.
    pub fn denies(&self) -> bool {
        !self.outcome.admitted() && !self.is_shadow()
    }

    pub fn is_shadow(&self) -> bool {
        matches!(&self.source, Source::Rule(of) if of.shadow)
    }

    pub fn rule(&self) -> Option<&Arc<Rule>> {
        match &self.source {
            Source::Rule(of) => Some(&of.rule),
            _ => None,
        }
    }
}

pub(super) fn identity_of<'a>(
    key: Option<&'a LoadedKey>,
    named: Option<&'a LoadedIdentity>,
) -> Option<&'a IdentityRecord> {
    let own = key.and_then(|key| key.record.identity.as_ref());
    own.or_else(|| named.map(|named| &named.record))
}

/// The key's tier, else its identity's, else what the request says, else `free`.
pub fn tier_of<'a>(
    key: Option<&'a LoadedKey>,
    identity: Option<&'a IdentityRecord>,
    told: Option<&'a str>,
) -> &'a str {
    let own = key.and_then(|key| key.record.tier.as_deref());
    let theirs = || identity.and_then(|identity| identity.tier.as_deref());
    own.or_else(theirs).or(told).unwrap_or("free")
}
