//! The rules of every tenant, compiled, with the place where each limit is counted. A request reads the book as it is;
//! a change swaps the whole of it.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tollkeeper_core::{
    Action, Limit, Matched, PathPattern, Rule, RuleLimit, RuleScope, RuleSet, Written,
};

use crate::counts::{CountOf, Counted, LimitCount, LimitCounts, WHOLE_RULE};
use crate::lease::Scope;
use crate::limit_terms::{LimitTerms, OfRule, Source};
use crate::ports::Tenant;
use crate::{CellHasher, NamespaceTag};

#[derive(Debug)]
pub struct RuleBooks {
    /// By tenant id.
    books: ArcSwap<Books>,
    hasher: CellHasher,
    counts: Arc<LimitCounts>,
}

type Books = HashMap<Arc<str>, Arc<RuleBook>>;

#[derive(Debug)]
pub struct RuleBook {
    pub set: RuleSet,
    pub version: u64,
    /// By the rule's place in the set.
    pages: Vec<RulePage>,
}

/// What counting by one rule needs, made ready once.
#[derive(Debug)]
pub(crate) struct RulePage {
    pub(crate) cells: Vec<RuleCell>,
    /// The patterns as texts, in the rule's order.
    endpoints: Vec<Arc<str>>,
    /// All that the rule is asked, unless it has one limit, whose count says the same.
    pub(crate) count: Option<Arc<LimitCount>>,
}

/// How much, as it is counted and as it is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount {
    pub(crate) limit: Limit,
    /// Where it is shown otherwise than it is counted.
    pub(crate) written: Option<Written>,
}

#[derive(Debug)]
pub(crate) struct RuleCell {
    pub(crate) amount: Amount,
    pub(crate) tag: NamespaceTag,
    /// Its name is `rule/limit`.
    pub(crate) terms: Arc<LimitTerms>,
}

// === impl RuleBooks ===

impl RuleBooks {
    pub(crate) fn new(hasher: CellHasher, counts: Arc<LimitCounts>) -> Self {
        Self { books: ArcSwap::default(), hasher, counts }
    }

    /// `None` where the tenant has no rules.
    pub fn of(&self, tenant_id: &str) -> Option<Arc<RuleBook>> {
        self.books.load().get(tenant_id).map(Arc::clone)
    }

    /// Puts the rules of a tenant into force, unless newer ones are. Returns what is not in force any more: it is freed by
    /// whoever lets go of it last, and may be large.
    pub fn swap(&self, tenant: &Tenant, set: RuleSet, version: u64) -> Option<Arc<RuleBook>> {
        let book = Arc::new(RuleBook::new(self, tenant, set, version));
        let before = self.change(|books| {
            if books.get(&tenant.id).is_none_or(|now| now.version < version) {
                books.insert(Arc::clone(&tenant.id), Arc::clone(&book));
            }
        });
        before.get(&tenant.id).map(Arc::clone)
    }

    /// A tenant is gone.
    pub fn remove(&self, tenant_id: &str) {
        drop(self.change(|books| drop(books.remove(tenant_id))));
    }

    /// How many rules are in force, of all tenants.
    pub fn len(&self) -> usize {
        self.books.load().values().map(|book| book.set.rules().len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns what was there before.
    fn change(&self, change: impl Fn(&mut Books)) -> Arc<Books> {
        self.books.rcu(|books| {
            let mut books = Books::clone(books);
            change(&mut books);
            books
        })
    }
}

// === impl RuleBook ===

impl RuleBook {
    fn new(books: &RuleBooks, tenant: &Tenant, set: RuleSet, version: u64) -> Self {
        let pages = set.rules().iter().map(|rule| RulePage::new(books, tenant, rule)).collect();
        Self { set, version, pages }
    }

    /// Where rules that count by this scope alone count.
    pub fn counted_by(&self, scope: RuleScope) -> impl Iterator<Item = &NamespaceTag> {
        let rules = self.set.rules().iter().zip(&self.pages);
        let by_scope = rules.filter(move |(rule, _)| rule.scope.as_slice() == [scope]);
        by_scope.flat_map(|(_, page)| page.cells.iter().map(|cell| &cell.tag))
    }

    pub(crate) fn page(&self, place: usize) -> &RulePage {
        &self.pages[place]
    }
}

// === impl RulePage ===

impl RulePage {
    fn new(books: &RuleBooks, tenant: &Tenant, rule: &Arc<Rule>) -> Self {
        let scopes: Arc<str> = rule.scope.to_string().into();
        let counted = |name: &Arc<str>| {
            books.counts.of(CountOf {
                tenant_id: Arc::clone(&tenant.id),
                kind: Counted::Rule,
                subject: Arc::clone(&rule.name),
                name: Arc::clone(name),
            })
        };
        let whole = (rule.limits.len() != 1).then(|| counted(&WHOLE_RULE.into()));
        let cell = |limit: &RuleLimit| {
            let name = format!("{}/{}", rule.name, limit.name);
            let tag = books.hasher.scope(&Arc::new(Scope::rule(&tenant.slug, &scopes, &name)));
            let shadow = rule.action == Action::LogOnly;
            let (rule, scope) = (Arc::clone(rule), Arc::clone(&scopes));
            let of = OfRule { scope, shadow, count: whole.clone(), rule };
            let terms = LimitTerms {
                id: Arc::default(),
                name: name.into(),
                auto_apply: true,
                sharing: of.rule.sharing,
                source: Source::Rule(of),
                count: Some(counted(&limit.name)),
                scope: Arc::clone(&tag.scope),
            };
            let amount = Amount { limit: limit.limit, written: limit.written };
            RuleCell { amount, tag, terms: Arc::new(terms) }
        };
        let endpoints = rule.endpoints.iter().map(|pattern| pattern.as_str().into()).collect();
        let cells = rule.limits.iter().map(cell).collect();
        Self { cells, endpoints, count: whole }
    }

    /// The pattern that a request matched.
    pub(crate) fn endpoint(&self, matched: &Matched<'_>) -> Option<&Arc<str>> {
        let pattern = matched.pattern?;
        let is_it = |one: &PathPattern| std::ptr::eq(one, pattern);
        self.endpoints.get(matched.rule.endpoints.iter().position(is_it)?)
    }
}
