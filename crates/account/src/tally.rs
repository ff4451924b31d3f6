//! Counts of what one thread answered. Every thread writes its own page; a reader adds the pages up.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use tollkeeper_core::Verdict;

use crate::histogram::{Histogram, HistogramReading};

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Limit,
    MultiLimit,
    Peek,
    Verify,
    /// `gate.check`
    Gate,
    /// A proxy's question.
    Check,
    /// Whether a tenant may call the API once more in its minute.
    Call,
}

/// What was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Valid,
    RateLimited,
    NotFound,
    Forbidden,
    InsufficientPermissions,
    UsageExceeded,
    Disabled,
    Revoked,
    Expired,
    Unavailable,
    Blocked,
}

/// Statuses run from 100 to 599.
const STATUSES: usize = 500;

#[derive(Debug)]
pub struct Tally {
    checks: [[AtomicU64; Code::ALL.len()]; Kind::ALL.len()],
    /// From status 100 on; the first one also takes what is no status.
    responses: [AtomicU64; STATUSES],
    cache_reads: [[AtomicU64; 3]; 4],
    /// Decisions made without the shared counters: admitted, and refused.
    fallbacks: [AtomicU64; 2],
    pub decisions: Histogram,
}

/// The sum of all pages at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub checks: [[u64; Code::ALL.len()]; Kind::ALL.len()],
    /// How often each status was answered, for those that were.
    pub responses: BTreeMap<u16, u64>,
    /// By cache (root key, namespace, key, identity) and freshness (fresh, stale, miss).
    pub cache_reads: [[u64; 3]; 4],
    /// Decisions made without the shared counters: admitted, and refused.
    pub fallbacks: [u64; 2],
    pub decisions: HistogramReading,
}

// === impl Kind, Code ===

impl Kind {
    pub const ALL: [Self; 7] = [
        Self::Limit,
        Self::MultiLimit,
        Self::Peek,
        Self::Verify,
        Self::Gate,
        Self::Check,
        Self::Call,
    ];

    pub fn label(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::MultiLimit => "multi_limit",
            Self::Peek => "peek",
            Self::Verify => "verify",
            Self::Gate => "gate",
            Self::Check => "check",
            Self::Call => "call",
        }
    }
}

impl Code {
    pub const ALL: [Self; 11] = [
        Self::Valid,
        Self::RateLimited,
        Self::NotFound,
        Self::Forbidden,
        Self::InsufficientPermissions,
        Self::UsageExceeded,
        Self::Disabled,
        Self::Revoked,
        Self::Expired,
        Self::Unavailable,
        Self::Blocked,
    ];

    pub fn label(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::RateLimited => "rate_limited",
            Self::NotFound => "not_found",
            Self::Forbidden => "forbidden",
            Self::InsufficientPermissions => "insufficient_permissions",
            Self::UsageExceeded => "usage_exceeded",
            Self::Disabled => "disabled",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::Unavailable => "unavailable",
            Self::Blocked => "blocked",
        }
    }
}

impl From<Verdict> for Code {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Valid => Self::Valid,
            Verdict::NotFound => Self::NotFound,
            Verdict::Forbidden | Verdict::Unsigned(_) => Self::Forbidden,
            Verdict::InsufficientPermissions => Self::InsufficientPermissions,
            Verdict::UsageExceeded => Self::UsageExceeded,
            Verdict::RateLimited => Self::RateLimited,
            Verdict::Disabled => Self::Disabled,
            Verdict::Revoked { .. } => Self::Revoked,
            Verdict::Expired => Self::Expired,
            Verdict::Unavailable => Self::Unavailable,
            Verdict::Blocked => Self::Blocked,
        }
    }
}

// === impl Tally ===

impl Default for Tally {
    fn default() -> Self {
        Self {
            checks: Default::default(),
            responses: [const { AtomicU64::new(0) }; STATUSES],
            cache_reads: Default::default(),
            fallbacks: Default::default(),
            decisions: Histogram::default(),
        }
    }
}

impl Tally {
    pub(crate) fn check(&self, kind: Kind, code: Code) {
        self.checks[kind as usize][code as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn fallback(&self, admitted: bool) {
        self.fallbacks[usize::from(!admitted)].fetch_add(1, Ordering::Relaxed);
    }

    pub fn response(&self, status: u16) {
        let at = usize::from(status).checked_sub(100).filter(|at| *at < STATUSES).unwrap_or(0);
        self.responses[at].fetch_add(1, Ordering::Relaxed);
    }

    pub fn cache_read(&self, cache: usize, freshness: usize) {
        if let Some(count) = self.cache_reads.get(cache).and_then(|row| row.get(freshness)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn add_to(&self, reading: &mut Reading) {
        for (sum, count) in reading.checks.iter_mut().flatten().zip(self.checks.iter().flatten()) {
            *sum += count.load(Ordering::Relaxed);
        }
        for (status, count) in (100..).zip(&self.responses) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                *reading.responses.entry(status).or_default() += count;
            }
        }
        for (sum, count) in
            reading.cache_reads.iter_mut().flatten().zip(self.cache_reads.iter().flatten())
        {
            *sum += count.load(Ordering::Relaxed);
        }
        for (sum, count) in reading.fallbacks.iter_mut().zip(&self.fallbacks) {
            *sum += count.load(Ordering::Relaxed);
        }
        self.decisions.add_to(&mut reading.decisions);
    }
}
