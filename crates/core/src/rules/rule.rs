//! One rule as it is enforced: parsed and valid. Whoever reads rules from people makes these.

use std::sync::Arc;

use super::{PathPattern, ScopeList};
use crate::{Cidr, Limit, Quota, Sharing, Width};

#[derive(Clone, Debug)]
pub struct Rule {
    pub name: Arc<str>,
    /// Whose requests share a counter.
    pub scope: ScopeList,
    /// Empty, here and in the four below: whatever the request says, also nothing.
    pub tiers: Vec<Box<str>>,
    pub endpoints: Vec<PathPattern>,
    /// In upper case.
    pub methods: Vec<Box<str>>,
    pub ip_ranges: Vec<Cidr>,
    /// Ids or slugs.
    pub projects: Vec<Box<str>>,
    /// Empty only where the action needs none.
    pub limits: Vec<RuleLimit>,
    pub action: Action,
    pub response: Option<RuleResponse>,
    pub sharing: Sharing,
    /// Lower comes first; of equals, the lower name.
    pub priority: i64,
    pub enabled: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleLimit {
    /// Unique within its rule: as given, or the text of its window.
    pub name: Arc<str>,
    /// As it is counted.
    pub limit: Limit,
    /// As it is written, where that is something else: a bucket that is refilled at a rate of its own.
    pub written: Option<Written>,
}

/// A limit and its window as people wrote them, and want to see them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    pub quota: Quota,
    pub width: Width,
}

/// What a rule does with the requests that it matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// Over the limit: refused.
    #[default]
    Reject,
    /// Over the limit: told to wait, up to this long; beyond it, refused.
    Throttle { max_delay_ms: u64 },
    /// Counted and reported, never refused.
    LogOnly,
    /// Ends the walk: later rules are not asked.
    Allow,
    /// Ends the walk: refused.
    Block,
}

/// What a refusal by this rule says instead of the usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleResponse {
    pub status: Option<u16>,
    pub message: Option<Arc<str>>,
    pub retry_after_seconds: Option<u32>,
}

// === impl RuleLimit ===

impl RuleLimit {
    /// Counted as it is written.
    pub fn new(name: impl Into<Arc<str>>, limit: Limit) -> Self {
        Self { name: name.into(), limit, written: None }
    }
}

// === impl Action ===

impl Action {
    /// The contract's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Throttle { .. } => "throttle",
            Self::LogOnly => "log_only",
            Self::Allow => "allow",
            Self::Block => "block",
        }
    }

    /// What a rule that counts nothing says to a request.
    pub fn said(self) -> Option<&'static str> {
        match self {
            Self::Block => Some("lets no such request pass"),
            Self::Allow => Some("lets the request pass, and rules behind it are not asked"),
            Self::Reject | Self::Throttle { .. } | Self::LogOnly => None,
        }
    }

    pub fn ends_walk(self) -> bool {
        matches!(self, Self::Allow | Self::Block)
    }
}
