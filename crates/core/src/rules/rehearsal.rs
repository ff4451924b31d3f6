//! Rules played through from nothing: counters begin empty, time is handed in, and every answer is what the engine would
//! say of a request that only rules are about. Keys, credits, quotas and other nodes have no part in it.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Action, Facts, Matched, Rule, RuleLimit, RuleSet, Throttle, identifier};
use crate::{Check, Cost, Limit, Millis, Outcome, State, Verdict, settle, settle_if};

/// Limits that one request can meet, at most: they are locked and settled together, which nobody else may wait long for.
/// Ten limits of each of the rules that any sensible set has for one request.
pub const MET_LIMITS_MAX: usize = 256;

#[derive(Debug)]
pub struct Rehearsal<'s> {
    set: &'s RuleSet,
    /// By the rule's place, the limit's place in it, and whom it counts for.
    cells: HashMap<(usize, usize, String), State>,
}

/// What became of one request.
#[derive(Clone, Debug)]
pub struct Rehearsed<'s> {
    pub verdict: Verdict,
    /// The rule that decided: it blocks, denies longest of all that were exceeded, or makes the request wait.
    pub rule: Option<&'s Arc<Rule>>,
    /// Those that bind in the order of the walk, then those that only watch.
    pub limits: Vec<MetLimit<'s>>,
    /// Every rule that was met, in the order of the walk.
    pub rules: Vec<&'s Arc<Rule>>,
    pub delay_ms: u64,
    now: Millis,
}

#[derive(Clone, Debug)]
pub struct MetLimit<'s> {
    pub rule: &'s Arc<Rule>,
    pub limit: &'s RuleLimit,
    pub outcome: Outcome,
}

/// The request meets more than [`MET_LIMITS_MAX`] limits, and is refused for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyLimits;

/// One limit that a request spends from.
struct Line<'s> {
    rule: &'s Arc<Rule>,
    limit: &'s RuleLimit,
    counted: Limit,
    throttle: Option<Throttle>,
    cell: (usize, usize, String),
}

// === impl Rehearsal ===

impl<'s> Rehearsal<'s> {
    pub fn new(set: &'s RuleSet) -> Self {
        Self { set, cells: HashMap::new() }
    }

    /// One request. All limits that bind are spent, or none is; those that watch only see what passed.
    pub fn ask(
        &mut self,
        facts: &Facts<'_>,
        cost: Cost,
        now: Millis,
    ) -> Result<Rehearsed<'s>, TooManyLimits> {
        let mut matched = Vec::new();
        self.set.walk(facts, &mut matched);
        let rules = matched.iter().map(|one| one.rule).collect();
        let mut made = Rehearsed {
            verdict: Verdict::Valid,
            rule: None,
            limits: Vec::new(),
            rules,
            delay_ms: 0,
            now,
        };
        let lines: Vec<Line<'s>> =
            matched.iter().flat_map(|matched| lines(matched, facts)).collect();
        if lines.len() > MET_LIMITS_MAX {
            return Err(TooManyLimits);
        }
        if let Some(block) = matched.iter().find(|one| one.rule.action == Action::Block) {
            (made.verdict, made.rule) = (Verdict::Blocked, Some(block.rule));
            return Ok(made);
        }
        let (watching, binding): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|line| line.rule.action == Action::LogOnly);
        self.bind(binding, cost, &mut made);
        for line in watching {
            self.watch(line, cost, &mut made);
        }
        Ok(made)
    }

    fn bind(&mut self, lines: Vec<Line<'s>>, cost: Cost, made: &mut Rehearsed<'s>) {
        let mut states: Vec<State> = lines.iter().map(|line| self.state(line)).collect();
        let check = |(slot, line): (usize, &Line<'_>)| Check { limit: line.counted, cost, slot };
        let checks: Vec<Check> = lines.iter().enumerate().map(check).collect();
        let settled = settle(&checks, &mut states, made.now);
        if !settled.passed {
            made.verdict = Verdict::RateLimited;
        }
        for ((line, state), outcome) in lines.into_iter().zip(states).zip(settled.outcomes) {
            let (outcome, delay_ms) = line.seen(outcome, made.now);
            self.cells.insert(line.cell, state);
            // Who only looks waits for nothing.
            if settled.passed && cost != Cost::PEEK && delay_ms > made.delay_ms {
                made.rule = Some(line.rule);
                made.delay_ms = delay_ms;
            }
            made.limits.push(MetLimit { rule: line.rule, limit: line.limit, outcome });
        }
        if !settled.passed {
            let denying = made.limits.iter().filter(|one| one.denies());
            let longest = denying.min_by_key(|one| one.outcome.tightness());
            made.rule = longest.map(|one| one.rule);
        }
    }

    /// By itself, so that it can refuse nothing.
    fn watch(&mut self, line: Line<'s>, cost: Cost, made: &mut Rehearsed<'s>) {
        let mut states = [self.state(&line)];
        let check = Check { limit: line.counted, cost, slot: 0 };
        let passed = made.verdict == Verdict::Valid;
        let settled = settle_if(&[check], &mut states, made.now, || passed);
        let [state] = states;
        self.cells.insert(line.cell, state);
        let seen = settled.outcomes.into_iter();
        let met = |outcome| MetLimit { rule: line.rule, limit: line.limit, outcome };
        made.limits.extend(seen.map(met));
    }

    fn state(&self, line: &Line<'_>) -> State {
        self.cells.get(&line.cell).cloned().unwrap_or_else(|| State::fresh(&line.counted))
    }
}

fn lines<'s>(matched: &Matched<'s>, facts: &Facts<'_>) -> Vec<Line<'s>> {
    let mut text = String::new();
    identifier(matched, facts, &mut text);
    let line = |(at, limit): (usize, &'s RuleLimit)| {
        let throttle = match matched.rule.action {
            Action::Throttle { max_delay_ms } => Throttle::new(limit.limit, max_delay_ms),
            _ => None,
        };
        let counted = throttle.map_or(limit.limit, |throttle| throttle.enlarged());
        Line {
            rule: matched.rule,
            limit,
            counted,
            throttle,
            cell: (matched.place, at, text.clone()),
        }
    };
    matched.rule.limits.iter().enumerate().map(line).collect()
}

// === impl Line ===

impl Line<'_> {
    /// The outcome as the rule shows it, and how long it has a request wait.
    fn seen(&self, outcome: Outcome, now: Millis) -> (Outcome, u64) {
        self.throttle.map_or((outcome, 0), |throttle| throttle.seen(outcome, now))
    }
}

// === impl Rehearsed ===

impl<'s> Rehearsed<'s> {
    pub fn passed(&self) -> bool {
        self.verdict == Verdict::Valid
    }

    /// What a proxy should answer with.
    pub fn status(&self) -> u16 {
        let usual = match self.verdict {
            Verdict::Valid => return 200,
            Verdict::Blocked => 403,
            _ => 429,
        };
        let own = self.rule.and_then(|rule| rule.response.as_ref()?.status);
        own.unwrap_or(usual)
    }

    /// With a denial: what its rule wants to be said.
    pub fn message(&self) -> Option<&'s str> {
        let rule = self.rule.filter(|_| !self.passed())?;
        rule.response.as_ref()?.message.as_deref()
    }

    /// With a denial: as the rule says, else the true time until everything fits.
    pub fn retry_after_ms(&self) -> Option<u64> {
        let rule = self.rule.filter(|_| !self.passed())?;
        if let Some(seconds) = rule.response.as_ref().and_then(|own| own.retry_after_seconds) {
            return Some(u64::from(seconds) * 1_000);
        }
        let denied = self.limits.iter().filter(|one| one.denies());
        let waits: Option<Vec<u64>> =
            denied.map(|one| one.outcome.retry_after_ms(self.now)).collect();
        waits?.into_iter().max()
    }
}

// === impl MetLimit ===

impl MetLimit<'_> {
    /// `rule/limit`
    pub fn name(&self) -> String {
        format!("{}/{}", self.rule.name, self.limit.name)
    }

    pub fn is_shadow(&self) -> bool {
        self.rule.action == Action::LogOnly
    }

    /// Exceeded, and not by a rule that only watches.
    pub fn denies(&self) -> bool {
        !self.outcome.admitted() && !self.is_shadow()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::rules::fixtures::{NOTHING, rule};
    use crate::{Quota, Width};

    const START: Millis = Millis(1_767_225_600_000);

    fn limited(name: &str, quota: u64, ms: u64) -> Rule {
        let (quota, width) = (Quota::new(quota).unwrap(), Width::from_millis(ms).unwrap());
        Rule {
            limits: vec![RuleLimit::new("own", Limit::sliding_window(quota, width))],
            ..rule(name)
        }
    }

    fn set(rules: Vec<Rule>) -> RuleSet {
        RuleSet::compile(rules.into_iter().map(Arc::new).collect())
    }

    #[test]
    fn a_denied_request_spends_nothing_and_names_the_rule_without_room() {
        let set = set(vec![limited("a-wide", 5, 60_000), limited("b-narrow", 1, 60_000)]);
        let mut rehearsal = Rehearsal::new(&set);
        assert!(rehearsal.ask(&NOTHING, Cost::ONE, START).unwrap().passed());
        for _ in 0..3 {
            let denied = rehearsal.ask(&NOTHING, Cost::ONE, START).unwrap();
            assert_eq!((denied.verdict, denied.status()), (Verdict::RateLimited, 429));
            assert_eq!(denied.rule.map(|rule| &*rule.name), Some("b-narrow"));
            assert_eq!(denied.limits[0].outcome.remaining, 4);
            assert!(denied.retry_after_ms().is_some_and(|ms| ms > 0 && ms <= 120_000));
        }
    }

    #[test]
    fn who_watches_sees_what_passed_and_refuses_nothing() {
        let watching = Rule { action: Action::LogOnly, ..limited("a-watch", 1, 60_000) };
        let set = set(vec![watching, limited("b-real", 2, 60_000)]);
        let mut rehearsal = Rehearsal::new(&set);
        let seen: Vec<(bool, bool)> = (0..4)
            .map(|_| rehearsal.ask(&NOTHING, Cost::ONE, START).unwrap())
            .map(|made| (made.passed(), made.limits[1].outcome.admitted()))
            .collect();
        assert_eq!(seen, [(true, true), (true, false), (false, false), (false, false)]);
    }

    #[test]
    fn a_request_that_meets_too_many_limits_is_no_answer_at_all() {
        let many: Vec<Rule> =
            (0..=MET_LIMITS_MAX).map(|n| limited(&format!("r{n}"), 5, 60_000)).collect();
        let set = set(many);
        let asked = Rehearsal::new(&set).ask(&NOTHING, Cost::ONE, START);
        assert_eq!(asked.map(|made| made.passed()).unwrap_err(), TooManyLimits);
    }
}
