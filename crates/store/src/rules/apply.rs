//! Changes of a tenant's rules: all or nothing, one at a time, each one a new version with its audit row and its news.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::audited::{Told, audited};
use super::{RULES_BYTES_MAX, RULES_MAX};
use crate::bind::{binds, signed, unsigned};
use crate::change::{By, Change, Written};
use crate::each::{listed, places};
use crate::outbox::Changed;
use crate::{Bind, Each, Fault, Store, StoreError, Thing, ids};

/// A year of weekly changes and then some; older ones are in the audit by their counts.
const VERSIONS_MAX: u64 = 100;

/// Rows in one statement, nine values each. SQLite compares the names of all values of a statement with each other, so
/// five times as many rows would take it three times as long.
const BATCH: usize = 200;

/// Ten thousand rules take longer than any other change, and whoever changes them too waits for that.
const PATIENCE: [&str; 2] =
    ["SET LOCAL lock_timeout = '5s'", "SET LOCAL statement_timeout = '10s'"];

/// A rule to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleText {
    pub name: String,
    /// A JSON object in its canonical spelling: the same rule has the same text.
    pub body: String,
    pub priority: i64,
    pub enabled: bool,
}

/// What happens to rules that a new set does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlisted {
    Keep,
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    Real,
    /// Finds out what would change, and changes nothing.
    Dry,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesApplied {
    /// In force now; the old one where nothing changed.
    pub version: u64,
    /// By name.
    pub changes: Vec<RuleChange>,
    /// Rules of the new set that were there already, word for word.
    pub unchanged: usize,
}

/// Made where there was none before, deleted where there is none after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleChange {
    pub name: String,
    pub before: Option<String>,
    pub after: Option<RuleText>,
}

/// A tenant's rules while a change holds them.
struct Book {
    version: u64,
    /// Text by name.
    rules: BTreeMap<String, String>,
}

// === impl Store ===

impl Store {
    /// Makes the tenant's rules what is given. Nothing changed is no new version.
    pub async fn apply_rules(
        &self,
        by: By<'_>,
        rules: Vec<RuleText>,
        unlisted: Unlisted,
        run: Run,
    ) -> Result<Written<RulesApplied>, StoreError> {
        let mut change = self.change(by.now).await?;
        let book = lock_book(&mut change, by.tenant_id).await?;
        let (changes, unchanged) = book.differences(rules, unlisted);
        let rules = book.changed(&changes)?;
        if run == Run::Dry {
            let value = RulesApplied { version: book.version, changes, unchanged };
            return Ok(Written { value, revision: 0 });
        }
        book.turn(change, by, "rules.apply", rules, changes, unchanged).await
    }

    /// Answers the version without it.
    pub async fn delete_rule(&self, by: By<'_>, name: &str) -> Result<Written<u64>, StoreError> {
        let mut change = self.change(by.now).await?;
        let book = lock_book(&mut change, by.tenant_id).await?;
        let before = book.rules.get(name).ok_or_else(|| StoreError::no(Thing::Rule, name))?;
        let changes =
            vec![RuleChange { name: name.to_owned(), before: Some(before.clone()), after: None }];
        let rules = book.changed(&changes)?;
        let done = book.turn(change, by, "rules.delete", rules, changes, 0).await?;
        Ok(done.map(|applied| applied.version))
    }

    /// Makes the rules what they were at that version, as a version of its own.
    pub async fn roll_rules_back(
        &self,
        by: By<'_>,
        version: u64,
    ) -> Result<Written<RulesApplied>, StoreError> {
        const FIND: &str = "SELECT rules FROM rule_versions WHERE tenant_id = $1 AND version = $2";
        let mut change = self.change(by.now).await?;
        let book = lock_book(&mut change, by.tenant_id).await?;
        let binds = binds![by.tenant_id, signed(version)];
        let found: Option<(String,)> = change.sql().optional(FIND, binds).await?;
        let missing = || StoreError::no(Thing::RuleVersion, &version.to_string());
        let (text,) = found.ok_or_else(missing)?;
        let then = texts_of(&text).ok_or(Fault::Unreadable("set of rules"))?;
        let (changes, unchanged) = book.differences(then, Unlisted::Delete);
        let rules = book.changed(&changes)?;
        book.turn(change, by, "rules.rollback", rules, changes, unchanged).await
    }
}

/// Waits for whoever changes the same rules; from here to the end of the change nobody else does.
async fn lock_book(change: &mut Change<'_>, tenant_id: &str) -> Result<Book, StoreError> {
    const LOCK: &str = "INSERT INTO rule_books (tenant_id, version) VALUES ($1, 0)
        ON CONFLICT (tenant_id) DO UPDATE SET version = rule_books.version RETURNING version";
    const ALL: &str = "SELECT name, body FROM rules WHERE tenant_id = $1";
    if matches!(change.sql(), Each::Pg(_)) {
        for setting in PATIENCE {
            change.sql().run(setting, &[]).await?;
        }
    }
    let (version,): (i64,) = change.sql().one(LOCK, binds![tenant_id]).await?;
    let rules: Vec<(String, String)> = change.sql().all(ALL, binds![tenant_id]).await?;
    Ok(Book { version: unsigned(version), rules: rules.into_iter().collect() })
}

/// The rules of a stored version; `None` where something else wrote it.
fn texts_of(list: &str) -> Option<Vec<RuleText>> {
    let rules: Vec<Value> = serde_json::from_str(list).ok()?;
    let text = |rule: Value| {
        Some(RuleText {
            name: rule.get("name")?.as_str()?.to_owned(),
            priority: rule.get("priority")?.as_i64()?,
            enabled: rule.get("enabled")?.as_bool()?,
            body: rule.to_string(),
        })
    };
    rules.into_iter().map(text).collect()
}

// === impl Book ===

impl Book {
    /// What has to change, by name, and how many of the given rules need not.
    fn differences(&self, given: Vec<RuleText>, unlisted: Unlisted) -> (Vec<RuleChange>, usize) {
        let mut changes = Vec::new();
        if unlisted == Unlisted::Delete {
            let named: HashSet<&str> = given.iter().map(|rule| rule.name.as_str()).collect();
            let gone = self.rules.iter().filter(|(name, _)| !named.contains(name.as_str()));
            changes.extend(gone.map(|(name, body)| RuleChange {
                name: name.clone(),
                before: Some(body.clone()),
                after: None,
            }));
        }
        let mut unchanged = 0;
        for rule in given {
            match self.rules.get(&rule.name) {
                Some(body) if *body == rule.body => unchanged += 1,
                before => changes.push(RuleChange {
                    name: rule.name.clone(),
                    before: before.cloned(),
                    after: Some(rule),
                }),
            }
        }
        changes.sort_by(|a, b| a.name.cmp(&b.name));
        (changes, unchanged)
    }

    /// The whole set after these changes, unless it would be too much.
    fn changed(&self, changes: &[RuleChange]) -> Result<BTreeMap<String, String>, StoreError> {
        let mut rules = self.rules.clone();
        for change in changes {
            match &change.after {
                Some(rule) => drop(rules.insert(rule.name.clone(), rule.body.clone())),
                None => drop(rules.remove(&change.name)),
            }
        }
        let bytes = rules.values().map(|body| body.len() + 1).sum();
        if rules.len() > RULES_MAX {
            return Err(StoreError::TooManyRules { count: rules.len(), max: RULES_MAX });
        }
        if bytes > RULES_BYTES_MAX {
            return Err(StoreError::RulesTooLarge { bytes, max: RULES_BYTES_MAX });
        }
        Ok(rules)
    }

    /// Writes the next version, if there is anything to write.
    async fn turn(
        self,
        mut change: Change<'_>,
        by: By<'_>,
        action: &str,
        rules: BTreeMap<String, String>,
        changes: Vec<RuleChange>,
        unchanged: usize,
    ) -> Result<Written<RulesApplied>, StoreError> {
        if changes.is_empty() {
            let version = self.version;
            return change.commit(RulesApplied { version, changes, unchanged }).await;
        }
        let version = self.version + 1;
        delete_rules(&mut change, by.tenant_id, &changes).await?;
        put_rules(&mut change, by, version, &changes).await?;
        let before = Told::of(self.version, &self.rules);
        let after = Told::of(version, &rules);
        keep_version(&mut change, by, version, rules).await?;
        let (before, after) = audited(&before, &after, &changes);
        change.audit(by, action, "rules", Some(before), Some(after)).await?;
        change.announce(by.tenant_id, Changed::Rules);
        change.commit(RulesApplied { version, changes, unchanged }).await
    }
}

async fn delete_rules(
    change: &mut Change<'_>,
    tenant_id: &str,
    changes: &[RuleChange],
) -> Result<(), StoreError> {
    let gone: Vec<_> = changes.iter().filter(|one| one.after.is_none()).collect();
    for chunk in gone.chunks(BATCH) {
        let mut binds = vec![Bind::from(tenant_id)];
        binds.extend(chunk.iter().map(|one| Bind::from(&one.name)));
        let delete = listed(
            "DELETE FROM rules WHERE tenant_id = $1 AND name IN ({})",
            &places(1, chunk.len()),
        );
        change.sql().run(delete, &binds).await?;
    }
    Ok(())
}

/// A rule that stays keeps its id, its age and its maker.
async fn put_rules(
    change: &mut Change<'_>,
    by: By<'_>,
    version: u64,
    changes: &[RuleChange],
) -> Result<(), StoreError> {
    const PUT: &str =
        "INSERT INTO rules (tenant_id, rule_id, name, body, priority, enabled, version,
            created_at, created_by)
        VALUES {} ON CONFLICT (tenant_id, name) DO UPDATE SET body = excluded.body,
            priority = excluded.priority, enabled = excluded.enabled, version = excluded.version,
            updated_at = excluded.created_at";
    let put: Vec<_> = changes.iter().filter_map(|one| one.after.as_ref()).collect();
    for chunk in put.chunks(BATCH) {
        let ids = chunk.iter().map(|_| ids::fresh(ids::RULE)).collect::<Result<Vec<_>, _>>()?;
        let mut binds: Vec<Bind<'_>> = Vec::with_capacity(chunk.len() * 9);
        for (rule, id) in chunk.iter().zip(&ids) {
            binds.extend_from_slice(binds![
                by.tenant_id,
                id,
                &rule.name,
                &rule.body,
                rule.priority,
                rule.enabled,
                signed(version),
                by.now,
                by.root_key_id,
            ]);
        }
        change.sql().run_rows(PUT, 9, &binds).await?;
    }
    Ok(())
}

async fn keep_version(
    change: &mut Change<'_>,
    by: By<'_>,
    version: u64,
    rules: BTreeMap<String, String>,
) -> Result<(), StoreError> {
    const KEEP: &str = "INSERT INTO rule_versions (tenant_id, version, at, created_by, rules)
        VALUES ($1, $2, $3, $4, $5)";
    const TURN: &str = "UPDATE rule_books SET version = $2 WHERE tenant_id = $1";
    const FORGET: &str = "DELETE FROM rule_versions WHERE tenant_id = $1 AND version <= $2";
    let bodies: Vec<String> = rules.into_values().collect();
    let text = format!("[{}]", bodies.join(","));
    let number = signed(version);
    let kept = binds![by.tenant_id, number, by.now, by.root_key_id, &text];
    change.sql().run(KEEP, kept).await?;
    change.sql().run(TURN, binds![by.tenant_id, number]).await?;
    let oldest = signed(version.saturating_sub(VERSIONS_MAX));
    change.sql().run(FORGET, binds![by.tenant_id, oldest]).await?;
    Ok(())
}
