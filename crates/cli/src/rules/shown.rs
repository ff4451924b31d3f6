//! Rules and what changed in them, for people and for scripts.

use serde_json::{Map, Value};
use tollkeeper_client::wire::{ApplyRulesReply, FieldDiff, RuleDiff, RuleReply};

use crate::failure::Failure;
use crate::moment;
use crate::output::{self, printable};

/// How many of what, and the version that is in force.
pub(super) fn applied(done: &ApplyRulesReply) -> Result<(), Failure> {
    // Said before anything was sent, as far as this program knows of it.
    output::record(&[
        ("version", done.version.to_string()),
        ("created", done.created.to_string()),
        ("updated", done.updated.to_string()),
        ("deleted", done.deleted.to_string()),
        ("unchanged", done.unchanged.to_string()),
    ])
}

/// One line for each rule that is made or deleted, and one for each field that changes.
pub(super) fn diff(done: &ApplyRulesReply) -> Result<(), Failure> {
    let rows: Vec<_> = done.diff.iter().flat_map(lines).collect();
    if rows.is_empty() && output::is_terminal() {
        return output::line("Nothing would change.");
    }
    output::records(&rows)
}

fn lines(change: &RuleDiff) -> Vec<Vec<(&'static str, String)>> {
    let row = |field: Option<&FieldDiff>| {
        let side = |value: Option<&Value>| value.map(word).unwrap_or_default();
        vec![
            ("change", change.change.to_string()),
            ("rule", printable(&change.rule)),
            ("field", field.map(|field| printable(&field.field)).unwrap_or_default()),
            ("before", side(field.and_then(|field| field.before.as_ref()))),
            ("after", side(field.and_then(|field| field.after.as_ref()))),
        ]
    };
    match change.fields.as_slice() {
        [] => vec![row(None)],
        fields => fields.iter().map(|field| row(Some(field))).collect(),
    }
}

/// One rule on one line.
pub(super) fn row(rule: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let field = |name: &str| rule.get(name).map(word).unwrap_or_default();
    vec![
        ("name", field("name")),
        ("priority", field("priority")),
        ("action", field("action")),
        ("scope", field("scope")),
        ("limits", rule.get("limits").map(limits).unwrap_or_default()),
        ("tiers", field("tiers")),
        ("endpoints", field("endpoints")),
        ("enabled", field("enabled")),
    ]
}

pub(super) fn rule(found: &RuleReply) -> Result<(), Failure> {
    let mut columns = vec![("rule_id", printable(&found.rule_id))];
    columns.extend(row(&found.rule));
    for (name, field) in [
        ("methods", "methods"),
        ("ip_ranges", "ipRanges"),
        ("projects", "projects"),
        ("algorithm", "algorithm"),
        ("burst", "burst"),
        ("refill_rate", "refillRate"),
        ("max_delay_ms", "maxDelayMs"),
        ("response", "response"),
        ("consistency", "consistency"),
        ("on_outage", "onOutage"),
    ] {
        columns.push((name, found.rule.get(field).map(word).unwrap_or_default()));
    }
    columns.extend([
        ("key_pattern", printable(&found.key_pattern)),
        ("version", found.version.to_string()),
        ("created_at", moment::shown(Some(found.created_at))),
        ("updated_at", moment::shown(found.updated_at)),
        ("created_by", printable(&found.created_by)),
    ]);
    output::details(&columns)
}

/// Texts as they are, lists with commas, everything else as JSON.
pub(super) fn word(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text),
        Value::Array(list) if list.iter().all(Value::is_string) => {
            let words: Vec<_> = list.iter().map(word).collect();
            words.join(",")
        }
        other => printable(&other.to_string()),
    }
}

/// `60/1m,1000/1d`
fn limits(list: &Value) -> String {
    let one = |limit: &Value| {
        let part = |name: &str| limit.get(name).map(word).unwrap_or_default();
        format!("{}/{}", part("limit"), part("window"))
    };
    let all: Vec<_> = list.as_array().into_iter().flatten().map(one).collect();
    all.join(",")
}
