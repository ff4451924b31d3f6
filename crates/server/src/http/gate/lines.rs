//! The rows of an answer about a request: every limit that was looked at, and every rule with its reason.

use std::borrow::Cow;
use std::sync::Arc;

use tollkeeper_core::{Action, Algorithm, Millis, Rule, Said};
use tollkeeper_decide::{Source, Told, Verified, VerifiedLimit};
use tollkeeper_wire as wire;

pub fn limits<'a>(made: &'a Verified, told: &Told<'a>, at: Millis) -> Vec<wire::CheckedLimit<'a>> {
    made.limits.iter().map(|one| limit(made, told, one, at)).collect()
}

fn limit<'a>(
    made: &'a Verified,
    told: &Told<'a>,
    one: &'a VerifiedLimit,
    at: Millis,
) -> wire::CheckedLimit<'a> {
    let (scope, identifier) = counted_for(made, told, one);
    wire::CheckedLimit {
        name: one.terms.name.as_ref().into(),
        scope: scope.into(),
        identifier: identifier.into(),
        algorithm: algorithm(one.limit.algorithm),
        limit: one.outcome.limit,
        remaining: one.outcome.remaining,
        reset: one.outcome.reset.0,
        retry_after_ms: one.outcome.retry_after_ms(at),
        exceeded: !one.outcome.admitted(),
        shadow: one.is_shadow(),
    }
}

/// Whose counter it is, and which. The limits of a request's own belong to whoever makes it.
fn counted_for<'a>(
    made: &'a Verified,
    told: &Told<'a>,
    one: &'a VerifiedLimit,
) -> (&'a str, &'a str) {
    let key = || made.key.as_ref().map(|key| ("key", &*key.record.id));
    let user = || {
        let stored = made.identity().map(|identity| &*identity.external_id);
        stored.or(told.external_id).map(|user| ("user", user))
    };
    match &one.terms.source {
        Source::Rule(of) => (&of.scope, made.identifier_of(one).unwrap_or_default()),
        // The counter of signatures is taken out of what was decided, and is never one of these.
        Source::Key | Source::Signature => key().unwrap_or_default(),
        Source::Identity | Source::Quota => user().unwrap_or_default(),
        Source::AdHoc => key().or_else(user).unwrap_or(("tenant", "")),
    }
}

fn algorithm(algorithm: Algorithm) -> wire::Algorithm {
    match algorithm {
        Algorithm::SlidingWindow(_) => wire::Algorithm::SlidingWindow,
        Algorithm::FixedWindow(_) => wire::Algorithm::FixedWindow,
        Algorithm::TokenBucket { .. } => wire::Algorithm::TokenBucket,
        Algorithm::SlidingLog(_) => wire::Algorithm::SlidingLog,
    }
}

/// A row for each limit of each rule that matches; a rule without limits has one all the same.
pub fn matched(made: &Verified) -> Vec<wire::MatchedRule<'_>> {
    let matching = made.reasons.iter().filter(|reason| reason.unmet.is_none());
    matching.flat_map(|reason| rows_of(made, &reason.rule)).collect()
}

fn rows_of<'a>(made: &'a Verified, rule: &'a Arc<Rule>) -> Vec<wire::MatchedRule<'a>> {
    let own = made.limits.iter().filter(|one| one.rule().is_some_and(|by| Arc::ptr_eq(by, rule)));
    let rows: Vec<_> = own.map(|one| row_of_limit(made, rule, one)).collect();
    if rows.is_empty() { vec![row_of_rule(made, rule)] } else { rows }
}

fn row_of_limit<'a>(
    made: &Verified,
    rule: &'a Rule,
    one: &'a VerifiedLimit,
) -> wire::MatchedRule<'a> {
    let own = one.terms.name.strip_prefix(&*rule.name).and_then(|rest| rest.strip_prefix('/'));
    wire::MatchedRule {
        rule: (&*rule.name).into(),
        action: rule.action.word().into(),
        name: Some(own.unwrap_or(&one.terms.name).into()),
        limit: Some(one.outcome.limit),
        remaining: Some(one.outcome.remaining),
        would_deny: one.denies(),
        reason: reason_of_limit(made, rule, one),
    }
}

fn reason_of_limit(made: &Verified, rule: &Rule, one: &VerifiedLimit) -> Cow<'static, str> {
    let waits = made.rule.as_ref().is_some_and(|by| by.name == rule.name);
    Said {
        denies: one.denies(),
        admitted: one.outcome.admitted(),
        delay_ms: if waits { made.delay_ms } else { 0 },
        left: one.outcome.remaining,
        all: one.outcome.limit,
    }
    .to_string()
    .into()
}

/// A rule that has no limit to look at, or whose limits were not looked at because something else refused already.
fn row_of_rule<'a>(made: &Verified, rule: &'a Rule) -> wire::MatchedRule<'a> {
    let reason = match rule.action.said() {
        Some(said) => said,
        None if made.passed() => "has no limit that counts here",
        None => "is not looked at, because the request is refused before",
    };
    wire::MatchedRule {
        rule: (&*rule.name).into(),
        action: rule.action.word().into(),
        name: None,
        limit: None,
        remaining: None,
        would_deny: rule.action == Action::Block,
        reason: reason.into(),
    }
}

pub fn unmatched(made: &Verified) -> Vec<wire::UnmatchedRule<'_>> {
    let all = made.reasons.iter().filter_map(|reason| {
        let unmet = reason.unmet.as_ref()?;
        let rule = (&*reason.rule.name).into();
        Some(wire::UnmatchedRule { rule, reason: unmet.to_string().into() })
    });
    all.collect()
}
