//! What the tenant's rules make of a request: counters to spend from, counters that only watch, or an end to it.

use std::ops::ControlFlow;
use std::sync::Arc;

use tollkeeper_core::{
    Action, Algorithm, Facts, IdentityQuota, Limit, MET_LIMITS_MAX, Matched, Quota, Rule,
    RuleScope, Sharing, Throttle, Width, Window, Written, identifier,
};

use super::lines::{Line, Lines};
use super::made::Reason;
use super::names::{Name, Names};
use super::subject::Subject;
use super::{Purpose, VerifyAsk, WaitingRoom};
use crate::cells::{CellAsk, Cells};
use crate::counts::LimitCount;
use crate::decider::Decider;
use crate::limit_terms::{LimitTerms, Source};
use crate::loaded_key::owner;
use crate::rule_books::{Amount, RuleBook, RuleCell, RulePage};
use crate::{CellHasher, WarmError};

/// What rules and quotas add to a request.
#[derive(Debug, Default)]
pub(super) struct Ruled {
    pub(super) lines: Lines,
    /// Counted apart from the rest, so that they can refuse nothing.
    pub(super) watching: Vec<Line>,
    pub(super) blocked_by: Option<Arc<Rule>>,
    /// What the `allow` or `block` that ended the walk counts.
    pub(super) ended_by: Option<Arc<LimitCount>>,
    /// The first pattern that the path matched.
    pub(super) endpoint: Option<Arc<str>>,
    pub(super) reasons: Vec<Reason>,
}

/// Windows that an identity can have a limit of its own for.
const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 86_400_000;

pub(super) fn rule(
    decider: &Decider,
    book: Option<&RuleBook>,
    ask: &VerifyAsk<'_>,
    subject: &Subject<'_>,
) -> Result<Ruled, WarmError> {
    let mut ruled = Ruled::default();
    let mut own = Own::of(subject);
    if let Some(book) = book {
        let facts = subject.facts(ask);
        if ask.purpose == Purpose::Explain {
            ruled.reasons = reasons(book, &facts);
        }
        ruled.lines.names = Names::roomy();
        book.set.meet(&facts, |one| {
            let page = book.page(one.place);
            ruled.meet(&one, page, &facts, ask, &mut own, decider.cells());
            if ruled.is_too_much() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        // Whoever wants to know which rules they are is told, and nothing is spent.
        if ruled.is_too_much() && ask.purpose != Purpose::Explain {
            return Err(WarmError::TooManyLimits { most: MET_LIMITS_MAX });
        }
    }
    ruled.add_quotas(decider.hasher(), ask, subject, &own);
    Ok(ruled)
}

fn reasons(book: &RuleBook, facts: &Facts<'_>) -> Vec<Reason> {
    let explained = book.set.explain(facts).into_iter();
    explained.map(|one| Reason { rule: Arc::clone(one.rule), unmet: one.fit.err() }).collect()
}

// === impl Ruled ===

impl Ruled {
    fn is_too_much(&self) -> bool {
        self.lines.all.len() + self.watching.len() > MET_LIMITS_MAX
    }

    fn meet(
        &mut self,
        one: &Matched<'_>,
        page: &RulePage,
        facts: &Facts<'_>,
        ask: &VerifyAsk<'_>,
        own: &mut Own,
        cells: &Cells,
    ) {
        if self.endpoint.is_none() {
            self.endpoint = page.endpoint(one).cloned();
        }
        let action = one.rule.action;
        if matches!(action, Action::Block | Action::Allow) {
            self.ended_by.clone_from(&page.count);
            self.blocked_by = (action == Action::Block).then(|| Arc::clone(one.rule));
            return;
        }
        let name = self.lines.names.put(|names| identifier(one, facts, names));
        for cell in &page.cells {
            let amount = own.amount_of(one.rule, cell.amount);
            let line = line_of(cell, amount, action, (name, &self.lines.names), ask);
            // If it is counted here it is asked for soon, and until then there is something else to do.
            if ask.purpose == Purpose::Spend {
                cells.fetch_early(line.ask.key);
            }
            if action == Action::LogOnly {
                self.watching.push(line);
            } else {
                self.lines.push(line);
            }
        }
    }

    /// Limits of the identity's own that no rule of a tier has counted stand for themselves.
    fn add_quotas(
        &mut self,
        hasher: &CellHasher,
        ask: &VerifyAsk<'_>,
        subject: &Subject<'_>,
        own: &Own,
    ) {
        let Some(identity) = subject.identity().filter(|_| own.is_left()) else { return };
        // Apart from the identity's stored limits, whose names are anybody's choice. No id has a colon in it.
        let tag = owner(hasher, &subject.tenant.slug, &format!("quota:{}", identity.id));
        for (name, limit) in own.left() {
            let ask =
                CellAsk { key: tag.cell(name, &limit), namespace: tag.tag, limit, cost: ask.cost };
            let terms = LimitTerms {
                id: Arc::default(),
                name: name.into(),
                auto_apply: true,
                source: Source::Quota,
                count: None,
                sharing: Sharing::default(),
                scope: Arc::clone(&tag.scope),
            };
            let terms = Arc::new(terms);
            let line = Line { ask, terms, identifier: None, throttle: None, written: None };
            self.lines.push(line);
        }
    }
}

fn line_of(
    cell: &RuleCell,
    amount: Amount,
    action: Action,
    (name, names): (Name, &Names),
    ask: &VerifyAsk<'_>,
) -> Line {
    let Amount { limit, written } = amount;
    let throttle = match action {
        Action::Throttle { max_delay_ms } => {
            // Who has nowhere to wait passes at once or is refused, and then is not counted.
            let waits = ask.waiting.is_none_or(WaitingRoom::has_place);
            Throttle::new(limit, if waits { max_delay_ms } else { 0 })
        }
        _ => None,
    };
    let limit = throttle.map_or(limit, |throttle| throttle.enlarged());
    let key = cell.tag.cell(names.of(name), &limit);
    Line {
        ask: CellAsk { key, namespace: cell.tag.tag, limit, cost: ask.cost },
        terms: Arc::clone(&cell.terms),
        identifier: Some(name),
        throttle: throttle.map(Box::new),
        written,
    }
}

/// An identity's own limits, and which of them have counted in place of a rule's.
#[derive(Debug, Default)]
struct Own {
    quota: IdentityQuota,
    /// By second, minute, hour, day.
    counted: [bool; 4],
}

// === impl Own ===

impl Own {
    fn of(subject: &Subject<'_>) -> Self {
        let quota = subject.identity().map(|identity| identity.quota).unwrap_or_default();
        Self { quota, counted: [false; 4] }
    }

    /// By second, minute, hour, day: the quota, its window and the name that it has by itself.
    fn each(&self) -> [(Option<u64>, u64, &'static str); 4] {
        let IdentityQuota { per_second, per_minute, per_hour, per_day, .. } = self.quota;
        [
            (per_second, SECOND_MS, "quota_second"),
            (per_minute, MINUTE_MS, "quota_minute"),
            (per_hour, HOUR_MS, "quota_hour"),
            (per_day, DAY_MS, "quota_day"),
        ]
    }

    /// The limit of a rule of a tier under the identity's own quota, if it has one of that window. That is all there is of
    /// the quota where the rule counts by user; where it counts otherwise, or only watches, the quota is one budget of
    /// the owner all the same.
    fn amount_of(&mut self, rule: &Rule, amount: Amount) -> Amount {
        if rule.tiers.is_empty() {
            return amount;
        }
        let mut instead = amount;
        let width = amount.width_ms();
        let own = self.each();
        let place = own.iter().position(|(_, window, _)| Some(*window) == width);
        let given = place.and_then(|place| Some((place, own[place].0.and_then(Quota::new)?)));
        if let Some((place, quota)) = given {
            let by_user = rule.scope.as_slice() == [RuleScope::User];
            self.counted[place] |= by_user && rule.action != Action::LogOnly;
            instead = amount.under(quota);
        }
        match (instead.limit.algorithm, self.quota.burst.and_then(Quota::new)) {
            (Algorithm::TokenBucket { width, .. }, Some(burst)) => Amount {
                limit: Limit::token_bucket(instead.limit.quota, width, Some(burst)),
                ..instead
            },
            _ => instead,
        }
    }

    fn is_left(&self) -> bool {
        self.left().next().is_some()
    }

    /// Seconds and minutes slide; hours and days end by the clock, so that people can be told when they begin anew.
    fn left(&self) -> impl Iterator<Item = (&'static str, Limit)> + '_ {
        let open = self.each().into_iter().zip(self.counted).filter(|(_, counted)| !counted);
        open.filter_map(|((quota, window, name), _)| {
            let (quota, width) = (Quota::new(quota?)?, Width::from_millis(window)?);
            let burst = self.quota.burst.and_then(Quota::new);
            Some((
                name,
                match (window, burst) {
                    (SECOND_MS, Some(burst)) => Limit::token_bucket(quota, width, Some(burst)),
                    (SECOND_MS | MINUTE_MS, _) => Limit::sliding_window(quota, width),
                    _ => Limit::fixed_window(quota, Window::Aligned(width)),
                },
            ))
        })
    }
}

// === impl Amount ===

impl Amount {
    /// The same under another quota. A log that would grow too long is counted by its nearest kin, as an override's is;
    /// a bucket's own rate of refill stays, and so does a burst, unless it was the quota and follows it.
    fn under(self, quota: Quota) -> Self {
        let Self { limit, written } = self;
        let shown = written.map_or(limit.quota, |written| written.quota);
        let limit = match (limit.algorithm, written) {
            (Algorithm::SlidingLog(width), _) => limit.overridden(quota, width),
            (Algorithm::TokenBucket { width, capacity }, written) => {
                let capacity = if capacity == shown { quota } else { capacity };
                // A quota of zero blocks, whatever flows back.
                let refilled = written.is_some() && quota.get() > 0;
                let tokens = if refilled { limit.quota } else { quota };
                Limit::token_bucket(tokens, width, Some(capacity))
            }
            (algorithm, _) => Limit { quota, algorithm },
        };
        Self { limit, written: written.map(|written| Written { quota, ..written }) }
    }

    /// The window that the rule names.
    fn width_ms(&self) -> Option<u64> {
        if let Some(written) = self.written {
            return Some(written.width.millis());
        }
        match self.limit.algorithm {
            Algorithm::FixedWindow(Window::Day) => Some(DAY_MS),
            Algorithm::FixedWindow(Window::Month) => None,
            Algorithm::FixedWindow(Window::Aligned(width))
            | Algorithm::SlidingWindow(width)
            | Algorithm::SlidingLog(width)
            | Algorithm::TokenBucket { width, .. } => Some(width.millis()),
        }
    }
}
