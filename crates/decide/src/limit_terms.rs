//! What is said of a limit wherever it counts: made ready once, and shared by all requests that meet it.

use std::sync::Arc;

use tollkeeper_core::{Rule, Sharing};

use crate::counts::LimitCount;
use crate::lease::Scope;

#[derive(Debug)]
pub struct LimitTerms {
    /// Empty where the limit is not stored by itself.
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub auto_apply: bool,
    pub source: Source,
    pub count: Option<Arc<LimitCount>>,
    pub(crate) sharing: Sharing,
    pub(crate) scope: Arc<Scope>,
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
    /// That a signature counts once; taken out of every answer.
    Signature,
    Rule(OfRule),
}

#[derive(Debug)]
pub struct OfRule {
    pub rule: Arc<Rule>,
    /// Its scopes as one text.
    pub scope: Arc<str>,
    /// Only watches: it never refuses.
    pub shadow: bool,
    /// Each decision once, where the rule has several limits; the count of a single one says the same.
    pub count: Option<Arc<LimitCount>>,
}
