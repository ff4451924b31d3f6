//! One decision as the audit keeps it: who asked for what, what was answered, and why.
//! It never holds the text of a key.

use std::borrow::Cow;
use std::sync::Arc;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    pub at: Millis,
    pub tenant_id: Arc<str>,
    /// With tenant and moment it tells rows apart, so that one written twice counts once.
    pub request_id: Box<str>,
    pub decision: Decision,
    pub code: Cow<'static, str>,
    /// What a proxy sends its client for this code.
    pub status: u16,
    pub key_id: Option<Arc<str>>,
    pub external_id: Option<Arc<str>>,
    pub ip: Option<Box<str>>,
    pub method: Option<Box<str>>,
    /// The pattern that the path matched.
    pub endpoint: Option<Arc<str>>,
    /// Without its query, which may hold anything.
    pub path: Option<Box<str>>,
    pub rule: Option<Arc<str>>,
    /// The limit that decided, or else the one that leaves least.
    pub limit: Option<Box<str>>,
    /// What is used of that limit.
    pub count: Option<u64>,
    pub retry_after_ms: Option<u64>,
    pub node: Arc<str>,
    pub region: Option<Arc<str>>,
    pub latency_us: u64,
    pub degraded: bool,
}

/// How a request ended, in the three words that people search by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    Allowed,
    /// Not now: a limit, credits, or counters out of reach.
    Throttled,
    /// Not with this key, or not at all.
    Blocked,
}

// === impl Decision ===

impl Decision {
    pub const ALL: [Self; 3] = [Self::Allowed, Self::Throttled, Self::Blocked];

    pub fn word(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Throttled => "throttled",
            Self::Blocked => "blocked",
        }
    }

    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|decision| decision.word() == word)
    }
}
