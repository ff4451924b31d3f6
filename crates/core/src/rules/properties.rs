//! The compiled walk against a plain reading of the contract: every rule asked by itself, on paths taken apart anew.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::fixtures::rule;
use super::*;

const TIERS: [&str; 3] = ["free", "pro", "enterprise"];
const METHODS: [&str; 3] = ["GET", "POST", "DELETE"];
const PROJECTS: [&str; 4] = ["proj_1", "proj_2", "web", "mobile"];
const RANGES: [&str; 8] = [
    "10.0.0.0/8",
    "10.1.0.0/16",
    "10.1.2.3",
    "0.0.0.0/0",
    "::/0",
    "2001:db8::/32",
    "2001:db8::1",
    "192.168.0.0/24",
];
const ADDRESSES: [&str; 6] =
    ["10.1.2.3", "10.1.9.9", "::ffff:10.1.2.3", "2001:db8::1", "2001:db9::1", "192.168.0.77"];
const PIECES: [&str; 10] = ["a", "b", "api", "v1", "é", "{id}", "{x}", "*", "**", "A"];
const SEGMENTS: [&str; 20] = [
    "a", "b", "api", "v1", "a", "b", "api", "v1", "A", "é", "%C3%A9", "%61", "..", ".", "%2e%2E",
    "", "a%2Fb", "%zz", "%ff", "42",
];

/// What is given of a request, as owned values.
#[derive(Clone, Debug)]
struct Given {
    tier: &'static str,
    method: Option<&'static str>,
    path: Option<String>,
    ip: Option<IpAddr>,
    project_id: Option<&'static str>,
    project_slug: Option<&'static str>,
    key_id: Option<&'static str>,
    user: Option<&'static str>,
}

fn patterns() -> impl Strategy<Value = PathPattern> {
    let pieces = prop::collection::vec(select(&PIECES[..]), 0..5);
    pieces.prop_filter_map("no pattern", |pieces| {
        PathPattern::parse(&format!("/{}", pieces.join("/"))).ok()
    })
}

fn paths() -> impl Strategy<Value = String> {
    let segments = prop::collection::vec(select(&SEGMENTS[..]), 0..6);
    (segments, select(vec!["", "/", "?q=/a", "#a/b"]))
        .prop_map(|(segments, end)| format!("/{}{end}", segments.join("/")))
}

/// Mostly none of a list, so that rules with many conditions do not crowd out those that match.
fn some_of(names: &'static [&'static str]) -> impl Strategy<Value = Vec<Box<str>>> {
    let some = subsequence(names, 1..names.len());
    let boxed = some.prop_map(|some| some.into_iter().map(Box::from).collect());
    prop_oneof![2 => Just(Vec::new()), 1 => boxed]
}

fn scopes() -> impl Strategy<Value = ScopeList> {
    subsequence(&RuleScope::ALL[..], 1..3)
        .prop_shuffle()
        .prop_map(|scopes| ScopeList::new(&scopes).unwrap())
}

fn rules() -> impl Strategy<Value = Rule> {
    let endpoints =
        prop_oneof![1 => Just(Vec::new()), 2 => prop::collection::vec(patterns(), 1..4)];
    let ranges =
        some_of(&RANGES).prop_map(|all| all.iter().map(|one| one.parse().unwrap()).collect());
    let action = prop_oneof![
        12 => Just(Action::Reject), 2 => Just(Action::LogOnly), 1 => Just(Action::Allow), 1 => Just(Action::Block)
    ];
    let conditions = (some_of(&TIERS), endpoints, some_of(&METHODS), ranges, some_of(&PROJECTS));
    (scopes(), conditions, action, 0_i64..4, prop::bool::weighted(0.9)).prop_map(
        |(scope, (tiers, endpoints, methods, ip_ranges, projects), action, priority, enabled)| {
            let conditions = Rule { tiers, endpoints, methods, ip_ranges, projects, ..rule("") };
            Rule { scope, action, priority, enabled, ..conditions }
        },
    )
}

/// Names come in another order than the rules, so that sorting has something to do.
fn sets(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Arc<Rule>>> {
    let named = |(at, rule): (usize, Rule)| {
        Arc::new(Rule { name: Arc::from(format!("rule {}", at * 7919 % 10_007)), ..rule })
    };
    prop::collection::vec(rules(), count)
        .prop_map(move |rules| rules.into_iter().enumerate().map(named).collect())
}

fn requests() -> impl Strategy<Value = Given> {
    let likely = |names: &'static [&'static str]| prop::option::weighted(0.8, select(names));
    let ip = likely(&ADDRESSES).prop_map(|ip| ip.map(|ip| ip.parse().unwrap()));
    let project = (likely(&PROJECTS[..2]), likely(&PROJECTS[2..]));
    let subject = (likely(&["key_1", "key_2"]), likely(&["user_1", "a|b%"]));
    let tier = select(vec!["free", "pro", "enterprise", "other"]);
    (tier, likely(&METHODS), prop::option::weighted(0.9, paths()), ip, project, subject).prop_map(
        |(tier, method, path, ip, (project_id, project_slug), (key_id, user))| Given {
            tier,
            method,
            path,
            ip,
            project_id,
            project_slug,
            key_id,
            user,
        },
    )
}

impl Given {
    fn facts<'a>(&'a self, path: Option<&'a RequestPath<'a>>) -> Facts<'a> {
        let Self { tier, method, ip, project_id, project_slug, key_id, user, .. } = *self;
        Facts { tier, method, path, ip, project_id, project_slug, key_id, user, tenant: "acme" }
    }
}

// The contract, read plainly. Nothing below uses how paths, patterns or sets are built.

/// Decided point 25: the decoded path without query and without a trailing slash.
fn plain_segments(path: &str) -> Vec<String> {
    let path = &path[..path.find(['?', '#']).unwrap_or(path.len())];
    let (mut bytes, mut rest) = (Vec::new(), path);
    while !rest.is_empty() {
        let code = rest.strip_prefix('%').and_then(|rest| rest.get(..2));
        let hex = code.filter(|code| code.chars().all(|digit| digit.is_ascii_hexdigit()));
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            bytes.push(byte);
            rest = &rest[3..];
        } else {
            let first = rest.chars().next().unwrap();
            bytes.extend(first.to_string().bytes());
            rest = &rest[first.len_utf8()..];
        }
    }
    let mut kept: Vec<String> = Vec::new();
    for segment in String::from_utf8_lossy(&bytes).split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment.to_owned()),
        }
    }
    kept
}

/// `{x}` and an inner `*` are one segment, a trailing `/*` one or more, `**` any number.
fn plain_match(pattern: &[&str], path: &[String]) -> bool {
    match (pattern, path) {
        ([], path) => path.is_empty(),
        (["*"], path) => !path.is_empty(),
        (["**", rest @ ..], path) => (0..=path.len()).any(|skip| plain_match(rest, &path[skip..])),
        (_, []) => false,
        ([one, rest @ ..], [_, path @ ..]) if *one == "*" || one.starts_with('{') => {
            plain_match(rest, path)
        }
        ([literal, rest @ ..], [segment, path @ ..]) => {
            literal == segment && plain_match(rest, path)
        }
    }
}

/// The pattern that matched, `""` without patterns; `None` when the rule does not match.
fn plain_fit(rule: &Rule, given: &Given) -> Option<String> {
    let listed = |list: &[Box<str>], values: &[Option<&str>]| {
        list.is_empty()
            || values.iter().flatten().any(|value| list.iter().any(|own| **own == **value))
    };
    let in_range = |range: &crate::Cidr| given.ip.is_some_and(|ip| range.contains(ip));
    let fits = rule.enabled
        && listed(&rule.tiers, &[Some(given.tier)])
        && listed(&rule.methods, &[given.method])
        && listed(&rule.projects, &[given.project_id, given.project_slug])
        && (rule.ip_ranges.is_empty() || rule.ip_ranges.iter().any(in_range));
    let segments = given.path.as_deref().map(plain_segments);
    let matching = |pattern: &&PathPattern| {
        let pieces: Vec<&str> =
            pattern.as_str().split('/').filter(|piece| !piece.is_empty()).collect();
        segments.as_ref().is_some_and(|segments| plain_match(&pieces, segments))
    };
    let pattern = match &rule.endpoints[..] {
        [] => String::new(),
        endpoints => endpoints.iter().find(matching)?.as_str().to_owned(),
    };
    let valued = |scope: &RuleScope| match scope {
        RuleScope::Global | RuleScope::Tenant => true,
        RuleScope::Project => given.project_id.is_some(),
        RuleScope::User => given.user.is_some(),
        RuleScope::Key => given.key_id.is_some(),
        RuleScope::Ip => given.ip.is_some(),
        RuleScope::Endpoint => !pattern.is_empty(),
    };
    (fits && rule.scope.as_slice().iter().all(valued)).then_some(pattern)
}

/// Matching rules in priority order; the first allow or block ends the walk.
fn plain_walk(rules: &[Arc<Rule>], given: &Given) -> Vec<(Arc<str>, String)> {
    let mut sorted = rules.to_vec();
    sorted.sort_by_key(|rule| (rule.priority, rule.name.clone()));
    let mut met = Vec::new();
    for rule in sorted {
        if let Some(pattern) = plain_fit(&rule, given) {
            met.push((rule.name.clone(), pattern));
            if matches!(rule.action, Action::Allow | Action::Block) {
                break;
            }
        }
    }
    met
}

fn names(matched: &[Matched<'_>]) -> Vec<(Arc<str>, String)> {
    let pattern = |one: &Matched<'_>| one.pattern.map_or("", PathPattern::as_str).to_owned();
    matched.iter().map(|one| (one.rule.name.clone(), pattern(one))).collect()
}

fn agrees(rules: &[Arc<Rule>], given: &Given) -> Result<(), TestCaseError> {
    let set = RuleSet::compile(rules.to_vec());
    let path = given.path.as_deref().map(RequestPath::new);
    let facts = given.facts(path.as_ref());
    let mut matched = Vec::new();
    set.walk(&facts, &mut matched);
    prop_assert_eq!(names(&matched), plain_walk(rules, given));
    prop_assert!(matched.iter().all(|one| Arc::ptr_eq(one.rule, &set.rules()[one.place])));
    let explained = set.explain(&facts);
    prop_assert_eq!(explained.len(), rules.len());
    let fitting: Vec<_> = explained.iter().filter_map(|one| one.fit.clone().ok()).collect();
    prop_assert_eq!(names(&fitting), names(&matched));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20_000) })]

    #[test]
    fn the_walk_and_its_explanation_are_what_the_contract_says(rules in sets(0..24), given in requests()) {
        agrees(&rules, &given)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn the_walk_is_the_same_however_many_rules_there_are(
        rules in sets(100..600), given in prop::collection::vec(requests(), 10),
    ) {
        for given in given {
            agrees(&rules, &given)?;
        }
    }
}
