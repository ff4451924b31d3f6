//! A tenant's rules, compiled: sorted and indexed once, and walked in that order on every request.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::index::Index;
use super::places::{BLOCK, SMALL_BLOCK, words_of};
use super::{Facts, PathPattern, Rule};

#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    /// In the order of the walk.
    rules: Box<[Arc<Rule>]>,
    /// One for each block of them.
    indexes: Box<[Index]>,
}

/// A rule that a request meets.
#[derive(Clone, Copy, Debug)]
pub struct Matched<'s> {
    /// Its place in the walk: its index in [`RuleSet::rules`].
    pub place: usize,
    pub rule: &'s Arc<Rule>,
    /// The endpoint pattern that matched, the first in the rule's list; `None` where it has no endpoints.
    pub pattern: Option<&'s PathPattern>,
}

/// Some of the rules, with the place of the first of them.
struct Block<'s> {
    index: &'s Index,
    rules: &'s [Arc<Rule>],
    first: usize,
}

// === impl RuleSet ===

impl RuleSet {
    pub fn compile(mut rules: Vec<Arc<Rule>>) -> Self {
        rules.sort_by(|a, b| (a.priority, &a.name).cmp(&(b.priority, &b.name)));
        let indexes = rules.chunks(BLOCK).map(Index::of).collect();
        Self { rules: rules.into(), indexes }
    }

    /// In the order of the walk. The disabled ones are among them, for explaining and showing.
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    /// Fills `matched` with the rules that this request meets, in order, up to and with the first allow or block.
    pub fn walk<'s>(&'s self, facts: &Facts<'_>, matched: &mut Vec<Matched<'s>>) {
        matched.clear();
        self.meet(facts, |one| {
            matched.push(one);
            ControlFlow::Continue(())
        });
    }

    /// Hands the same to `each`, one after the other, for as long as it goes on.
    pub fn meet<'s>(
        &'s self,
        facts: &Facts<'_>,
        mut each: impl FnMut(Matched<'s>) -> ControlFlow<()>,
    ) {
        for (nth, (index, rules)) in self.indexes.iter().zip(self.rules.chunks(BLOCK)).enumerate() {
            let block = Block { index, rules, first: nth * BLOCK };
            let ended = if rules.len() <= SMALL_BLOCK {
                block.walk(facts, &mut [0; 2 * words_of(SMALL_BLOCK)], &mut each)
            } else {
                block.walk(facts, &mut [0; 2 * words_of(BLOCK)], &mut each)
            };
            if ended.is_break() {
                return;
            }
        }
    }
}

// === impl Block ===

impl<'s> Block<'s> {
    fn walk(
        &self,
        facts: &Facts<'_>,
        room: &mut [u64],
        each: &mut impl FnMut(Matched<'s>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for place in self.index.met(facts, room).places() {
            let rule = &self.rules[place];
            let place = self.first + place;
            each(Matched { place, rule, pattern: rule.pattern_of(facts) })?;
            if rule.action.ends_walk() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

// === impl Rule ===

impl Rule {
    /// The first of the endpoints that matches, of a rule that is known to be met.
    fn pattern_of(&self, facts: &Facts<'_>) -> Option<&PathPattern> {
        match (&self.endpoints[..], facts.path) {
            ([only], _) => Some(only),
            (many, Some(path)) => many.iter().find(|pattern| pattern.matches(path)),
            (_, None) => None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::rules::fixtures::{self, NOTHING};
    use crate::rules::{Action, RequestPath, RuleScope};

    fn rule(place: usize) -> Rule {
        Rule { priority: i64::try_from(place).unwrap(), ..fixtures::rule("rule") }
    }

    fn walked(rules: Vec<Rule>, path: &str) -> Vec<usize> {
        let set = RuleSet::compile(rules.into_iter().map(Arc::new).collect());
        let path = RequestPath::new(path);
        let mut matched = Vec::new();
        set.walk(&Facts { path: Some(&path), ..NOTHING }, &mut matched);
        matched.iter().map(|one| one.place).collect()
    }

    #[test]
    fn no_rules_match_nothing() {
        assert_eq!(walked(Vec::new(), "/a"), Vec::<usize>::new());
    }

    #[test]
    fn rules_beyond_a_block_are_walked_after_those_in_it() {
        let some = |places: &'static [usize]| {
            move |place: usize| {
                let pattern = if places.contains(&place) { "/a/*" } else { "/b" };
                let endpoints = vec![PathPattern::parse(pattern).unwrap()];
                Rule { endpoints, ..rule(place) }
            }
        };
        let places = &[0, 63, 64, BLOCK - 1, BLOCK, 2 * BLOCK, 2 * BLOCK + 77];
        let rules: Vec<Rule> = (0..2 * BLOCK + 100).rev().map(some(places)).collect();
        assert_eq!(walked(rules.clone(), "/a/b"), places);
        let ending = |rule: Rule| {
            let ends = rule.priority == i64::try_from(BLOCK).unwrap();
            Rule { action: if ends { Action::Allow } else { rule.action }, ..rule }
        };
        assert_eq!(walked(rules.into_iter().map(ending).collect(), "/a/b"), places[..5]);
    }

    #[test]
    fn a_rule_that_counts_by_endpoint_and_names_none_never_matches() {
        let by_endpoint = Rule { scope: RuleScope::Endpoint.into(), ..rule(0) };
        assert_eq!(walked(vec![by_endpoint, rule(1)], "/a"), [1]);
    }
}
