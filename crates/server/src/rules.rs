//! Rules between people and the engine: a document is checked as a whole, everything wrong with it is told at once, and
//! what is right comes out in one spelling. The server, `tollkeeper rules lint` and every start read rules here.

mod canonical;
mod faults;
mod limits;
mod reading;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use tollkeeper_core::Rule;
use tollkeeper_wire::rules::RULES_MAX;
use tollkeeper_wire::{ApplyRulesRequest, Described, FieldError, RuleFile, Shape, document};

use faults::Faults;
use reading::Reading;

/// Rules without a fault.
#[derive(Debug, Default)]
pub struct Checked {
    pub rules: Vec<CheckedRule>,
    /// What is allowed and may not be what was meant.
    pub notes: Vec<String>,
}

#[derive(Debug)]
pub struct CheckedRule {
    pub rule: Rule,
    /// The same rule has the same text, however it was written.
    pub text: Map<String, Value>,
}

/// What `rules.apply` was asked for.
#[derive(Debug)]
pub(crate) struct Apply {
    pub(crate) checked: Checked,
    pub(crate) prune: bool,
    pub(crate) dry_run: bool,
}

/// A file of rules as one value, or everything that is wrong with it. Places are those of a body: `body.rules[3].limits`.
pub fn check_file(file: &Value) -> Result<Checked, Vec<FieldError>> {
    check(file, &RuleFile::SHAPE)
}

pub(crate) fn read_apply(body: &[u8]) -> Result<Apply, Vec<FieldError>> {
    let body = document(body)?;
    let checked = check(&body, &ApplyRulesRequest::SHAPE)?;
    let flag = |name: &str| body.get(name).and_then(Value::as_bool).unwrap_or(false);
    Ok(Apply { checked, prune: flag("prune"), dry_run: flag("dryRun") })
}

/// A stored set, or why it cannot be used.
pub(crate) fn read_stored(list: &str) -> Result<Vec<Arc<Rule>>, String> {
    let rules: Vec<Map<String, Value>> =
        serde_json::from_str(list).map_err(|error| error.to_string())?;
    let mut faults = Faults::default();
    let read: Vec<_> = rules
        .iter()
        .enumerate()
        .filter_map(|(at, rule)| Reading::new(rule, at, &mut faults).rule())
        .map(|checked| Arc::new(checked.rule))
        .collect();
    match faults.first() {
        Some(fault) => Err(format!("{}: {}", fault.location, fault.message)),
        None if read.len() < rules.len() => Err("a rule is not what was stored".to_owned()),
        None => Ok(read),
    }
}

fn check(document: &Value, shape: &Shape) -> Result<Checked, Vec<FieldError>> {
    let mut faults = Faults::of(shape.faults(document));
    let rules = document.get("rules").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut checked = Checked::default();
    let mut names = HashMap::new();
    // More than there may be are refused for their number.
    for (at, rule) in rules.iter().take(RULES_MAX).enumerate() {
        let Some(rule) = rule.as_object() else { continue };
        if let Some(name) = rule.get("name").and_then(Value::as_str)
            && let Some(first) = names.insert(name, at)
        {
            let message = format!("Another rule has this name: the one at rules[{first}].");
            faults.add(at, ".name", message, "Give every rule its own name.");
        }
        let mut reading = Reading::new(rule, at, &mut faults);
        let read = reading.rule();
        checked.notes.extend(reading.into_notes());
        checked.rules.extend(read);
    }
    let complete = checked.rules.len() == rules.len();
    faults.told(rules)?;
    if !complete {
        // The description let something pass that the engine does not take; nothing half is applied.
        let fix = "Report this with the rule, and leave it out meanwhile.";
        return Err(vec![FieldError::new("body.rules", "A rule cannot be read.", fix)]);
    }
    Ok(checked)
}

#[cfg(test)]
mod tests;
