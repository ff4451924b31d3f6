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
mod routes;
mod rule;
mod scope;
mod set;
mod throttle;

pub use explain::{Explained, Mismatch, Unmet};
pub use facts::Facts;
pub use identifier::{identifier, identifier_of};
pub use path::RequestPath;
pub use pattern::{NotAPattern, PathPattern};
pub use rule::{Action, Rule, RuleLimit, RuleResponse};
pub use scope::{RuleScope, ScopeList};
pub use set::{Matched, RuleSet};
pub use throttle::Throttle;
