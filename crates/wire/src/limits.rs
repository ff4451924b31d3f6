//! `limits.peek` and `limits.reset`: look at what a limit has counted, or forget it.
//! Whether a peek without limit and duration has an override to fall back on is the server's question.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::object_only::present;
use crate::parse::Request;
use crate::ratelimit::{
    Algorithm, BURST, DURATION_MS, IDENTIFIER, LIMIT, NAMESPACE, SLIDING_LOG_RULE, sliding_log_fits,
};
use crate::schema::{Described, Field, Object, Shape};
use crate::verdict::COUNT;

const NAMESPACE_FIELD: Field =
    Field::required("namespace", Shape::Text(NAMESPACE), "Name or id of the namespace.");

/// Body of `limits.peek`. Spends nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PeekRequest<'a> {
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    #[serde(borrow)]
    pub identifier: Cow<'a, str>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// In milliseconds.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
}

impl<'a> PeekRequest<'a> {
    /// A peek at the override's limit.
    pub fn new(namespace: impl Into<Cow<'a, str>>, identifier: impl Into<Cow<'a, str>>) -> Self {
        Self {
            namespace: namespace.into(),
            identifier: identifier.into(),
            limit: None,
            duration: None,
            algorithm: None,
            burst: None,
        }
    }
}

impl Described for PeekRequest<'_> {
    const SHAPE: Shape = Shape::Object(&Object::with_rules(
        &[
            NAMESPACE_FIELD,
            Field::required("identifier", Shape::Text(IDENTIFIER), "Whom or what is limited."),
            Field::optional("limit", Shape::Integer(LIMIT), "Default: the matching override's."),
            Field::optional(
                "duration",
                Shape::Integer(DURATION_MS),
                "Default: the matching override's.",
            ),
            Field::optional(
                "algorithm",
                Shape::Choice(Algorithm::WORDS),
                "Default `sliding_window`.",
            ),
            Field::optional(
                "burst",
                Shape::Integer(BURST),
                "Capacity of a token bucket. Default: the limit.",
            ),
        ],
        &[SLIDING_LOG_RULE],
    ));
}

impl<'a> Request<'a> for PeekRequest<'a> {
    fn within_bounds(&self) -> bool {
        let algorithm = self.algorithm.unwrap_or_default();
        NAMESPACE.holds(&self.namespace)
            && IDENTIFIER.holds(&self.identifier)
            && self
                .limit
                .is_none_or(|limit| LIMIT.holds(limit) && sliding_log_fits(algorithm, limit))
            && self.duration.is_none_or(|duration| DURATION_MS.holds(duration))
            && self.burst.is_none_or(|burst| BURST.holds(burst))
    }
}

/// Answer of `limits.peek`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeekReply {
    pub limit: u64,
    pub used: u64,
    pub remaining: u64,
    pub reset: u64,
}

impl Described for PeekReply {
    const SHAPE: Shape = Shape::Object(&Object::of(&[
        Field::required("limit", Shape::Integer(COUNT), "The limit in force."),
        Field::required("used", Shape::Integer(COUNT), "Units that count against it now."),
        Field::required("remaining", Shape::Integer(COUNT), "Units left."),
        Field::required("reset", Shape::Integer(COUNT), "When the window ends, unix milliseconds."),
    ]));
}

/// Body of `limits.reset`: one identifier, or all of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResetRequest<'a> {
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub identifier: Option<Cow<'a, str>>,
}

impl Described for ResetRequest<'_> {
    const SHAPE: Shape = Shape::Object(&Object::of(&[
        NAMESPACE_FIELD,
        Field::optional(
            "identifier",
            Shape::Text(IDENTIFIER),
            "Default: every identifier of the namespace.",
        ),
    ]));
}

impl<'a> Request<'a> for ResetRequest<'a> {
    fn within_bounds(&self) -> bool {
        NAMESPACE.holds(&self.namespace)
            && self.identifier.as_deref().is_none_or(|text| IDENTIFIER.holds(text))
    }
}

/// Answer of `limits.reset`: how many counters were forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetReply {
    pub cells: u64,
}

impl Described for ResetReply {
    const SHAPE: Shape = Shape::Object(&Object::of(&[Field::required(
        "cells",
        Shape::Integer(COUNT),
        "Counters that were forgotten.",
    )]));
}
