//! A signature counts once: it is one more counter of the bundle, a log with room for a single entry. So a request that
//! is sent again is refused by the whole fleet, charges nothing, and one that was refused for something else may come
//! again. The counter is ours alone: no answer shows it.

use std::sync::Arc;

use tollkeeper_core::{
    Algorithm, Cost, Limit, Quota, SIGNATURE_MEMORY_MS, Sharing, Signature, Unsigned, Verdict,
    Width,
};

use super::VerifyAsk;
use super::lines::{Line, Lines};
use crate::CellHasher;
use crate::cells::CellAsk;
use crate::limit_terms::{LimitTerms, Source};
use crate::loaded_key::{LoadedKey, owner};
use crate::sharing::Joint;

/// Made when this is compiled: there is no way in which a signature would be left uncounted.
#[allow(clippy::panic, reason = "it does not compile then")]
const ONCE: Limit = match (Quota::new(1), Width::from_millis(SIGNATURE_MEMORY_MS)) {
    (Some(quota), Some(width)) => Limit { quota, algorithm: Algorithm::SlidingLog(width) },
    _ => panic!("a signature is remembered for a time that can be counted"),
};

/// What the counter of signatures said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sighted {
    /// The verdict, where it refuses.
    pub(super) refusal: Option<Verdict>,
    /// Decided without the shared counters.
    pub(super) degraded: bool,
}

/// Adds the line for the signature of a request, last, where it is taken out again. Requests of keys that want none are not
/// touched.
pub(super) fn add(hasher: &CellHasher, ask: &VerifyAsk<'_>, key: &LoadedKey, lines: &mut Lines) {
    let signature = ask.wanted.signature.filter(|_| key.record.signing.is_some());
    let Some(value) = signature.map(Signature::value) else { return };
    // Apart from the key's stored limits, whose names are anybody's choice. No id has a colon in it.
    let tag = owner(hasher, &key.record.tenant_slug, &format!("signatures:{}", key.record.id));
    let key = tag.cell(value, &ONCE);
    let cell = CellAsk { key, namespace: tag.tag, limit: ONCE, cost: Cost::ONE };
    let terms = LimitTerms {
        id: Arc::default(),
        name: Arc::default(),
        auto_apply: true,
        source: Source::Signature,
        count: None,
        sharing: Sharing::default(),
        scope: Arc::clone(&tag.scope),
    };
    let identifier = Some(lines.names.put_text(value));
    lines.push(Line {
        ask: cell,
        terms: Arc::new(terms),
        identifier,
        throttle: None,
        written: None,
    });
}

/// Takes the signature's line out of what was decided. It is the last one, if there is one.
pub(super) fn take_out(lines: &mut Lines, joint: &mut Joint) -> Sighted {
    let is_signature = |line: &Line| matches!(line.terms.source, Source::Signature);
    if !lines.all.last().is_some_and(is_signature) {
        return Sighted::default();
    }
    lines.all.pop();
    let degraded = joint.degraded.pop().unwrap_or_default();
    let admitted = joint.settled.outcomes.pop().is_none_or(|outcome| outcome.admitted());
    // Who decides alone may refuse for want of knowledge: that is no word about the request.
    let refusal = match (admitted, degraded) {
        (true, _) => None,
        (false, true) => Some(Verdict::Unavailable),
        (false, false) => Some(Verdict::Unsigned(Unsigned::Repeated)),
    };
    Sighted { refusal, degraded }
}
