//! What a change of rules changed, told rule by rule and field by field.

use serde_json::{Map, Value};
use tollkeeper_store::{RuleChange, RulesApplied};
use tollkeeper_wire as wire;

/// Beyond so many updated rules only their names are told: an answer stays below a few megabytes.
const DETAILED_MAX: usize = 1000;
/// Notes beyond these say the same of other rules.
const NOTES_MAX: usize = 100;

pub fn reply(applied: RulesApplied, mut notes: Vec<String>) -> wire::ApplyRulesReply {
    let mut reply = wire::ApplyRulesReply {
        version: applied.version,
        created: 0,
        updated: 0,
        deleted: 0,
        unchanged: applied.unchanged as u64,
        diff: Vec::with_capacity(applied.changes.len()),
        notes: Vec::new(),
    };
    for change in applied.changes {
        let (turn, count) = match (&change.before, &change.after) {
            (None, _) => (wire::RuleTurn::Created, &mut reply.created),
            (_, None) => (wire::RuleTurn::Deleted, &mut reply.deleted),
            _ => (wire::RuleTurn::Updated, &mut reply.updated),
        };
        *count += 1;
        let detailed = turn == wire::RuleTurn::Updated && reply.updated <= DETAILED_MAX as u64;
        let fields = if detailed { fields(&change) } else { Vec::new() };
        reply.diff.push(wire::RuleDiff { rule: change.name, change: turn, fields });
    }
    let more = notes.len().saturating_sub(NOTES_MAX);
    notes.truncate(NOTES_MAX);
    if more > 0 {
        notes.push(format!("And {more} notes like these."));
    }
    reply.notes = notes;
    reply
}

/// By name.
fn fields(change: &RuleChange) -> Vec<wire::FieldDiff> {
    let read = |text: Option<&str>| -> Map<String, Value> {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    };
    let mut before = read(change.before.as_deref());
    let after = read(change.after.as_ref().map(|rule| rule.body.as_str()));
    let mut fields = Vec::new();
    for (field, value) in after {
        let old = before.remove(&field);
        if old.as_ref() != Some(&value) {
            fields.push(wire::FieldDiff { field, before: old, after: Some(value) });
        }
    }
    let gone = before.into_iter().map(|(field, value)| wire::FieldDiff {
        field,
        before: Some(value),
        after: None,
    });
    fields.extend(gone);
    fields.sort_by(|a, b| a.field.cmp(&b.field));
    fields
}
