//! Which counters a verification spends from, and at which cost.

use std::sync::Arc;

use smallvec::SmallVec;
use tollkeeper_core::{Cost, Limit, Outcome, Sharing};

use super::{AskedLimit, VerifiedLimit};
use crate::WarmError;
use crate::cells::CellAsk;
use crate::lease::Scope;
use crate::loaded_key::{LoadedKey, cell};
use crate::sharing::Routed;

#[derive(Debug)]
pub(super) struct Line {
    pub(super) ask: CellAsk,
    id: Box<str>,
    name: Box<str>,
    auto_apply: bool,
    sharing: Sharing,
    scope: Arc<Scope>,
}

/// Which counters this request spends from, each once: those that apply by themselves, and those it names.
pub(super) fn lines(
    key: &LoadedKey,
    asked: &[AskedLimit<'_>],
) -> Result<SmallVec<[Line; 4]>, WarmError> {
    let mut lines = SmallVec::new();
    for loaded in &key.limits {
        let named = || asked.iter().filter(|asked| *asked.name == *loaded.stored.name);
        // Named twice, it pays for both.
        let cost = named().map(|asked| asked.cost).reduce(Cost::plus);
        // The request's own limit of that name counts instead.
        let replaced = named().any(|asked| asked.own.is_some());
        if replaced || (cost.is_none() && !loaded.stored.auto_apply) {
            continue;
        }
        let cost = cost.unwrap_or(Cost::ONE);
        let (limit, namespace) = (loaded.stored.limit, loaded.owner);
        lines.push(Line {
            ask: CellAsk { key: loaded.cell, namespace, limit, cost },
            id: loaded.stored.id.clone(),
            name: loaded.stored.name.clone(),
            auto_apply: loaded.stored.auto_apply,
            sharing: loaded.stored.sharing,
            scope: Arc::clone(&loaded.scope),
        });
    }
    for asked in asked {
        match asked.own {
            Some(limit) => lines.push(Line::ad_hoc(key, asked, limit)),
            None if key.limits.iter().all(|loaded| *loaded.stored.name != *asked.name) => {
                return Err(WarmError::LimitUnknown(asked.name.to_owned()));
            }
            None => {}
        }
    }
    Ok(lines)
}

// === impl Line ===

impl Line {
    fn ad_hoc(key: &LoadedKey, asked: &AskedLimit<'_>, limit: Limit) -> Self {
        let ask = CellAsk {
            key: cell(&key.tag, asked.name, &limit),
            namespace: key.tag.tag,
            limit,
            cost: asked.cost,
        };
        Self {
            ask,
            id: Box::default(),
            name: asked.name.into(),
            auto_apply: false,
            sharing: asked.sharing,
            scope: Arc::clone(&key.tag.scope),
        }
    }

    pub(super) fn routed(&self) -> Routed<'_> {
        let Self { ask, name, sharing, scope, .. } = self;
        Routed { cell: *ask, sharing: *sharing, scope, identifier: name }
    }

    pub(super) fn answer(self, outcome: Outcome, degraded: bool) -> VerifiedLimit {
        let Self { ask, id, name, auto_apply, .. } = self;
        VerifiedLimit { id, name, limit: ask.limit, auto_apply, outcome, degraded }
    }
}
