//! What a verification came to.

use std::sync::Arc;

use smallvec::SmallVec;
use tollkeeper_core::{IdentityRecord, Limit, Millis, Outcome, Rule, Unmet, Verdict, Written};

use super::names::{Name, Names};
use super::{Purpose, VerifyAsk};
use crate::counts::LimitCount;
use crate::limit_terms::{LimitTerms, Source};
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
    /// What those of rules count by; see [`Verified::identifier_of`].
    pub(super) names: Names,
    /// `None` where credits are unlimited.
    pub credits: Option<Taken>,
    /// What was really spent of them.
    pub credits_spent: u64,
    /// The rule that decided: it blocks, has the limit that is [in the way](Verified::in_the_way), or makes the request
    /// wait.
    pub rule: Option<Arc<Rule>>,
    /// What the `allow` or `block` rule counts that ended the walk over the rules.
    pub ended_by: Option<Arc<LimitCount>>,
    /// The pattern that the path matched, of the first rule that has one.
    pub endpoint: Option<Arc<str>>,
    /// Allowed, but only after so long.
    pub delay_ms: u64,
    /// A word about every rule, where that was asked for.
    pub reasons: Vec<Reason>,
    /// Whether its signature was new was decided without the shared counters.
    pub signature_degraded: bool,
    /// What the request moves, as it says itself.
    pub bytes: u64,
    /// Says what would happen: nothing was spent, and nothing is to be counted.
    pub dry: bool,
}

#[derive(Debug)]
pub struct VerifiedLimit {
    pub terms: Arc<LimitTerms>,
    /// See [`Verified::identifier_of`].
    pub(super) identifier: Option<Name>,
    /// As it was counted.
    pub limit: Limit,
    /// As its rule writes it, where that is something else.
    pub written: Option<Written>,
    pub outcome: Outcome,
    pub degraded: bool,
}

/// Why a rule counts for a request, or does not.
#[derive(Debug)]
pub struct Reason {
    pub rule: Arc<Rule>,
    pub unmet: Option<Unmet>,
}

// === impl Verified ===

impl Verified {
    /// Nothing but a verdict, which limits and credits may still change.
    pub(super) fn of(ask: &VerifyAsk<'_>, verdict: Verdict) -> Self {
        Self {
            verdict,
            key: None,
            named: None,
            limits: SmallVec::new(),
            names: Names::default(),
            credits: None,
            credits_spent: 0,
            rule: None,
            ended_by: None,
            endpoint: None,
            delay_ms: 0,
            reasons: Vec::new(),
            signature_degraded: false,
            bytes: ask.bytes,
            dry: ask.purpose != Purpose::Spend,
        }
    }

    /// Takes a limit in, and with it the rule that makes the request wait longest.
    pub(super) fn weigh(&mut self, line: VerifiedLimit, delay_ms: u64) {
        if self.passed() && delay_ms > self.delay_ms {
            self.rule = line.rule().cloned();
            self.delay_ms = delay_ms;
        }
        self.limits.push(line);
    }

    /// Once all limits are in: whose limit denies, so that rule, text and time to wait speak of one and the same.
    pub(super) fn blame(&mut self) {
        if !self.passed() {
            self.rule = self.in_the_way().and_then(VerifiedLimit::rule).cloned();
        }
    }

    /// Of the limits that deny, the one that does so longest; of equals the first.
    pub fn in_the_way(&self) -> Option<&VerifiedLimit> {
        let denying = self.limits.iter().filter(|one| one.denies());
        denying.min_by_key(|one| one.outcome.tightness())
    }

    /// Which of a rule's counters one of these limits is, by what its scopes say; others count by their name.
    pub fn identifier_of(&self, one: &VerifiedLimit) -> Option<&str> {
        one.identifier.map(|name| self.names.of(name))
    }

    /// Takes in a limit that was decided apart from the others, with its name.
    pub(super) fn see(&mut self, line: VerifiedLimit, names: &Names) {
        let identifier = line.identifier.map(|name| self.names.put_text(names.of(name)));
        self.limits.push(VerifiedLimit { identifier, ..line });
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
        self.signature_degraded || self.limits.iter().any(|one| one.degraded && !one.is_shadow())
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
        matches!(&self.terms.source, Source::Rule(of) if of.shadow)
    }

    /// What the whole rule counts, where that is not what this limit counts.
    pub fn whole_rule(&self) -> Option<&LimitCount> {
        match &self.terms.source {
            Source::Rule(of) => of.count.as_deref(),
            _ => None,
        }
    }

    pub fn rule(&self) -> Option<&Arc<Rule>> {
        match &self.terms.source {
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
