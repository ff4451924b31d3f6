//! One rule from its JSON object: what the description cannot know is checked here, and what it knows is not told again.

use std::sync::Arc;

use serde_json::{Map, Value};
use tollkeeper_core::{
    Action, Cidr, PathPattern, Rule, RuleResponse, RuleScope, ScopeList, Sharing,
};
use tollkeeper_wire::rules::PRIORITY_DEFAULT;

use super::CheckedRule;
use super::canonical::canonical;
use super::faults::Faults;
use super::limits::Counting;

/// A rule while it is read. What has the wrong kind is left out silently: its description says so.
pub(super) struct Reading<'r> {
    pub(super) given: &'r Map<String, Value>,
    pub(super) at: usize,
    pub(super) faults: &'r mut Faults,
    pub(super) notes: Vec<String>,
}

// === impl Reading ===

impl<'r> Reading<'r> {
    pub(super) fn new(given: &'r Map<String, Value>, at: usize, faults: &'r mut Faults) -> Self {
        Self { given, at, faults, notes: Vec::new() }
    }

    pub(super) fn into_notes(self) -> Vec<String> {
        self.notes
    }

    /// `None` where something is missing or wrong; every fault was added.
    pub(super) fn rule(&mut self) -> Option<CheckedRule> {
        let (scope, endpoints) = (self.scope(), self.endpoints());
        let counting = Counting::read(self);
        let ranges: Vec<Cidr> =
            self.texts("ipRanges").filter_map(|text| text.parse().ok()).collect();
        let words =
            |texts: Vec<&str>| -> Vec<Box<str>> { texts.into_iter().map(Into::into).collect() };
        let counting = counting?;
        let rule = Rule {
            name: self.text("name")?.into(),
            scope: scope?,
            tiers: words(self.texts("tiers").collect()),
            endpoints: endpoints?,
            methods: self.texts("methods").map(|word| word.to_ascii_uppercase().into()).collect(),
            ip_ranges: ranges,
            projects: words(self.texts("projects").collect()),
            limits: counting.limits(),
            action: self.action()?,
            response: self.response(),
            sharing: Sharing::from_words(self.text("consistency"), self.text("onOutage")),
            priority: i64::try_from(self.number("priority").unwrap_or(PRIORITY_DEFAULT)).ok()?,
            enabled: self.given.get("enabled").and_then(Value::as_bool).unwrap_or(true),
        };
        let text = canonical(self, &rule, &counting);
        Some(CheckedRule { rule, text })
    }

    pub(super) fn text(&self, field: &str) -> Option<&'r str> {
        self.given.get(field)?.as_str()
    }

    pub(super) fn number(&self, field: &str) -> Option<u64> {
        self.given.get(field)?.as_u64()
    }

    pub(super) fn list(&self, field: &str) -> &'r [Value] {
        self.given.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn texts(&self, field: &str) -> impl Iterator<Item = &'r str> + use<'r> {
        self.list(field).iter().filter_map(Value::as_str)
    }

    pub(super) fn fault(&mut self, field: &str, message: impl Into<String>, fix: &str) {
        self.faults.add(self.at, field, message, fix);
    }

    pub(super) fn is_throttle(&self) -> bool {
        self.text("action") == Some("throttle")
    }

    fn scope(&mut self) -> Option<ScopeList> {
        let words: Vec<&str> = match self.given.get("scope")? {
            Value::String(word) => vec![word.as_str()],
            Value::Array(words) => words.iter().map(Value::as_str).collect::<Option<_>>()?,
            _ => return None,
        };
        let scopes: Vec<_> =
            words.iter().map(|word| RuleScope::from_word(word)).collect::<Option<_>>()?;
        let list = ScopeList::new(&scopes);
        if list.is_none() && !scopes.is_empty() {
            self.fault(".scope", "Names a scope twice.", "Name every scope once.");
        }
        list
    }

    fn endpoints(&mut self) -> Option<Vec<PathPattern>> {
        let given = self.list("endpoints");
        let mut patterns = Vec::with_capacity(given.len());
        for (at, text) in given.iter().enumerate() {
            match text.as_str().map(PathPattern::parse) {
                Some(Ok(pattern)) => patterns.push(pattern),
                Some(Err(reason)) => {
                    let message = format!("Is not a pattern: {reason}.");
                    let fix = "Write it like `/api/v1/*`, `/users/{id}` or `/files/**`.";
                    self.fault(&format!(".endpoints[{at}]"), message, fix);
                }
                None => {}
            }
        }
        (patterns.len() == given.len()).then_some(patterns)
    }

    fn action(&self) -> Option<Action> {
        Some(match self.text("action") {
            None | Some("reject") => Action::Reject,
            Some("throttle") => Action::Throttle { max_delay_ms: self.number("maxDelayMs")? },
            Some("log_only") => Action::LogOnly,
            Some("allow") => Action::Allow,
            Some("block") => Action::Block,
            Some(_) => return None,
        })
    }

    fn response(&self) -> Option<RuleResponse> {
        let given = self.given.get("response")?.as_object()?;
        let number = |field: &str| given.get(field).and_then(Value::as_u64);
        let response = RuleResponse {
            status: number("status").and_then(|status| u16::try_from(status).ok()),
            message: given.get("message").and_then(Value::as_str).map(Arc::from),
            retry_after_seconds: number("retryAfterSeconds").and_then(|s| u32::try_from(s).ok()),
        };
        (response != RuleResponse::default()).then_some(response)
    }
}
