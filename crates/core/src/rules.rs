//! Rules: which requests they are about, whose counters they spend from, and what happens over the limit.
//! Compiled once when a tenant's rules change, walked on every request. Pure: nothing here reads or counts.

mod explain;
mod facts;
#[cfg(test)]
mod fixtures;
mod hash;
mod identifier;
mod index;
mod path;
mod pattern;
mod places;
#[cfg(test)]
mod properties;
mod rehearsal;
mod routes;
mod rule;
mod scope;
mod set;
mod throttle;

pub use explain::{Explained, Mismatch, Said, Unmet};
pub use facts::Facts;
pub use identifier::{identifier, identifier_of};
pub use path::RequestPath;
pub use pattern::{NotAPattern, PathPattern};
pub use rehearsal::{MET_LIMITS_MAX, MetLimit, Rehearsal, Rehearsed, TooManyLimits};
pub use rule::{Action, Rule, RuleLimit, RuleResponse, Written};
pub use scope::{RuleScope, ScopeList};
pub use set::{Matched, RuleSet};
pub use throttle::Throttle;
