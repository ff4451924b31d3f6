//! One rule as it is enforced: parsed and valid. Whoever reads rules from people makes these.

use std::sync::Arc;

use super::{PathPattern, ScopeList};
use crate::{Cidr, Limit, Sharing};

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
    pub limit: Limit,
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

    pub fn ends_walk(self) -> bool {
        matches!(self, Self::Allow | Self::Block)
    }
}
