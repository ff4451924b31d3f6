//! Tests of rules as they stand in a file: what their description cannot know is checked here, and each is read for a run.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use tollkeeper_client::wire::FieldError;
use tollkeeper_client::wire::rules::pause_ms;
use tollkeeper_server::rules::CheckedRule;

/// Midnight in UTC at the beginning of a day, a month and a year: every window begins here.
const BEGINNING_MS: u64 = 1_767_225_600_000;

/// One test: what is asked one after the other, beginning with empty counters.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) at_ms: u64,
    pub(super) steps: Vec<Step>,
    /// Whether the steps were written as such, so that they are spoken of.
    pub(super) stepwise: bool,
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) request: Map<String, Value>,
    pub(super) after_ms: u64,
    pub(super) every_ms: u64,
    pub(super) times: u64,
    /// Of the last request; empty where nothing is expected.
    pub(super) expect: Map<String, Value>,
}

/// What the rules of a file are called, and their limits.
#[derive(Debug)]
pub(super) struct Known<'r> {
    rules: HashSet<&'r str>,
    limits: HashSet<String>,
}

/// Each test of a file that has no fault.
pub(super) fn read(tests: &[Value]) -> Vec<Case> {
    tests.iter().filter_map(Value::as_object).map(Case::read).collect()
}

/// Names that are given twice, or that no rule has. Places are those of a body, as in a description's own faults.
pub(super) fn faults(tests: &[Value], known: &Known<'_>) -> Vec<FieldError> {
    let mut found = Vec::new();
    let mut names = HashMap::new();
    for (at, test) in tests.iter().enumerate() {
        let name = test.get("name").and_then(Value::as_str);
        if let Some(first) = name.and_then(|name| names.insert(name, at)) {
            let message = format!("Another test has this name: the one at tests[{first}].");
            let place = format!("body.tests[{at}].name");
            found.push(FieldError::new(place, message, "Give every test its own name."));
        }
        known.look(&format!("body.tests[{at}]"), test, &mut found);
        for (step, one) in list(test, "steps").iter().enumerate() {
            known.look(&format!("body.tests[{at}].steps[{step}]"), one, &mut found);
        }
    }
    found
}

/// Puts the test's name before what is wrong with it, as rules have theirs.
pub(super) fn named(mut fault: FieldError, tests: &[Value]) -> FieldError {
    let place = fault.location.strip_prefix("body.tests[").and_then(|rest| rest.split_once(']'));
    let test = place.and_then(|(at, _)| tests.get(at.parse::<usize>().ok()?));
    if let Some(name) = test.and_then(|test| test.get("name")?.as_str()) {
        let name: String = name.chars().take(128).collect();
        fault.message = format!("Test {name:?}: {}", fault.message);
    }
    fault
}

fn list<'v>(of: &'v Value, field: &str) -> &'v [Value] {
    of.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

// === impl Known ===

impl<'r> Known<'r> {
    pub(super) fn of(rules: &'r [CheckedRule]) -> Self {
        let rules = || rules.iter().map(|checked| &checked.rule);
        let limits = rules().flat_map(|rule| {
            rule.limits.iter().map(|limit| format!("{}/{}", rule.name, limit.name))
        });
        Self { limits: limits.collect(), rules: rules().map(|rule| &*rule.name).collect() }
    }

    fn look(&self, place: &str, test: &Value, found: &mut Vec<FieldError>) {
        let Some(expect) = test.get("expect") else { return };
        let mut missing = |what: &str, place: String, name: &str| {
            let message = format!("There is no {what} {name:?} in the file.");
            found.push(FieldError::new(place, message, "Correct the name, or add the rule."));
        };
        let rule = expect.get("rule").and_then(Value::as_str);
        if let Some(name) = rule.filter(|name| !self.rules.contains(name)) {
            missing("rule", format!("{place}.expect.rule"), name);
        }
        for (at, name) in list(expect, "rules").iter().enumerate() {
            if let Some(name) = name.as_str().filter(|name| !self.rules.contains(name)) {
                missing("rule", format!("{place}.expect.rules[{at}]"), name);
            }
        }
        for field in ["limits", "exceeded"] {
            for (at, one) in list(expect, field).iter().enumerate() {
                let name = one.as_str().or_else(|| one.get("name")?.as_str());
                if let Some(name) = name.filter(|name| !self.limits.contains(*name)) {
                    missing("limit", format!("{place}.expect.{field}[{at}]"), name);
                }
            }
        }
    }
}

// === impl Case ===

impl Case {
    fn read(given: &Map<String, Value>) -> Self {
        let whole = fields(given.get("request"));
        let stepwise = given.get("steps").and_then(Value::as_array);
        let steps = match stepwise {
            Some(steps) => steps
                .iter()
                .filter_map(Value::as_object)
                .map(|step| Step::read(step, whole.clone()))
                .collect(),
            None => vec![Step::read(given, whole)],
        };
        Self {
            name: given.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            at_ms: given.get("at").and_then(Value::as_u64).unwrap_or(BEGINNING_MS),
            steps,
            stepwise: stepwise.is_some(),
        }
    }
}

// === impl Step ===

impl Step {
    fn read(given: &Map<String, Value>, mut request: Map<String, Value>) -> Self {
        request.extend(fields(given.get("request")));
        Self {
            request,
            after_ms: pause_ms(given, "after"),
            every_ms: pause_ms(given, "every"),
            times: given.get("times").and_then(Value::as_u64).unwrap_or(1),
            expect: fields(given.get("expect")),
        }
    }
}

fn fields(of: Option<&Value>) -> Map<String, Value> {
    of.and_then(Value::as_object).cloned().unwrap_or_default()
}
