//! What the audit says of a change of rules: what each was before and is since, as far as there is room, and a hash of
//! the whole set on either side, so that the chain covers all of it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::apply::RuleChange;

/// Names in a row, of each kind of change.
const NAMES_MAX: usize = 100;

/// Of what rules say, on either side of a row: beside all names it stays below the 64 KiB that an answer takes of an
/// object. A set itself is kept as a version.
const RULES_BYTES_MAX: usize = 24 << 10;

/// After so many that did not fit no other is tried: of a large set each would be read only to be left out.
const MISFITS_MAX: usize = 100;

/// A version of a tenant's rules, to be told of.
pub(super) struct Told {
    version: u64,
    sha256: String,
}

// === impl Told ===

impl Told {
    /// The hash is that of the stored version's text: the rules in the order of their names as one JSON list.
    pub(super) fn of(version: u64, rules: &BTreeMap<String, String>) -> Self {
        let mut hash = Sha256::new();
        hash.update("[");
        for (place, body) in rules.values().enumerate() {
            hash.update(if place == 0 { "" } else { "," });
            hash.update(body);
        }
        hash.update("]");
        Self { version, sha256: hex(&hash.finalize()) }
    }
}

fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Both sides of the row.
pub(super) fn audited(before: &Told, after: &Told, changes: &[RuleChange]) -> (Value, Value) {
    let (mut was, mut is, mut left_out) = (Map::new(), Map::new(), 0_usize);
    let (mut was_bytes, mut is_bytes) = (0, 0);
    for change in changes {
        if left_out >= MISFITS_MAX {
            left_out += 1;
            continue;
        }
        let (old, new) = sides(change);
        let bytes = |side: &Option<Value>| {
            side.as_ref().map_or(0, |side| change.name.len() + side.to_string().len() + 4)
        };
        let (old_bytes, new_bytes) = (was_bytes + bytes(&old), is_bytes + bytes(&new));
        if old_bytes.max(new_bytes) > RULES_BYTES_MAX {
            left_out += 1;
            continue;
        }
        (was_bytes, is_bytes) = (old_bytes, new_bytes);
        was.extend(old.map(|old| (change.name.clone(), old)));
        is.extend(new.map(|new| (change.name.clone(), new)));
    }
    let was = json!({ "version": before.version, "sha256": before.sha256, "rules": was });
    let mut is = json!({
        "version": after.version,
        "sha256": after.sha256,
        "created": names(changes, |one| one.before.is_none()),
        "updated": names(changes, |one| one.before.is_some() && one.after.is_some()),
        "deleted": names(changes, |one| one.after.is_none()),
        "rules": is,
    });
    if left_out > 0 {
        is["leftOut"] = json!(left_out);
    }
    (was, is)
}

/// Of a rule that was changed the fields that differ, of any other all of them.
fn sides(change: &RuleChange) -> (Option<Value>, Option<Value>) {
    let read = |body: &str| serde_json::from_str(body).unwrap_or_else(|_| Value::from(body));
    let before = change.before.as_deref().map(read);
    let after = change.after.as_ref().map(|rule| read(&rule.body));
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let other = |these: &Map<String, Value>, those: &Map<String, Value>| {
                let other = these.iter().filter(|(name, value)| those.get(*name) != Some(value));
                other.map(|(name, value)| (name.clone(), value.clone())).collect::<Value>()
            };
            (Some(other(&before, &after)), Some(other(&after, &before)))
        }
        whole => whole,
    }
}

fn names(changes: &[RuleChange], of: fn(&RuleChange) -> bool) -> Value {
    let mut chosen: Vec<_> = changes.iter().filter(|one| of(one)).map(|one| &one.name).collect();
    let count = chosen.len();
    chosen.truncate(NAMES_MAX);
    json!({ "count": count, "names": chosen })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::apply::RuleText;

    fn text(name: &str, body: &Value) -> RuleText {
        RuleText { name: name.to_owned(), body: body.to_string(), priority: 100, enabled: true }
    }

    fn told(version: u64, bodies: &[(&str, &str)]) -> Told {
        let rules = bodies.iter().map(|(name, body)| ((*name).to_owned(), (*body).to_owned()));
        Told::of(version, &rules.collect())
    }

    #[test]
    fn a_changed_rule_is_told_by_the_fields_that_differ_and_any_other_whole() {
        let changes = [
            RuleChange {
                name: "gone".into(),
                before: Some(json!({"name": "gone", "limit": 1}).to_string()),
                after: None,
            },
            RuleChange {
                name: "kept".into(),
                before: Some(json!({"name": "kept", "limit": 1, "burst": 5}).to_string()),
                after: Some(text("kept", &json!({"name": "kept", "limit": 2, "tiers": ["a"]}))),
            },
            RuleChange {
                name: "new".into(),
                before: None,
                after: Some(text("new", &json!({"name": "new", "limit": 3}))),
            },
        ];
        let (was, is) = audited(&told(1, &[]), &told(2, &[("a", "{}")]), &changes);
        assert_eq!(
            was["rules"],
            json!({"gone": {"name": "gone", "limit": 1}, "kept": {"limit": 1, "burst": 5}})
        );
        assert_eq!(
            is["rules"],
            json!({"new": {"name": "new", "limit": 3}, "kept": {"limit": 2, "tiers": ["a"]}})
        );
        assert_eq!((&was["version"], &is["version"]), (&json!(1), &json!(2)));
        assert_eq!(is["updated"], json!({"count": 1, "names": ["kept"]}));
        assert!(is.get("leftOut").is_none());
    }

    #[test]
    fn a_row_stays_small_and_says_how_many_rules_it_leaves_out() {
        let long = "x".repeat(1_000);
        let changes: Vec<_> = (0..5_000)
            .map(|number| {
                let name = format!("{number:0>128}");
                let body = json!({"name": name, "message": long});
                RuleChange { before: None, after: Some(text(&name, &body)), name }
            })
            .collect();
        let (was, is) = audited(&told(1, &[]), &told(2, &[]), &changes);
        assert!(was.to_string().len() + is.to_string().len() < 64 << 10);
        let told = is["rules"].as_object().map_or(0, Map::len);
        assert!(told >= 15, "{told}");
        assert_eq!(is["leftOut"], 5_000 - told);
        assert_eq!(is["created"]["count"], 5_000);
    }

    #[test]
    fn the_hash_is_that_of_the_stored_list() {
        let hash = |text: &str| hex(&Sha256::digest(text));
        assert_eq!(told(1, &[]).sha256, hash("[]"));
        assert_eq!(told(1, &[("b", "{2}"), ("a", "{1}")]).sha256, hash("[{1},{2}]"));
    }
}
