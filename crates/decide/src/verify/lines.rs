//! Which counters a verification spends from, and at which cost.

use std::sync::Arc;

use smallvec::SmallVec;
use tollkeeper_core::{Cost, Limit, Millis, Outcome, Throttle, Written};

use super::made::VerifiedLimit;
use super::names::{Name, Names};
use super::subject::Subject;
use super::{AskedLimit, VerifyAsk};
use crate::WarmError;
use crate::cells::CellAsk;
use crate::limit_terms::{LimitTerms, Source};
use crate::loaded_key::LoadedLimit;
use crate::sharing::Routed;

/// One counter that the request spends from.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) ask: CellAsk,
    pub(super) terms: Arc<LimitTerms>,
    /// What it is called within its scope. Rules count by what their scopes say; everything else by its name.
    pub(super) identifier: Option<Name>,
    /// Boxed: few rules throttle, and every line is moved a few times.
    pub(super) throttle: Option<Box<Throttle>>,
    /// Where it is shown otherwise than it is counted.
    pub(super) written: Option<Written>,
}

/// All counters of a request. Small: it is handed on a few times before the decision.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) all: Vec<Line>,
    /// Of those that have identifiers.
    pub(super) names: Names,
}

/// Where there is a line there is room for so many at once: each is large, and growing moves them.
const LINES_USUALLY: usize = 8;

/// The limits of key and identity that apply by themselves, and those that the request names; each once.
pub(super) fn stored_and_asked(
    ask: &VerifyAsk<'_>,
    subject: &Subject<'_>,
) -> Result<Lines, WarmError> {
    let asked = &ask.limits;
    let all = Vec::with_capacity(subject.limits().count() + asked.len());
    let mut lines = Lines { all, names: Names::default() };
    for loaded in subject.limits() {
        let named = || asked.iter().filter(|asked| *asked.name == *loaded.stored.name);
        // Named twice, it pays for both.
        let cost = named().map(|asked| asked.cost).reduce(Cost::plus);
        // The request's own limit of that name counts instead.
        let replaced = named().any(|asked| asked.own.is_some());
        if replaced || (cost.is_none() && !loaded.stored.auto_apply) {
            continue;
        }
        lines.push(Line::stored(loaded, cost.unwrap_or(ask.cost)));
    }
    for asked in asked {
        match asked.own {
            Some(limit) => lines.push(Line::ad_hoc(subject, asked, limit)),
            None if subject.limits().all(|loaded| *loaded.stored.name != *asked.name) => {
                return Err(WarmError::LimitUnknown(asked.name.to_owned()));
            }
            None => {}
        }
    }
    Ok(lines)
}

// === impl Lines ===

impl Lines {
    /// One line by itself, with its own name.
    pub(super) fn alone(mut line: Line, names: &Names) -> Self {
        let mut own = Names::default();
        line.identifier = line.identifier.map(|name| own.put_text(names.of(name)));
        Self { all: vec![line], names: own }
    }

    pub(super) fn push(&mut self, line: Line) {
        if self.all.len() == self.all.capacity() {
            self.all.reserve(LINES_USUALLY);
        }
        self.all.push(line);
    }

    /// Takes in the lines of rules behind those that are stored or asked for, of which none has an identifier.
    pub(super) fn take_in(&mut self, by_rules: Self) {
        if self.all.is_empty() {
            *self = by_rules;
        } else {
            self.all.extend(by_rules.all);
            self.names = by_rules.names;
        }
    }

    /// What a line asks of its cell together with those before it, as in every bundle. A line that asks for nothing never fails.
    pub(super) fn asked_until(&self, place: usize) -> Cost {
        let CellAsk { key, cost, .. } = self.all[place].ask;
        if cost == Cost::PEEK {
            return cost;
        }
        let before = self.all[..place].iter().filter(|line| line.ask.key == key);
        before.map(|line| line.ask.cost).fold(cost, Cost::plus)
    }

    pub(super) fn routed(&self) -> SmallVec<[Routed<'_>; 1]> {
        self.all.iter().map(|line| line.routed(&self.names)).collect()
    }
}

// === impl Line ===

impl Line {
    fn stored(loaded: &LoadedLimit, cost: Cost) -> Self {
        let (limit, namespace) = (loaded.stored.limit, loaded.owner);
        Self {
            ask: CellAsk { key: loaded.cell, namespace, limit, cost },
            terms: Arc::clone(&loaded.terms),
            identifier: None,
            throttle: None,
            written: None,
        }
    }

    fn ad_hoc(subject: &Subject<'_>, asked: &AskedLimit<'_>, limit: Limit) -> Self {
        let tag = subject.owner;
        let key = tag.cell(asked.name, &limit);
        let terms = LimitTerms {
            id: Arc::default(),
            name: asked.name.into(),
            auto_apply: false,
            source: Source::AdHoc,
            count: None,
            sharing: asked.sharing,
            scope: Arc::clone(&tag.scope),
        };
        Self {
            ask: CellAsk { key, namespace: tag.tag, limit, cost: asked.cost },
            terms: Arc::new(terms),
            identifier: None,
            throttle: None,
            written: None,
        }
    }

    fn routed<'a>(&'a self, names: &'a Names) -> Routed<'a> {
        let LimitTerms { name, sharing, scope, .. } = &*self.terms;
        let identifier = self.identifier.map_or(&**name, |name| names.of(name));
        Routed { cell: self.ask, sharing: *sharing, scope, identifier }
    }

    /// What its outcome means, and how long the request has to wait for it.
    #[inline]
    pub(super) fn answer(
        self,
        outcome: Outcome,
        degraded: bool,
        at: Millis,
        dry: bool,
    ) -> (VerifiedLimit, u64) {
        let Self { ask, terms, identifier, throttle, written } = self;
        let (outcome, delay_ms) = match throttle {
            Some(throttle) => throttled(&throttle, &ask, outcome, at, dry),
            None => (outcome, 0),
        };
        let limit = ask.limit;
        (VerifiedLimit { terms, identifier, limit, written, outcome, degraded }, delay_ms)
    }
}

/// What a limit is seen as that makes requests wait, and how long. Apart from what every line passes, which stays small.
#[cold]
fn throttled(
    throttle: &Throttle,
    ask: &CellAsk,
    outcome: Outcome,
    at: Millis,
    dry: bool,
) -> (Outcome, u64) {
    let (seen, delay_ms) = throttle.seen(outcome, at);
    let delay_ms = match ask.cost {
        // Who only looks waits for nothing.
        Cost::PEEK => 0,
        // Whom a trial run tells what it would have to wait is told it as if it had spent.
        cost if dry && outcome.admitted() => throttle.seen(ask.limit.after(outcome, cost), at).1,
        _ => delay_ms,
    };
    (seen, delay_ms)
}
