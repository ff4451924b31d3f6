//! Stored limits between the wire and the store, for whatever carries them. Nothing is decided here.

use tollkeeper_core::Algorithm;
use tollkeeper_store::{LimitRow, LimitTerms};
use tollkeeper_wire as wire;

use super::ratelimit::limit_of;
use super::verify::duration_ms;
use crate::status::Refusal;

pub fn limit_terms(asked: &[wire::RatelimitRequest<'_>]) -> Result<Vec<LimitTerms>, Refusal> {
    let terms = asked.iter().map(|asked| {
        let algorithm = asked.algorithm.unwrap_or_default();
        Ok(LimitTerms {
            name: asked.name.to_string(),
            limit: limit_of(asked.limit, asked.duration, algorithm, asked.burst)?,
            auto_apply: asked.auto_apply,
            consistency: asked.consistency.map(|word| word.as_str().to_owned()),
            on_outage: asked.on_outage.map(|word| word.as_str().to_owned()),
        })
    });
    terms.collect()
}

pub fn shown_limits(rows: &[LimitRow]) -> Vec<wire::RatelimitReply<'_>> {
    rows.iter().map(shown_limit).collect()
}

/// What was not asked for is not shown: the default algorithm, and a bucket as large as its limit.
fn shown_limit(row: &LimitRow) -> wire::RatelimitReply<'_> {
    let LimitTerms { name, limit, auto_apply, consistency, on_outage } = &row.terms;
    let (algorithm, burst) = match limit.algorithm {
        Algorithm::SlidingWindow(_) => (None, None),
        Algorithm::SlidingLog(_) => (Some(wire::Algorithm::SlidingLog), None),
        Algorithm::FixedWindow(_) => (Some(wire::Algorithm::FixedWindow), None),
        Algorithm::TokenBucket { capacity, .. } => {
            let burst = Some(capacity.get()).filter(|burst| *burst != limit.quota.get());
            (Some(wire::Algorithm::TokenBucket), burst)
        }
    };
    wire::RatelimitReply {
        id: row.id.as_str().into(),
        name: name.as_str().into(),
        limit: limit.quota.get(),
        duration: duration_ms(limit.algorithm),
        auto_apply: *auto_apply,
        algorithm,
        burst,
        consistency: consistency.as_deref().and_then(wire::Consistency::from_word),
        on_outage: on_outage.as_deref().and_then(wire::OnOutage::from_word),
    }
}
