//! Everything wrong with a set of rules: rule by rule, each with its rule's name, and no more than a person reads.

use serde_json::Value;
use tollkeeper_wire::FieldError;

/// As many as the description's own walk names; a reply stays small, and whoever made more mistakes mends these first.
const FAULTS_MAX: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Faults(Vec<FieldError>);

// === impl Faults ===

impl Faults {
    pub(super) fn of(found: Vec<FieldError>) -> Self {
        Self(found)
    }

    pub(super) fn add(
        &mut self,
        rule: usize,
        field: &str,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        // Beyond twice the bound nothing could come to the front by sorting that matters to a person.
        if self.0.len() < 2 * FAULTS_MAX {
            self.0.push(FieldError::new(format!("body.rules[{rule}]{field}"), message, fix));
        }
    }

    pub(super) fn first(&self) -> Option<&FieldError> {
        self.0.first()
    }

    /// In the order of the rules, each with its rule's name. `Ok` where there are none.
    pub(super) fn told(mut self, rules: &[Value]) -> Result<(), Vec<FieldError>> {
        self.0.sort_by_key(|fault| rule_of(&fault.location));
        self.0.truncate(FAULTS_MAX);
        for fault in &mut self.0 {
            let name = rule_of(&fault.location)
                .and_then(|at| rules.get(at)?.get("name")?.as_str())
                .map(|name| name.chars().take(128).collect::<String>());
            if let Some(name) = name {
                fault.message = format!("Rule {name:?}: {}", fault.message);
            }
        }
        if self.0.is_empty() { Ok(()) } else { Err(self.0) }
    }
}

/// `None`, which sorts first, for what is wrong with the whole.
fn rule_of(location: &str) -> Option<usize> {
    let (at, _) = location.strip_prefix("body.rules[")?.split_once(']')?;
    at.parse().ok()
}
