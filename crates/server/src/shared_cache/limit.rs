//! Limits as they are written before they are sealed, whoever they belong to.

use serde::{Deserialize, Serialize};
use tollkeeper_core::{
    Algorithm, Consistency, Limit, OnOutage, Quota, Sharing, StoredLimit, Width, Window,
};
use tollkeeper_store::LimitTerms;

#[derive(Serialize, Deserialize)]
pub(super) struct CachedLimit {
    id: Box<str>,
    name: Box<str>,
    quota: u64,
    algorithm: CachedAlgorithm,
    auto_apply: bool,
    consistency: Option<String>,
    on_outage: Option<String>,
}

/// Widths in milliseconds.
#[derive(Serialize, Deserialize)]
enum CachedAlgorithm {
    Fixed(u64),
    Day,
    Month,
    Sliding(u64),
    Log(u64),
    Bucket { width: u64, capacity: u64 },
}

// === impl CachedLimit ===

impl From<&StoredLimit> for CachedLimit {
    fn from(stored: &StoredLimit) -> Self {
        let StoredLimit { id, name, limit, auto_apply, sharing } = stored;
        let Sharing { consistency, on_outage } = sharing;
        let consistency = consistency.map(|word| match word {
            Consistency::Exact => "exact",
            Consistency::Fast => "fast",
            Consistency::Local => "local",
        });
        let on_outage = on_outage.map(|word| match word {
            OnOutage::Share => "share",
            OnOutage::Allow => "allow",
            OnOutage::Deny => "deny",
        });
        Self {
            id: (&**id).into(),
            name: (&**name).into(),
            quota: limit.quota.get(),
            algorithm: limit.algorithm.into(),
            auto_apply: *auto_apply,
            consistency: consistency.map(Into::into),
            on_outage: on_outage.map(Into::into),
        }
    }
}

impl From<&LimitTerms> for CachedLimit {
    fn from(terms: &LimitTerms) -> Self {
        let LimitTerms { name, limit, auto_apply, consistency, on_outage } = terms;
        Self {
            id: "".into(),
            name: name.as_str().into(),
            quota: limit.quota.get(),
            algorithm: limit.algorithm.into(),
            auto_apply: *auto_apply,
            consistency: consistency.clone(),
            on_outage: on_outage.clone(),
        }
    }
}

impl CachedLimit {
    pub(super) fn read(self) -> Option<StoredLimit> {
        let limit = self.algorithm.limit(self.quota)?;
        let sharing = Sharing::from_words(self.consistency.as_deref(), self.on_outage.as_deref());
        Some(StoredLimit {
            id: self.id.into(),
            name: self.name.into(),
            limit,
            auto_apply: self.auto_apply,
            sharing,
        })
    }

    pub(super) fn read_terms(self) -> Option<LimitTerms> {
        Some(LimitTerms {
            name: self.name.into(),
            limit: self.algorithm.limit(self.quota)?,
            auto_apply: self.auto_apply,
            consistency: self.consistency,
            on_outage: self.on_outage,
        })
    }
}

// === impl CachedAlgorithm ===

impl From<Algorithm> for CachedAlgorithm {
    fn from(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::FixedWindow(Window::Aligned(width)) => Self::Fixed(width.millis()),
            Algorithm::FixedWindow(Window::Day) => Self::Day,
            Algorithm::FixedWindow(Window::Month) => Self::Month,
            Algorithm::SlidingWindow(width) => Self::Sliding(width.millis()),
            Algorithm::SlidingLog(width) => Self::Log(width.millis()),
            Algorithm::TokenBucket { width, capacity } => {
                Self::Bucket { width: width.millis(), capacity: capacity.get() }
            }
        }
    }
}

impl CachedAlgorithm {
    fn limit(self, quota: u64) -> Option<Limit> {
        let quota = Quota::new(quota)?;
        match self {
            Self::Fixed(width) => {
                Some(Limit::fixed_window(quota, Window::Aligned(Width::from_millis(width)?)))
            }
            Self::Day => Some(Limit::fixed_window(quota, Window::Day)),
            Self::Month => Some(Limit::fixed_window(quota, Window::Month)),
            Self::Sliding(width) => Some(Limit::sliding_window(quota, Width::from_millis(width)?)),
            Self::Log(width) => Limit::sliding_log(quota, Width::from_millis(width)?),
            Self::Bucket { width, capacity } => {
                let (width, burst) = (Width::from_millis(width)?, Quota::new(capacity)?);
                Some(Limit::token_bucket(quota, width, Some(burst)))
            }
        }
    }
}
