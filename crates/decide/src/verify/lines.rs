//! Which counters a verification spends from, and at which cost.

use std::sync::Arc;

use smallvec::SmallVec;
use tollkeeper_core::{Cost, Limit, Millis, Outcome, Throttle, Written};

use super::made::VerifiedLimit;
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
    pub(super) identifier: Option<Arc<str>>,
    /// Boxed: few rules throttle, and every line is moved a few times.
    pub(super) throttle: Option<Box<Throttle>>,
    /// Where it is shown otherwise than it is counted.
    pub(super) written: Option<Written>,
}

/// One in place, as most requests have: what may wait carries its room along.
pub(super) type Lines = SmallVec<[Line; 1]>;

/// The limits of key and identity that apply by themselves, and those that the request names; each once.
pub(super) fn stored_and_asked(
    ask: &VerifyAsk<'_>,
    subject: &Subject<'_>,
) -> Result<Lines, WarmError> {
    let asked = &ask.limits;
    let mut lines = Lines::with_capacity(subject.limits().count() + asked.len());
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

    pub(super) fn routed(&self) -> Routed<'_> {
        let LimitTerms { name, sharing, scope, .. } = &*self.terms;
        let identifier = self.identifier.as_deref().unwrap_or(name);
        Routed { cell: self.ask, sharing: *sharing, scope, identifier }
    }

    /// What its outcome means, and how long the request has to wait for it.
    pub(super) fn answer(
        self,
        outcome: Outcome,
        degraded: bool,
        at: Millis,
        dry: bool,
    ) -> (VerifiedLimit, u64) {
        let Self { ask, terms, identifier, throttle, written } = self;
        let (outcome, delay_ms) = match throttle {
            // Who only looks is told what it would have to wait, as if it had spent.
            Some(throttle) if dry && outcome.admitted() => {
                let (seen, _) = throttle.seen(outcome, at);
                (seen, throttle.seen(ask.limit.after(outcome, ask.cost), at).1)
            }
            Some(throttle) => throttle.seen(outcome, at),
            None => (outcome, 0),
        };
        // Who only looks waits for nothing.
        let delay_ms = if ask.cost == Cost::PEEK { 0 } else { delay_ms };
        let limit = ask.limit;
        (VerifiedLimit { terms, identifier, limit, written, outcome, degraded }, delay_ms)
    }
}
