//! What a request wants to know, validated and free of any edge: the same whichever front it came through.

use std::sync::Arc;

use smallvec::SmallVec;
use tollkeeper_core::{Cost, Limit, Outcome, Sharing};

use crate::counts::LimitCount;
use crate::ports::RootKey;

/// One or many limits, all or nothing.
#[derive(Debug)]
pub struct LimitAsk<'a> {
    pub caller: Arc<RootKey>,
    /// What the caller must be allowed to do on each namespace.
    pub action: &'static str,
    pub missing: Missing,
    /// It may turn out to be a retry: nothing may be spent before that is known.
    pub once: bool,
    pub checks: SmallVec<[LimitCheck<'a>; 1]>,
}

#[derive(Clone, Copy, Debug)]
pub struct LimitCheck<'a> {
    /// Name or id.
    pub namespace: &'a str,
    pub identifier: &'a str,
    pub limit: Limit,
    pub cost: Cost,
    pub sharing: Sharing,
}

/// What to do about a namespace that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Make it, if the caller may.
    Create,
    Refuse,
}

/// The answer to a [`LimitAsk`].
#[derive(Clone, Debug)]
pub struct Limited {
    pub passed: bool,
    /// In the order of the checks.
    pub limits: SmallVec<[LimitedOne; 1]>,
}

#[derive(Clone, Debug)]
pub struct LimitedOne {
    pub outcome: Outcome,
    pub limit: Limit,
    pub override_id: Option<Arc<str>>,
    /// Decided without the shared counters, or refused because they did not answer.
    pub degraded: bool,
    pub count: Arc<LimitCount>,
}

// === impl Limited ===

impl Limited {
    /// The limit that headers speak of: of those that deny the one that does so longest, else the one that leaves least.
    pub fn tightest(&self) -> Option<(usize, &LimitedOne)> {
        self.limits.iter().enumerate().min_by_key(|(_, one)| one.outcome.tightness())
    }
}
