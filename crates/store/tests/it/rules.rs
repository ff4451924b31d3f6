//! Rules: a set is changed as a whole or not at all, never by two at once, and every version can be brought back.

use std::sync::Arc;

use tollkeeper_core::Millis;
use tollkeeper_store::{
    By, Changed, RULES_MAX, RuleText, RulesApplied, Run, StoreError, Thing, Unlisted,
};

use crate::{Fresh, NOW};

on_both! {
    a_set_is_created_updated_and_pruned_and_every_change_is_a_version,
    a_set_that_changes_nothing_is_no_new_version,
    a_dry_run_says_what_would_change_and_changes_nothing,
    one_rule_too_many_changes_nothing,
    a_rule_that_stays_keeps_its_id_its_age_and_its_maker,
    a_version_is_brought_back_as_a_new_one,
    only_the_last_hundred_versions_are_kept,
    two_applies_at_once_never_interleave,
    every_change_of_rules_is_announced_and_audited,
    rules_are_listed_by_name_page_by_page_and_only_the_tenants_own,
    ten_thousand_rules_are_one_change,
}

fn rule(name: &str, more: &str) -> RuleText {
    let body = format!(r#"{{"enabled":true,"more":"{more}","name":"{name}","priority":100}}"#);
    RuleText { name: name.to_owned(), body, priority: 100, enabled: true }
}

async fn apply(fresh: &Fresh, rules: &[RuleText], unlisted: Unlisted) -> RulesApplied {
    let done = fresh.store.apply_rules(fresh.by(), rules.to_vec(), unlisted, Run::Real).await;
    done.unwrap().value
}

/// `+name` created, `~name` updated, `-name` deleted.
fn turns(applied: &RulesApplied) -> Vec<String> {
    let turn = |change: &tollkeeper_store::RuleChange| {
        let sign = match (&change.before, &change.after) {
            (None, _) => '+',
            (_, None) => '-',
            _ => '~',
        };
        format!("{sign}{}", change.name)
    };
    applied.changes.iter().map(turn).collect()
}

async fn names(fresh: &Fresh) -> Vec<String> {
    let page = fresh.store.list_rules(&fresh.tenant_id, None, 100).await.unwrap();
    page.rows.into_iter().map(|rule| rule.name).collect()
}

async fn a_set_is_created_updated_and_pruned_and_every_change_is_a_version(fresh: Fresh) {
    let (store, tenant) = (&fresh.store, fresh.tenant_id.as_str());
    assert!(store.rules_of(tenant).await.unwrap().is_none());
    assert!(store.rule_versions().await.unwrap().is_empty());
    let first = apply(&fresh, &[rule("b", "1"), rule("a", "1")], Unlisted::Keep).await;
    assert_eq!((first.version, turns(&first)), (1, vec!["+a".to_owned(), "+b".to_owned()]));
    let second = apply(&fresh, &[rule("b", "2"), rule("c", "1")], Unlisted::Keep).await;
    assert_eq!((second.version, turns(&second)), (2, vec!["~b".to_owned(), "+c".to_owned()]));
    let third = apply(&fresh, &[rule("c", "1")], Unlisted::Delete).await;
    assert_eq!((third.version, third.unchanged), (3, 1));
    assert_eq!(turns(&third), ["-a", "-b"]);
    let set = store.rules_of(tenant).await.unwrap().unwrap();
    assert_eq!((set.version, &*set.tenant.id), (3, tenant));
    assert_eq!(set.text, format!("[{}]", rule("c", "1").body));
    assert_eq!(store.rule_versions().await.unwrap(), [(tenant.to_owned(), 3)]);
    assert_eq!(store.delete_rule(fresh.by(), "c").await.unwrap().value, 4);
    assert_eq!(store.rules_of(tenant).await.unwrap().unwrap().text, "[]");
    let gone = store.delete_rule(fresh.by(), "c").await;
    assert!(matches!(gone, Err(StoreError::NotFound { what: Thing::Rule, .. })));
}

async fn a_set_that_changes_nothing_is_no_new_version(fresh: Fresh) {
    let set = [rule("a", "1"), rule("b", "1")];
    apply(&fresh, &set, Unlisted::Keep).await;
    let before = fresh.store.current_revision().await.unwrap();
    let again = apply(&fresh, &set, Unlisted::Delete).await;
    assert_eq!((again.version, again.unchanged, again.changes.len()), (1, 2, 0));
    assert_eq!(fresh.store.current_revision().await.unwrap(), before);
}

async fn a_dry_run_says_what_would_change_and_changes_nothing(fresh: Fresh) {
    apply(&fresh, &[rule("a", "1")], Unlisted::Keep).await;
    let revision = fresh.store.current_revision().await.unwrap();
    let (set, by) = (vec![rule("a", "2"), rule("b", "1")], fresh.by());
    let dry = fresh.store.apply_rules(by, set, Unlisted::Keep, Run::Dry).await.unwrap().value;
    assert_eq!((dry.version, turns(&dry)), (1, vec!["~a".to_owned(), "+b".to_owned()]));
    assert_eq!(names(&fresh).await, ["a"]);
    assert_eq!(fresh.store.current_revision().await.unwrap(), revision);
    assert_eq!(fresh.count("SELECT COUNT(*) FROM rule_versions").await, 1);
}

async fn one_rule_too_many_changes_nothing(fresh: Fresh) {
    apply(&fresh, &[rule("first", "1")], Unlisted::Keep).await;
    let set: Vec<_> = (0..RULES_MAX).map(|at| rule(&at.to_string(), "")).collect();
    let (store, by) = (&fresh.store, fresh.by());
    let full = store.apply_rules(by, set.clone(), Unlisted::Keep, Run::Real).await;
    assert!(matches!(full, Err(StoreError::TooManyRules { count: 10_001, max: RULES_MAX })));
    let dry = store.apply_rules(by, set, Unlisted::Keep, Run::Dry).await;
    assert!(matches!(dry, Err(StoreError::TooManyRules { .. })));
    let large = rule("large", &"x".repeat(tollkeeper_store::RULES_BYTES_MAX));
    let large = store.apply_rules(by, vec![large], Unlisted::Keep, Run::Real).await;
    assert!(matches!(large, Err(StoreError::RulesTooLarge { .. })));
    assert_eq!(names(&fresh).await, ["first"]);
}

async fn a_rule_that_stays_keeps_its_id_its_age_and_its_maker(fresh: Fresh) {
    apply(&fresh, &[rule("a", "1"), rule("b", "1")], Unlisted::Keep).await;
    let get = async |name: &str| fresh.store.rule(&fresh.tenant_id, name).await.unwrap().unwrap();
    let before = get("a").await;
    assert!(before.id.starts_with("rule_"));
    assert_eq!((before.updated_at, &before.created_by), (None, &fresh.root_key_id));
    let by = By { root_key_id: "rk_other", ..fresh.by_at(Millis(NOW.0 + 5)) };
    let set = vec![rule("a", "2"), rule("b", "1")];
    fresh.store.apply_rules(by, set, Unlisted::Keep, Run::Real).await.unwrap();
    let after = get("a").await;
    assert_eq!(
        (&after.id, after.created_at, &after.created_by),
        (&before.id, NOW, &before.created_by)
    );
    assert_eq!((after.version, after.updated_at), (2, Some(Millis(NOW.0 + 5))));
    let untouched = get("b").await;
    assert_eq!((untouched.version, untouched.updated_at), (1, None));
    assert!(fresh.store.rule(&fresh.tenant_id, "c").await.unwrap().is_none());
}

async fn a_version_is_brought_back_as_a_new_one(fresh: Fresh) {
    apply(&fresh, &[rule("a", "1"), rule("b", "1")], Unlisted::Keep).await;
    let first = fresh.store.rules_of(&fresh.tenant_id).await.unwrap().unwrap();
    apply(&fresh, &[rule("a", "2"), rule("c", "1")], Unlisted::Delete).await;
    let back = fresh.store.roll_rules_back(fresh.by(), 1).await.unwrap().value;
    assert_eq!((back.version, turns(&back)), (3, vec!["~a".into(), "+b".into(), "-c".into()]));
    let now = fresh.store.rules_of(&fresh.tenant_id).await.unwrap().unwrap();
    assert_eq!((now.version, now.text), (3, first.text));
    let again = fresh.store.roll_rules_back(fresh.by(), 1).await.unwrap().value;
    assert_eq!((again.version, again.changes.len()), (3, 0), "they are what they were");
    let nobody = fresh.store.roll_rules_back(fresh.by(), 9).await;
    assert!(matches!(nobody, Err(StoreError::NotFound { what: Thing::RuleVersion, .. })));
}

async fn only_the_last_hundred_versions_are_kept(fresh: Fresh) {
    for turn in 1..=103 {
        apply(&fresh, &[rule("a", &turn.to_string())], Unlisted::Keep).await;
    }
    assert_eq!(fresh.count("SELECT COUNT(*) FROM rule_versions").await, 100);
    assert_eq!(fresh.count("SELECT MIN(version) FROM rule_versions").await, 4);
    assert!(fresh.store.roll_rules_back(fresh.by(), 3).await.is_err());
    assert_eq!(fresh.store.roll_rules_back(fresh.by(), 4).await.unwrap().value.version, 104);
}

async fn two_applies_at_once_never_interleave(fresh: Fresh) {
    const WRITERS: usize = 4;
    const TURNS: usize = 5;
    let fresh = Arc::new(fresh);
    let other = Arc::new(fresh.another().await);
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let (fresh, other) = (Arc::clone(&fresh), Arc::clone(&other));
        writers.spawn(async move {
            let store = if writer % 2 == 0 { &fresh.store } else { &*other };
            let mut versions = Vec::new();
            for turn in 0..TURNS {
                let text = format!("{writer}-{turn}");
                let set = (0..50).map(|at| rule(&format!("r{at}"), &text)).collect();
                let done = store.apply_rules(fresh.by(), set, Unlisted::Delete, Run::Real).await;
                versions.push(done.unwrap().value.version);
            }
            versions
        });
    }
    let mut versions: Vec<_> = writers.join_all().await.into_iter().flatten().collect();
    versions.sort_unstable();
    assert_eq!(versions, (1..=20).collect::<Vec<u64>>());
    let set = fresh.store.rules_of(&fresh.tenant_id).await.unwrap().unwrap();
    let page = fresh.store.list_rules(&fresh.tenant_id, None, 100).await.unwrap();
    let bodies: Vec<_> = page.rows.iter().map(|rule| rule.body.as_str()).collect();
    assert_eq!(set.text, format!("[{}]", bodies.join(",")), "rows and version are one");
    let last: std::collections::HashSet<_> = bodies
        .iter()
        .map(|body| &body[body.find("more").unwrap()..body.find("name").unwrap()])
        .collect();
    assert_eq!((bodies.len(), last.len()), (50, 1), "all of one writer");
}

async fn every_change_of_rules_is_announced_and_audited(fresh: Fresh) {
    let before = fresh.store.current_revision().await.unwrap();
    let by = fresh.by();
    let set = vec![rule("a", "1")];
    let one = fresh.store.apply_rules(by, set, Unlisted::Keep, Run::Real).await.unwrap().revision;
    let two = fresh.store.delete_rule(by, "a").await.unwrap().revision;
    let three = fresh.store.roll_rules_back(by, 1).await.unwrap().revision;
    let told = fresh.store.outbox_since(before, 10).await.unwrap();
    let revisions: Vec<_> = told.iter().map(|entry| entry.revision).collect();
    assert_eq!(revisions, [one, two, three]);
    let ours = |entry: &tollkeeper_store::OutboxEntry| {
        entry.changed == Changed::Rules && entry.tenant_id == fresh.tenant_id
    };
    assert!(told.iter().all(ours));
    let audited = "SELECT COUNT(*) FROM admin_audit WHERE action IN
        ('rules.apply', 'rules.delete', 'rules.rollback')";
    assert_eq!(fresh.count(audited).await, 3);
}

async fn rules_are_listed_by_name_page_by_page_and_only_the_tenants_own(fresh: Fresh) {
    let set: Vec<_> = (0..5).map(|at| rule(&format!("r{at}"), "")).collect();
    apply(&fresh, &set, Unlisted::Keep).await;
    let other = fresh.second_tenant().await;
    let by = By { tenant_id: &other, ..fresh.by() };
    fresh
        .store
        .apply_rules(by, vec![rule("r0", "theirs")], Unlisted::Delete, Run::Real)
        .await
        .unwrap();
    let first = fresh.store.list_rules(&fresh.tenant_id, None, 3).await.unwrap();
    let cursor = first.next_cursor.as_deref();
    let rest = fresh.store.list_rules(&fresh.tenant_id, cursor, 3).await.unwrap();
    let names: Vec<_> = first.rows.iter().chain(&rest.rows).map(|rule| &*rule.name).collect();
    assert_eq!((names, rest.next_cursor), (vec!["r0", "r1", "r2", "r3", "r4"], None));
    assert!(first.rows.iter().all(|rule| !rule.body.contains("theirs")));
    assert!(fresh.store.rule(&other, "r1").await.unwrap().is_none());
    assert!(fresh.store.roll_rules_back(by, 2).await.is_err());
}

async fn ten_thousand_rules_are_one_change(fresh: Fresh) {
    let set: Vec<_> =
        (0..RULES_MAX).map(|at| rule(&format!("r{at:05}"), &"x".repeat(200))).collect();
    let made = apply(&fresh, &set, Unlisted::Keep).await;
    assert_eq!((made.version, made.changes.len()), (1, RULES_MAX));
    let changed: Vec<_> = set[..9000].iter().map(|one| rule(&one.name, "y")).collect();
    let made = apply(&fresh, &changed, Unlisted::Delete).await;
    let deleted = made.changes.iter().filter(|one| one.after.is_none()).count();
    assert_eq!((made.version, made.changes.len(), deleted), (2, RULES_MAX, 1000));
    assert_eq!(fresh.count("SELECT COUNT(*) FROM rules").await, 9000);
}
