//! One test of rules, run: its requests are played through in memory, and what came is compared with what was expected.

use std::net::IpAddr;

use serde::Serialize;
use serde_json::{Map, Value, json};
use tollkeeper_client::wire::{MatchedRule, UnmatchedRule};
use tollkeeper_core::{
    Action, Cost, Facts, MetLimit, Millis, Rehearsal, Rehearsed, RequestPath, RuleSet, Said,
    TooManyLimits,
};

use super::cases::{Case, Step};

/// What a test came to.
#[derive(Debug, Serialize)]
pub(super) struct Tried {
    pub(super) test: String,
    pub(super) passed: bool,
    pub(super) requests: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) failures: Vec<Failed>,
}

/// A step whose answer is not the expected one.
#[derive(Debug, Serialize)]
pub(super) struct Failed {
    /// From 1 on; absent where the test has no steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) step: Option<usize>,
    pub(super) fields: Vec<Mismatch>,
    /// What every rule says to that request.
    pub(super) matched: Vec<MatchedRule<'static>>,
    pub(super) unmatched: Vec<UnmatchedRule<'static>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Mismatch {
    pub(super) field: String,
    pub(super) expected: Value,
    pub(super) came: Value,
}

pub(super) fn run(case: &Case, set: &RuleSet) -> Tried {
    let mut rehearsal = Rehearsal::new(set);
    let mut tried =
        Tried { test: case.name.clone(), passed: true, requests: 0, failures: Vec::new() };
    let mut now = Millis(case.at_ms);
    for (at, step) in case.steps.iter().enumerate() {
        now = now + step.after_ms;
        let asked = Asked::of(&step.request);
        let path = asked.path.map(RequestPath::new);
        let facts = asked.facts(path.as_ref());
        let (mut admitted, mut last) = (0, None);
        for turn in 0..step.times {
            if turn > 0 {
                now = now + step.every_ms;
            }
            let made = rehearsal.ask(&facts, asked.cost, now);
            admitted += u64::from(made.as_ref().is_ok_and(Rehearsed::passed));
            last = Some(made);
        }
        tried.requests += step.times;
        let Some(made) = last else { continue };
        let fields = step.mismatches(made.as_ref(), admitted);
        if !fields.is_empty() {
            tried.passed = false;
            tried.failures.push(Failed {
                step: case.stepwise.then_some(at + 1),
                fields,
                matched: made.as_ref().map(matched).unwrap_or_default(),
                unmatched: unmatched(set, &facts),
            });
        }
    }
    tried
}

/// A request, read once however often it is sent.
struct Asked<'r> {
    given: &'r Map<String, Value>,
    method: Option<String>,
    path: Option<&'r str>,
    ip: Option<IpAddr>,
    cost: Cost,
}

// === impl Asked ===

impl<'r> Asked<'r> {
    fn of(given: &'r Map<String, Value>) -> Self {
        let text = |name: &str| given.get(name).and_then(Value::as_str);
        let cost = given.get("cost").and_then(Value::as_u64).and_then(Cost::new);
        Self {
            method: text("method").map(str::to_ascii_uppercase),
            path: text("path"),
            ip: text("ip").and_then(|ip| ip.parse().ok()),
            cost: cost.unwrap_or(Cost::ONE),
            given,
        }
    }

    fn facts<'a>(&'a self, path: Option<&'a RequestPath<'a>>) -> Facts<'a> {
        let text = |name: &str| self.given.get(name).and_then(Value::as_str);
        Facts {
            tier: text("tier").unwrap_or("free"),
            method: self.method.as_deref(),
            path,
            ip: self.ip,
            project_id: text("project"),
            project_slug: text("project"),
            key_id: text("keyId"),
            user: text("externalId"),
            tenant: "default",
        }
    }
}

// === impl Step ===

impl Step {
    fn mismatches(
        &self,
        made: Result<&Rehearsed<'_>, &TooManyLimits>,
        admitted: u64,
    ) -> Vec<Mismatch> {
        let Ok(made) = made else {
            let expected = Value::from("an answer");
            let came = Value::from("refused (412): the request meets more than 256 limits");
            return vec![Mismatch { field: "request".to_owned(), expected, came }];
        };
        let came = came(made, admitted);
        let other = self.expect.iter().filter_map(|(field, expected)| {
            let came = came.get(field).cloned().unwrap_or_default();
            (!meets(field, expected, &came)).then(|| Mismatch {
                field: field.clone(),
                expected: expected.clone(),
                came,
            })
        });
        other.collect()
    }
}

/// Everything that can be expected, as it came.
fn came(made: &Rehearsed<'_>, admitted: u64) -> Value {
    let exceeded = made.limits.iter().filter(|one| !one.outcome.admitted());
    let limit = |one: &MetLimit<'_>| {
        json!({
            "name": one.name(),
            "limit": one.outcome.limit,
            "remaining": one.outcome.remaining,
            "exceeded": !one.outcome.admitted(),
            "shadow": one.is_shadow(),
        })
    };
    json!({
        "allowed": made.passed(),
        "code": made.verdict.code(),
        "status": made.status(),
        "rule": made.rule.map(|rule| &*rule.name),
        "message": made.message(),
        "delayMs": made.delay_ms,
        "retryAfterMs": made.retry_after_ms(),
        "rules": made.rules.iter().map(|rule| &*rule.name).collect::<Vec<_>>(),
        "limits": made.limits.iter().map(limit).collect::<Vec<_>>(),
        "exceeded": exceeded.map(MetLimit::name).collect::<Vec<_>>(),
        "admitted": admitted,
    })
}

fn meets(field: &str, expected: &Value, came: &Value) -> bool {
    match (field, expected, came) {
        ("limits" | "exceeded", Value::Array(expected), Value::Array(came)) => {
            // Exactly these, in whichever order: as many, and each one found.
            expected.len() == came.len()
                && expected.iter().all(|one| came.iter().any(|other| is_limit(one, other)))
        }
        _ => expected == came,
    }
}

/// Is this the limit that was expected, with all that was said of it?
fn is_limit(expected: &Value, came: &Value) -> bool {
    let name = came.get("name").unwrap_or(came);
    match expected {
        Value::Object(said) => said.iter().all(|(field, value)| came.get(field) == Some(value)),
        plain => plain == name,
    }
}

/// A row for each limit of each rule that was met, after the request.
fn matched(made: &Rehearsed<'_>) -> Vec<MatchedRule<'static>> {
    let rows = made.rules.iter().flat_map(|rule| {
        let row = |name: Option<String>, outcome: Option<(u64, u64)>, denies, reason: String| {
            MatchedRule {
                rule: rule.name.to_string().into(),
                action: rule.action.word().into(),
                name: name.map(Into::into),
                limit: outcome.map(|(all, _)| all),
                remaining: outcome.map(|(_, left)| left),
                would_deny: denies,
                reason: reason.into(),
            }
        };
        let waits = made.rule.is_some_and(|by| by.name == rule.name);
        let own = made.limits.iter().filter(|one| one.rule.name == rule.name);
        let mut rows: Vec<_> = own
            .map(|one| {
                let (all, left) = (one.outcome.limit, one.outcome.remaining);
                let said = Said {
                    denies: one.denies(),
                    admitted: one.outcome.admitted(),
                    delay_ms: if waits { made.delay_ms } else { 0 },
                    left,
                    all,
                };
                let name = one.limit.name.to_string();
                row(Some(name), Some((all, left)), one.denies(), said.to_string())
            })
            .collect();
        if rows.is_empty() {
            let said = rule.action.said().unwrap_or("is not looked at, because of a block");
            rows.push(row(None, None, rule.action == Action::Block, said.to_owned()));
        }
        rows
    });
    rows.collect()
}

fn unmatched(set: &RuleSet, facts: &Facts<'_>) -> Vec<UnmatchedRule<'static>> {
    let all = set.explain(facts).into_iter().filter_map(|one| {
        let rule = one.rule.name.to_string().into();
        Some(UnmatchedRule { rule, reason: one.fit.err()?.to_string().into() })
    });
    all.collect()
}
