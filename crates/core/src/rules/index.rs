//! A block of rules by the values that they ask for: every value of a request marks the rules that it satisfies, and
//! those that all of its values leave are met. The work grows with the words of the marks, not with the rules.

use std::net::IpAddr;
use std::sync::Arc;

use super::hash::Map;
use super::places::{self, BLOCK, Narrowing, Places};
use super::routes::Routes;
use super::{Facts, PathPattern, RequestPath, Rule, RuleScope};
use crate::Cidr;

#[derive(Clone, Debug)]
pub(super) struct Index {
    /// The enabled rules.
    live: Box<[u64]>,
    tiers: Names,
    methods: Names,
    projects: Names,
    ranges: Ranges,
    endpoints: Endpoints,
    /// Rules that count by something which a request may lack.
    counted_by: [(RuleScope, Box<[u64]>); 4],
}

/// Rules by the names that they list.
#[derive(Clone, Debug)]
struct Names {
    /// Rules that list none, and take any.
    open: Box<[u64]>,
    listed: Map<Box<str>, Places>,
}

/// Rules by their IP ranges: one look per length of prefix that occurs.
#[derive(Clone, Debug)]
struct Ranges {
    open: Box<[u64]>,
    listed: Map<Cidr, Places>,
    prefixes_v4: Vec<u8>,
    prefixes_v6: Vec<u8>,
}

/// Rules by the paths that they are about.
#[derive(Clone, Debug)]
struct Endpoints {
    open: Box<[u64]>,
    routes: Routes,
}

// === impl Index ===

impl Index {
    /// Of at most [`BLOCK`] rules.
    pub(super) fn of(rules: &[Arc<Rule>]) -> Self {
        let blank = || places::blank(rules.len());
        let mut index = Self {
            live: blank(),
            tiers: Names::blank(blank()),
            methods: Names::blank(blank()),
            projects: Names::blank(blank()),
            ranges: Ranges::blank(blank()),
            endpoints: Endpoints { open: blank(), routes: Routes::default() },
            counted_by: [RuleScope::Project, RuleScope::User, RuleScope::Key, RuleScope::Ip]
                .map(|scope| (scope, blank())),
        };
        for (place, rule) in (0..).zip(rules.iter().take(BLOCK)) {
            index.put(place, rule);
        }
        index
    }

    fn put(&mut self, place: u16, rule: &Rule) {
        let scopes = rule.scope.as_slice();
        // An endpoint is counted by the pattern that matched; without patterns there is nothing to count by.
        let countable = !(scopes.contains(&RuleScope::Endpoint) && rule.endpoints.is_empty());
        if !rule.enabled || !countable {
            return;
        }
        places::mark(&mut self.live, place);
        self.tiers.put(place, &rule.tiers);
        self.methods.put(place, &rule.methods);
        self.projects.put(place, &rule.projects);
        self.ranges.put(place, &rule.ip_ranges);
        self.endpoints.put(place, &rule.endpoints);
        for (scope, marks) in &mut self.counted_by {
            if scopes.contains(scope) {
                places::mark(marks, place);
            }
        }
    }

    /// The rules of this block that the request meets, found in `room`: twice the words of its marks, or more.
    pub(super) fn met<'m>(&self, facts: &Facts<'_>, room: &'m mut [u64]) -> Narrowing<'m> {
        let mut narrowing = Narrowing::of(&self.live, room);
        for (scope, marks) in &self.counted_by {
            if !facts.has(*scope) {
                narrowing.without(marks);
            }
        }
        self.tiers.narrow(&mut narrowing, [Some(facts.tier), None]);
        self.methods.narrow(&mut narrowing, [facts.method, None]);
        self.projects.narrow(&mut narrowing, [facts.project_id, facts.project_slug]);
        self.ranges.narrow(&mut narrowing, facts.ip);
        self.endpoints.narrow(&mut narrowing, facts.path);
        narrowing
    }
}

// === impl Names ===

impl Names {
    fn blank(open: Box<[u64]>) -> Self {
        Self { open, listed: Map::default() }
    }

    fn put(&mut self, place: u16, names: &[Box<str>]) {
        if names.is_empty() {
            places::mark(&mut self.open, place);
        }
        for name in names {
            self.listed.entry(name.clone()).or_default().put(place, self.open.len());
        }
    }

    fn narrow(&self, narrowing: &mut Narrowing<'_>, given: [Option<&str>; 2]) {
        if self.listed.is_empty() {
            return;
        }
        narrowing.to(&self.open, |fits| {
            for name in given.into_iter().flatten() {
                if let Some(places) = self.listed.get(name) {
                    fits.add(places);
                }
            }
        });
    }
}

// === impl Ranges ===

impl Ranges {
    fn blank(open: Box<[u64]>) -> Self {
        Self { open, listed: Map::default(), prefixes_v4: Vec::new(), prefixes_v6: Vec::new() }
    }

    fn put(&mut self, place: u16, ranges: &[Cidr]) {
        if ranges.is_empty() {
            places::mark(&mut self.open, place);
        }
        for range in ranges {
            self.listed.entry(*range).or_default().put(place, self.open.len());
            let prefixes =
                if range.is_v4() { &mut self.prefixes_v4 } else { &mut self.prefixes_v6 };
            if !prefixes.contains(&range.prefix()) {
                prefixes.push(range.prefix());
            }
        }
    }

    fn narrow(&self, narrowing: &mut Narrowing<'_>, given: Option<IpAddr>) {
        if self.listed.is_empty() {
            return;
        }
        narrowing.to(&self.open, |fits| {
            let Some(address) = given.map(|address| address.to_canonical()) else { return };
            let prefixes = if address.is_ipv4() { &self.prefixes_v4 } else { &self.prefixes_v6 };
            for prefix in prefixes {
                if let Some(places) = self.listed.get(&Cidr::around(address, *prefix)) {
                    fits.add(places);
                }
            }
        });
    }
}

// === impl Endpoints ===

impl Endpoints {
    fn put(&mut self, place: u16, patterns: &[PathPattern]) {
        if patterns.is_empty() {
            places::mark(&mut self.open, place);
        }
        for pattern in patterns {
            self.routes.put(pattern, place, self.open.len());
        }
    }

    fn narrow(&self, narrowing: &mut Narrowing<'_>, given: Option<&RequestPath<'_>>) {
        if self.routes.is_empty() {
            return;
        }
        narrowing.to(&self.open, |fits| {
            if let Some(path) = given {
                self.routes.mark(path, fits);
            }
        });
    }
}
