//! Why each rule matched a request or did not. Every rule is asked on its own, one by one: for people, not for requests.

use std::fmt;
use std::sync::Arc;

use super::{Facts, Matched, PathPattern, Rule, RuleScope, RuleSet};

#[derive(Clone, Debug)]
pub struct Explained<'s> {
    pub place: usize,
    pub rule: &'s Arc<Rule>,
    pub fit: Result<Matched<'s>, Unmet>,
}

/// The first condition of a rule that a request does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmet {
    Disabled,
    Tier,
    Method(Mismatch),
    Endpoint(Mismatch),
    Ip(Mismatch),
    Project(Mismatch),
    /// The request has nothing to count by.
    ScopeAbsent(RuleScope),
    /// It would match, but this allow or block rule ended the walk before it.
    NotReached(Arc<str>),
}

/// What a limit of a rule says to a request, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// The request fails on it.
    pub denies: bool,
    pub admitted: bool,
    /// Not zero where it is this rule that makes the request wait.
    pub delay_ms: u64,
    pub left: u64,
    pub all: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The rule needs it and the request does not give it.
    Absent,
    /// It is none of the rule's.
    Other,
}

// === impl RuleSet ===

impl RuleSet {
    /// Every rule in the order of the walk, with the pattern that matched or what kept it from matching.
    pub fn explain(&self, facts: &Facts<'_>) -> Vec<Explained<'_>> {
        let mut ended: Option<&Arc<Rule>> = None;
        let mut explained = Vec::with_capacity(self.rules().len());
        for (place, rule) in self.rules().iter().enumerate() {
            let fit = fit(rule, facts).and_then(|pattern| match ended {
                Some(by) => Err(Unmet::NotReached(by.name.clone())),
                None => Ok(Matched { place, rule, pattern }),
            });
            if fit.is_ok() && rule.action.ends_walk() {
                ended = Some(rule);
            }
            explained.push(Explained { place, rule, fit });
        }
        explained
    }
}

/// The endpoint pattern that matched, where the rule has any.
fn fit<'s>(rule: &'s Rule, facts: &Facts<'_>) -> Result<Option<&'s PathPattern>, Unmet> {
    if !rule.enabled {
        return Err(Unmet::Disabled);
    }
    if !rule.tiers.is_empty() && !rule.tiers.iter().any(|tier| **tier == *facts.tier) {
        return Err(Unmet::Tier);
    }
    one_of(&rule.methods, facts.method, |own, method| **own == **method).map_err(Unmet::Method)?;
    let pattern = one_of(&rule.endpoints, facts.path, |own, path| own.matches(path))
        .map_err(Unmet::Endpoint)?;
    one_of(&rule.ip_ranges, facts.ip, |own, ip| own.contains(*ip)).map_err(Unmet::Ip)?;
    let project = facts.project_id.or(facts.project_slug);
    one_of(&rule.projects, project, |own, _| facts.in_project(own)).map_err(Unmet::Project)?;
    for scope in rule.scope.as_slice() {
        let present = match scope {
            RuleScope::Endpoint => pattern.is_some(),
            scope => facts.has(*scope),
        };
        if !present {
            return Err(Unmet::ScopeAbsent(*scope));
        }
    }
    Ok(pattern)
}

/// The first of the rule's own that the given one meets; nothing where the rule has none and so needs none.
fn one_of<O, G>(
    own: &[O],
    given: Option<G>,
    meets: impl Fn(&O, &G) -> bool,
) -> Result<Option<&O>, Mismatch> {
    if own.is_empty() {
        return Ok(None);
    }
    let given = given.ok_or(Mismatch::Absent)?;
    own.iter().find(|one| meets(one, &given)).map(Some).ok_or(Mismatch::Other)
}

// === impl Said ===

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.denies, self.admitted) {
            (true, _) => f.write_str("has no room for the request")?,
            (false, false) => f.write_str("has no room, but only watches")?,
            (false, true) if self.delay_ms > 0 => {
                write!(f, "makes the request wait {} ms", self.delay_ms)?;
            }
            (false, true) => f.write_str("has room")?,
        }
        write!(f, ": {} of {} left", self.left, self.all)
    }
}

// === impl Unmet ===

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Mismatch::{Absent, Other};
        f.write_str(match self {
            Self::Disabled => "the rule is disabled",
            Self::Tier => "the request's tier is none of the rule's",
            Self::Method(Absent) => "the rule has methods and the request gives none",
            Self::Method(Other) => "the request's method is none of the rule's",
            Self::Endpoint(Absent) => "the rule has endpoints and the request gives no path",
            Self::Endpoint(Other) => "the request's path matches none of the rule's endpoints",
            Self::Ip(Absent) => "the rule has IP ranges and the request gives no address",
            Self::Ip(Other) => "the request's address is in none of the rule's IP ranges",
            Self::Project(Absent) => "the rule has projects and the request belongs to none",
            Self::Project(Other) => "the request's project is none of the rule's",
            Self::ScopeAbsent(RuleScope::Endpoint) => {
                "the rule counts by endpoint and no endpoint pattern of it matched"
            }
            Self::ScopeAbsent(scope) => {
                return write!(f, "the rule counts by {scope} and the request gives none");
            }
            Self::NotReached(by) => {
                return write!(f, "rule `{by}` comes before it and ended the walk");
            }
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::rules::fixtures::{NOTHING, rule};
    use crate::rules::{Action, RequestPath};

    fn unmet(rule: Rule, facts: &Facts<'_>) -> Option<Unmet> {
        let set = RuleSet::compile(vec![Arc::new(rule)]);
        set.explain(facts).remove(0).fit.err()
    }

    #[test]
    fn each_condition_names_itself_and_whether_it_was_given_at_all() {
        use Mismatch::{Absent, Other};
        let path = RequestPath::new("/b");
        let given = Facts {
            method: Some("GET"),
            path: Some(&path),
            ip: Some("192.0.2.1".parse().unwrap()),
            project_slug: Some("web"),
            ..NOTHING
        };
        let rule = || rule("rule");
        let endpoints = vec![PathPattern::parse("/a").unwrap()];
        let ip_ranges = vec!["10.0.0.0/8".parse().unwrap()];
        for (rule, absent, other) in [
            (
                Rule { methods: vec!["POST".into()], ..rule() },
                Unmet::Method(Absent),
                Unmet::Method(Other),
            ),
            (Rule { endpoints, ..rule() }, Unmet::Endpoint(Absent), Unmet::Endpoint(Other)),
            (Rule { ip_ranges, ..rule() }, Unmet::Ip(Absent), Unmet::Ip(Other)),
            (
                Rule { projects: vec!["shop".into()], ..rule() },
                Unmet::Project(Absent),
                Unmet::Project(Other),
            ),
            (Rule { tiers: vec!["pro".into()], ..rule() }, Unmet::Tier, Unmet::Tier),
            (Rule { enabled: false, ..rule() }, Unmet::Disabled, Unmet::Disabled),
        ] {
            assert_eq!(unmet(rule.clone(), &NOTHING), Some(absent));
            assert_eq!(unmet(rule, &given), Some(other));
        }
        let by_user = Rule { scope: RuleScope::User.into(), ..rule() };
        assert_eq!(unmet(by_user, &given), Some(Unmet::ScopeAbsent(RuleScope::User)));
        assert_eq!(unmet(rule(), &NOTHING), None);
    }

    #[test]
    fn what_stands_behind_an_allow_or_block_is_not_reached_unless_it_fails_by_itself() {
        let block = Rule { action: Action::Block, priority: 1, ..rule("block") };
        let late = Rule { priority: 2, ..rule("late") };
        let off = Rule { priority: 3, enabled: false, ..rule("off") };
        let set = RuleSet::compile([off, late, block].into_iter().map(Arc::new).collect());
        let explained = set.explain(&NOTHING);
        assert!(explained[0].fit.is_ok());
        let reasons: Vec<String> =
            explained[1..].iter().map(|one| one.fit.as_ref().unwrap_err().to_string()).collect();
        let expected = ["rule `block` comes before it and ended the walk", "the rule is disabled"];
        assert_eq!(reasons, expected);
    }
}
